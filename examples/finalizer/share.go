// Command finalizer is an ordinary operator: it makes a folder for each Share, and removes it when the Share goes.
//
// +kubebuilder:object:generate=true
// +groupName=shares.example.com
// +versionName=v1
package main

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Share is a folder outside the cluster.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
type Share struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ShareSpec   `json:"spec,omitempty"`
	Status ShareStatus `json:"status,omitempty"`
}

// ShareSpec is what is wanted.
type ShareSpec struct {
	// folder is its name; what has a slash in it is refused.
	Folder string `json:"folder,omitempty"`
}

// ShareStatus is what was observed.
type ShareStatus struct {
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// path is where the folder is.
	Path string `json:"path,omitempty"`
	// conditions: Ready means that the folder is there.
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ShareList is a list of Shares.
//
// +kubebuilder:object:root=true
type ShareList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Share `json:"items"`
}

// What reconcilekit needs to know of a kind.

func (s *Share) GetConditions() []metav1.Condition  { return s.Status.Conditions }
func (s *Share) SetConditions(c []metav1.Condition) { s.Status.Conditions = c }
func (s *Share) GetObservedGeneration() int64       { return s.Status.ObservedGeneration }
func (s *Share) SetObservedGeneration(g int64)      { s.Status.ObservedGeneration = g }

func newScheme() *runtime.Scheme {
	scheme, version := runtime.NewScheme(), schema.GroupVersion{Group: "shares.example.com", Version: "v1"}
	scheme.AddKnownTypes(version, &Share{}, &ShareList{})
	metav1.AddToGroupVersion(scheme, version)
	return scheme
}
