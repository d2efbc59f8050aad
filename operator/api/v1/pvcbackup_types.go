package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/pvcbackup/backup/scheduled"
)

// Annotations that people set on a PVCBackup.
const (
	// AnnotationTrigger asks for a backup now. Every new value asks for one.
	AnnotationTrigger = "storage.example.com/backup-now"
	// AnnotationKeySaved acknowledges that the generated key was saved; its value is the key's fingerprint.
	AnnotationKeySaved = "storage.example.com/key-saved"
	// AnnotationAbandon, with the value "true", lets an object with deletionPolicy Delete go although its backups
	// could not be removed. They stay in the store.
	AnnotationAbandon = "storage.example.com/abandon-backups"
)

// Finalizer is on every PVCBackup and every PVCRestore that may have something to clean up.
const Finalizer = "storage.example.com/pvcbackup"

// PVCBackupSpec says which claim is backed up, when, and where to.
//
// +kubebuilder:validation:XValidation:rule="has(self.s3Bucket) != (has(self.storage) && has(self.storage.url))",message="set exactly one of s3Bucket and storage.url"
// +kubebuilder:validation:XValidation:rule="!has(self.storage) || (has(self.storage.volume) == (has(self.storage.url) && self.storage.url.startsWith('file:')))",message="storage.volume and a file: storage.url belong together: set both or neither"
type PVCBackupSpec struct {
	// pvcName is the claim that is backed up.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="pvcName cannot change: create another PVCBackup for the other claim"
	// +required
	PVCName string `json:"pvcName"`
	// s3Bucket is the bucket that backups go to, with the endpoint and region that the operator is configured with.
	// For anything else set storage.url instead.
	// +kubebuilder:validation:MinLength=3
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9][a-z0-9.-]*[a-z0-9]$`
	// +optional
	S3Bucket string `json:"s3Bucket,omitempty"`

	scheduled.Spec `json:",inline"`
}

// PVCBackupStatus tells what is known about the backups.
type PVCBackupStatus struct {
	scheduled.Status `json:",inline"`
}

// PVCBackup backs up one claim on a schedule.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=pvcb,categories=backup
// +kubebuilder:printcolumn:name="Claim",type=string,JSONPath=`.spec.pvcName`
// +kubebuilder:printcolumn:name="Protected",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Last Backup",type=date,JSONPath=`.status.lastBackup`
// +kubebuilder:printcolumn:name="Next Backup",type=string,JSONPath=`.status.nextBackup`
// +kubebuilder:printcolumn:name="Schedule",type=string,priority=1,JSONPath=`.spec.schedule`
// +kubebuilder:printcolumn:name="Failures",type=integer,priority=1,JSONPath=`.status.consecutiveFailures`
// +kubebuilder:printcolumn:name="Repository",type=string,priority=1,JSONPath=`.status.repository.url`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
type PVCBackup struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is wanted.
	// +required
	Spec PVCBackupSpec `json:"spec"`
	// status is what was observed.
	// +optional
	Status PVCBackupStatus `json:"status,omitempty"`
}

// PVCBackupList is a list of PVCBackups.
//
// +kubebuilder:object:root=true
type PVCBackupList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PVCBackup `json:"items"`
}

// GetConditions returns the conditions.
func (b *PVCBackup) GetConditions() []metav1.Condition { return b.Status.Conditions }

// SetConditions replaces the conditions.
func (b *PVCBackup) SetConditions(conditions []metav1.Condition) { b.Status.Conditions = conditions }
