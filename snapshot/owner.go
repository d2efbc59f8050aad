package snapshot

import (
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// OwnerUIDLabel carries the UID of the object on whose behalf another one was
// created. Without exactly our UID in it nothing is ever touched.
const OwnerUIDLabel = "storage.example.com/owner-uid"

// Owner is the object on whose behalf things are created.
type Owner struct {
	// UID is required.
	UID types.UID
	// Reference, when set, is put on what is created, so that it is garbage
	// collected with its owner. Its UID must be UID; Controller and
	// BlockOwnerDeletion are dropped. Unset: it outlives the owner.
	Reference *metav1.OwnerReference
}

// Owns reports whether obj carries this owner's UID.
func (o Owner) Owns(obj client.Object) bool {
	return o.UID != "" && obj.GetLabels()[OwnerUIDLabel] == string(o.UID)
}

// Selector selects what this owner owns, narrowed by labels.
func (o Owner) Selector(labels map[string]string) client.MatchingLabels {
	selector := client.MatchingLabels(maps.Clone(labels))
	if selector == nil {
		selector = client.MatchingLabels{}
	}
	selector[OwnerUIDLabel] = string(o.UID)
	return selector
}

// Stamp adds labels, annotations and the marks of ownership to a new object.
func (o Owner) Stamp(obj client.Object, labels, annotations map[string]string) {
	obj.SetLabels(o.Selector(labels))
	obj.SetAnnotations(maps.Clone(annotations))
	if o.Reference != nil {
		ref := *o.Reference
		ref.Controller, ref.BlockOwnerDeletion = nil, nil
		obj.SetOwnerReferences([]metav1.OwnerReference{ref})
	}
}

// Validate returns ErrInvalid for an owner without a usable UID or with a
// reference to something else.
func (o Owner) Validate() error {
	if o.UID == "" || len(validation.IsValidLabelValue(string(o.UID))) > 0 {
		return invalid("owner UID %q is not a label value; give the UID of the owning object", o.UID)
	}
	if o.Reference != nil && o.Reference.UID != o.UID {
		return invalid("owner reference has UID %q and the owner %q; they must be the same", o.Reference.UID, o.UID)
	}
	return nil
}

// Refuse returns ErrForeign unless obj, called subject, carries this owner's UID.
func (o Owner) Refuse(subject string, obj client.Object) error {
	if o.Owns(obj) {
		return nil
	}
	return &Error{Kind: ErrForeign, Subject: subject, Problem: fmt.Sprintf(
		"label %s is %q and not %q, so it is left alone; remove it, or choose another name",
		OwnerUIDLabel, obj.GetLabels()[OwnerUIDLabel], o.UID)}
}

// checkName returns ErrInvalid unless an object can be found by it.
func checkName(kind, namespace, name string) error {
	if namespace == "" || name == "" {
		return invalid("%s %q/%q: set both namespace and name", kind, namespace, name)
	}
	return nil
}

// checkNamespace returns ErrInvalid for no namespace, which the API takes for all of them.
func checkNamespace(namespace string) error {
	if namespace == "" {
		return invalid("the namespace is empty; set it to the owner's")
	}
	return nil
}

func invalid(format string, args ...any) error {
	return &Error{Kind: ErrInvalid, Problem: fmt.Sprintf(format, args...)}
}
