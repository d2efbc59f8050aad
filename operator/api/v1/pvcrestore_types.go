package v1

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/pvcbackup/backup/scheduled"
)

// PVCRestoreSpec says what is restored, and where to. It cannot change: create another PVCRestore instead.
//
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a PVCRestore cannot change: create another one"
// +kubebuilder:validation:XValidation:rule="[has(self.snapshotID), has(self.asOf), has(self.offset)].filter(x, x).size() <= 1",message="set at most one of snapshotID, asOf and offset"
type PVCRestoreSpec struct {
	// source says which backups to choose from.
	// +required
	Source RestoreSource `json:"source"`
	// snapshotID chooses a snapshot by its id, or by the first characters of it.
	// +kubebuilder:validation:Pattern=`^[0-9a-f]{8,64}$`
	// +optional
	SnapshotID string `json:"snapshotID,omitempty"`
	// asOf chooses the newest good snapshot taken at this time or before.
	// +optional
	AsOf *metav1.Time `json:"asOf,omitempty"`
	// offset chooses an older snapshot: 1 is the one before the newest good one.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Offset *int32 `json:"offset,omitempty"`
	// path restores only what lies below it, for example /uploads.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Path string `json:"path,omitempty"`
	// allowAbsent lets the restore succeed with an empty claim when it is proven that the store holds no backup.
	// +optional
	AllowAbsent bool `json:"allowAbsent,omitempty"`
	// target is the claim that is restored into.
	// +required
	Target RestoreTarget `json:"target"`
	// mover says how the Pod that moves the data runs.
	// +optional
	Mover *scheduled.MoverSpec `json:"mover,omitempty"`
	// deadlines bound the steps of the restore: moverStarted, noProgress and run.
	// +optional
	Deadlines *scheduled.Deadlines `json:"deadlines,omitempty"`
}

// RestoreSource names backups: those of a PVCBackup, or those in a store.
//
// +kubebuilder:validation:XValidation:rule="!has(self.__namespace__) || has(self.pvcBackup)",message="source.namespace is where source.pvcBackup is: set that too"
// +kubebuilder:validation:XValidation:rule="has(self.pvcBackup) != has(self.storage)",message="set exactly one of source.pvcBackup and source.storage"
// +kubebuilder:validation:XValidation:rule="!has(self.storage) || has(self.encryption)",message="source.storage needs source.encryption.passwordSecretRef"
// +kubebuilder:validation:XValidation:rule="!has(self.pvcBackup) || (!has(self.encryption) && !has(self.host) && !has(self.path) && !has(self.tags))",message="source.pvcBackup says itself which password, host, path and tags: leave them out"
type RestoreSource struct {
	// pvcBackup names a PVCBackup.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	PVCBackup string `json:"pvcBackup,omitempty"`
	// namespace of the PVCBackup. Default: the restore's own. Another one has to allow it: the PVCBackup's annotation
	// storage.example.com/restore-to lists the namespaces that may restore from it. The Secrets with the password and the
	// credentials must be in the restore's namespace, under the names that they have in the other one.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Namespace string `json:"namespace,omitempty"`
	// storage names a repository: url, and prefix when the repository is not at the url itself.
	// +kubebuilder:validation:XValidation:rule="has(self.url)",message="source.storage.url is required"
	// +kubebuilder:validation:XValidation:rule="has(self.volume) == (has(self.url) && self.url.startsWith('file:'))",message="storage.volume and a file: storage.url belong together: set both or neither"
	// +optional
	Storage *scheduled.Storage `json:"storage,omitempty"`
	// encryption says which password opens the repository.
	// +kubebuilder:validation:XValidation:rule="has(self.passwordSecretRef)",message="source.encryption.passwordSecretRef is required"
	// +optional
	Encryption *scheduled.Encryption `json:"encryption,omitempty"`
	// host chooses snapshots by their host name. Default: any.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Host string `json:"host,omitempty"`
	// path chooses snapshots by their path. Default: any.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Path string `json:"path,omitempty"`
	// tags choose snapshots that have all of them.
	// +kubebuilder:validation:MaxItems=16
	// +listType=set
	// +optional
	Tags []string `json:"tags,omitempty"`
}

