package v1

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/pvcbackup/backup/scheduled"
)

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

var _ scheduled.Object = (*PVCBackup)(nil)

// AnnotationRestoreTo, on a PVCBackup, lists the namespaces that may restore from it, separated by commas; "*" is all.
// Without it PVCRestores of its own namespace may, and no others.
const AnnotationRestoreTo = "storage.example.com/restore-to"

// RestorableTo reports whether PVCRestores of that other namespace may restore from it.
func (b *PVCBackup) RestorableTo(namespace string) bool {
	for _, granted := range strings.Split(b.Annotations[AnnotationRestoreTo], ",") {
		if granted = strings.TrimSpace(granted); granted == "*" || granted == namespace && namespace != "" {
			return true
		}
	}
	return false
}

// BackupClaim implements scheduled.Object.
func (b *PVCBackup) BackupClaim() string { return b.Spec.PVCName }

// BackupSpec implements scheduled.Object: it is the spec with s3Bucket written as a URL.
func (b *PVCBackup) BackupSpec() *scheduled.Spec {
	spec := b.Spec.Spec
	if b.Spec.S3Bucket == "" {
		return &spec
	}
	var storage scheduled.Storage
	if spec.Storage != nil {
		storage = *spec.Storage
	}
	storage.URL = "s3://" + b.Spec.S3Bucket
	spec.Storage = &storage
	return &spec
}

// BackupStatus implements scheduled.Object.
func (b *PVCBackup) BackupStatus() *scheduled.Status { return &b.Status.Status }

// GetConditions returns the conditions.
func (b *PVCBackup) GetConditions() []metav1.Condition { return b.Status.Conditions }

// SetConditions replaces the conditions.
func (b *PVCBackup) SetConditions(conditions []metav1.Condition) { b.Status.Conditions = conditions }

// GetObservedGeneration returns the generation that the conditions are about.
func (b *PVCBackup) GetObservedGeneration() int64 { return b.Status.ObservedGeneration }

// SetObservedGeneration records the generation that the conditions are about.
func (b *PVCBackup) SetObservedGeneration(generation int64) { b.Status.ObservedGeneration = generation }