// RestoreTarget is the claim that is restored into.
type RestoreTarget struct {
	// pvcName is the claim. With create it must not exist yet; without, it must.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	PVCName string `json:"pvcName"`
	// create makes a new claim.
	// +optional
	Create *NewClaim `json:"create,omitempty"`
	// overwrite says what happens to files that exist in the claim. Default: a claim that holds any is refused.
	// IfChanged replaces those that differ, Always all of them, Never none.
	// +kubebuilder:validation:Enum=IfChanged;Always;Never
	// +optional
	Overwrite string `json:"overwrite,omitempty"`
}

// NewClaim says what a new claim is like.
type NewClaim struct {
	// size of the claim.
	// +required
	Size resource.Quantity `json:"size"`
	// storageClassName of the claim. Default: the cluster's default class.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	StorageClassName *string `json:"storageClassName,omitempty"`
	// accessModes of the claim. Default: ReadWriteOnce.
	// +kubebuilder:validation:MaxItems=4
	// +listType=atomic
	// +optional
	AccessModes []corev1.PersistentVolumeAccessMode `json:"accessModes,omitempty"`
}

// PVCRestoreStatus tells what became of the restore.
type PVCRestoreStatus struct {
	// observedGeneration is the generation that the conditions are about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// phase sums up the rest for people. Nothing is decided by it.
	// +kubebuilder:validation:MaxLength=32
	// +optional
	Phase string `json:"phase,omitempty"`
	// started is when the restore was begun.
	// +optional
	Started *metav1.Time `json:"started,omitempty"`
	// completed is when it ended.
	// +optional
	Completed *metav1.Time `json:"completed,omitempty"`
	// snapshotID and snapshotTime tell what was restored.
	// +optional
	SnapshotID string `json:"snapshotID,omitempty"`
	// snapshotTime is when the restored contents were frozen.
	// +optional
	SnapshotTime *metav1.Time `json:"snapshotTime,omitempty"`
	// bytes restored.
	// +optional
	Bytes int64 `json:"bytes,omitempty"`
	// files restored.
	// +optional
	Files int64 `json:"files,omitempty"`
	// attempt counts the movers, from 1.
	// +optional
	Attempt int32 `json:"attempt,omitempty"`
	// progress of the running mover.
	// +optional
	Progress *scheduled.Progress `json:"progress,omitempty"`
	// notes tell what could not be restored as it was, such as owners that the mover had no right to set.
	// +kubebuilder:validation:MaxItems=20
	// +listType=atomic
	// +optional
	Notes []string `json:"notes,omitempty"`
	// conditions: Succeeded is Unknown while the restore runs. Reconciling and Stalled are there only while true.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ConditionSucceeded is the condition that sums up a PVCRestore.
const ConditionSucceeded = "Succeeded"

// PVCRestore restores one backup, once.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=pvcr,categories=backup
// +kubebuilder:printcolumn:name="Target",type=string,JSONPath=`.spec.target.pvcName`
// +kubebuilder:printcolumn:name="Succeeded",type=string,JSONPath=`.status.conditions[?(@.type=="Succeeded")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Succeeded")].reason`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Files",type=integer,JSONPath=`.status.files`
// +kubebuilder:printcolumn:name="Snapshot",type=string,priority=1,JSONPath=`.status.snapshotID`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Succeeded")].message`
type PVCRestore struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is wanted.
	// +required
	Spec PVCRestoreSpec `json:"spec"`
	// status is what was observed.
	// +optional
	Status PVCRestoreStatus `json:"status,omitempty"`
}

// PVCRestoreList is a list of PVCRestores.
//
// +kubebuilder:object:root=true
type PVCRestoreList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PVCRestore `json:"items"`
}

// GetConditions returns the conditions.
func (r *PVCRestore) GetConditions() []metav1.Condition { return r.Status.Conditions }

// SetConditions replaces the conditions.
func (r *PVCRestore) SetConditions(conditions []metav1.Condition) { r.Status.Conditions = conditions }

// GetObservedGeneration returns the generation that the conditions are about.
func (r *PVCRestore) GetObservedGeneration() int64 { return r.Status.ObservedGeneration }

// SetObservedGeneration records the generation that the conditions are about.
func (r *PVCRestore) SetObservedGeneration(generation int64) {
	r.Status.ObservedGeneration = generation
}
