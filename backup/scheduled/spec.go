package scheduled

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Spec says when a claim is backed up, where to, and what is kept. Embed it, inline, in the spec of any kind.
//
// +kubebuilder:object:generate=true
type Spec struct {
	// schedule is a cron expression of five fields (minute, hour, day of month, month, day of week) or one of @hourly,
	// @daily, @weekly, @monthly and @yearly. H, H(a-b) and H/n stand for a value that is chosen for each object, so
	// that not everything starts at the same minute.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +required
	Schedule string `json:"schedule"`
	// timeZone is a name of the tz database, such as Europe/Berlin. Default: UTC.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	TimeZone string `json:"timeZone,omitempty"`
	// jitter delays each scheduled run by a time between zero and this, chosen for the object and the slot.
	// +kubebuilder:validation:XValidation:rule="duration(self) >= duration('0s')",message="jitter must not be negative"
	// +optional
	Jitter *metav1.Duration `json:"jitter,omitempty"`
	// startingDeadlineSeconds is how late a run may still start. Default: half the interval, at most one hour.
	// +kubebuilder:validation:Minimum=1
	// +optional
	StartingDeadlineSeconds *int64 `json:"startingDeadlineSeconds,omitempty"`
	// suspend stops scheduled runs. A run in flight is finished, and a run asked for by annotation is still made.
	// +optional
	Suspend bool `json:"suspend,omitempty"`
	// concurrencyPolicy says what happens when a run is due while another one is in flight. Forbid waits for it;
	// Replace stops it.
	// +kubebuilder:validation:Enum=Forbid;Replace
	// +kubebuilder:default=Forbid
	// +optional
	ConcurrencyPolicy ConcurrencyPolicy `json:"concurrencyPolicy,omitempty"`
	// runOnCreate takes the first backup at once, instead of at the first scheduled time.
	// +kubebuilder:default=true
	// +optional
	RunOnCreate *bool `json:"runOnCreate,omitempty"`

	// storage says where the backups go.
	// +optional
	Storage *Storage `json:"storage,omitempty"`
	// encryption says which password opens the repository.
	// +optional
	Encryption *Encryption `json:"encryption,omitempty"`
	// snapshot says how the volume is frozen, and how many VolumeSnapshots stay in the cluster.
	// +optional
	Snapshot *SnapshotPolicy `json:"snapshot,omitempty"`
	// retention says which backups are kept. Default: 24 hourly, 7 daily, 4 weekly and 12 monthly.
	// +optional
	Retention *Retention `json:"retention,omitempty"`
	// verify says how a backup is proven before it counts.
	// +optional
	Verify *Verify `json:"verify,omitempty"`
	// mover says how the Pods that move the data run.
	// +optional
	Mover *MoverSpec `json:"mover,omitempty"`
	// deadlines bound the steps of a run.
	// +optional
	Deadlines *Deadlines `json:"deadlines,omitempty"`
	// deletionPolicy says what happens to the backups when this object is deleted. Retain keeps them all. Delete
	// forgets the ones this object made, and removes the repository when nobody else's remain.
	// +kubebuilder:validation:Enum=Retain;Delete
	// +kubebuilder:default=Retain
	// +optional
	DeletionPolicy DeletionPolicy `json:"deletionPolicy,omitempty"`
}

// ConcurrencyPolicy is Forbid or Replace.
type ConcurrencyPolicy string

// The concurrency policies. There is no Allow: two runs of one claim at once would only compete for the same data.
const (
	Forbid  ConcurrencyPolicy = "Forbid"
	Replace ConcurrencyPolicy = "Replace"
)

// DeletionPolicy is Retain or Delete.
type DeletionPolicy string

// The deletion policies.
const (
	Retain DeletionPolicy = "Retain"
	Delete DeletionPolicy = "Delete"
)

// Storage says where a repository is, and who may use it.
//
// +kubebuilder:object:generate=true
type Storage struct {
	// url is the store: s3://bucket, gs://bucket, azblob://container, each with the parameters of its kind, or
	// file:///pvcbackup/destination with a volume. It holds no credentials.
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.matches('^(s3|gs|azblob)://[^@/?#]+([/?#].*)?$') || self.matches('^file:///pvcbackup/destination([/?#].*)?$')",message="url must be s3://, gs:// or azblob:// with a bucket and without user or password, or file:///pvcbackup/destination with storage.volume",reason=FieldValueForbidden
	// +optional
	URL string `json:"url,omitempty"`
	// prefix is where in the store the repository is. Default: <cluster id>/<namespace>/<claim>.
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*$`
	// +kubebuilder:validation:XValidation:rule="!self.split('/').exists(p, p == '.' || p == '..')",message="prefix must not contain . or .. as a part"
	// +optional
	Prefix string `json:"prefix,omitempty"`
	// credentialsSecretRef names a Secret whose keys become the mover's environment, such as AWS_ACCESS_KEY_ID and
	// AWS_SECRET_ACCESS_KEY. Default: the Secret pvcbackup-credentials if it exists, else the identity of the mover's
	// service account.
	// +optional
	CredentialsSecretRef *SecretRef `json:"credentialsSecretRef,omitempty"`
	// maintenanceCredentialsSecretRef names the Secret that forget, prune and delete use instead, so that the
	// credentials of everyday backups need not be able to delete. Default: credentialsSecretRef.
	// +optional
	MaintenanceCredentialsSecretRef *SecretRef `json:"maintenanceCredentialsSecretRef,omitempty"`
	// volume names a claim that holds the repository, mounted at /pvcbackup/destination.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Volume string `json:"volume,omitempty"`
}

// SecretRef names a Secret of the same namespace.
//
// +kubebuilder:object:generate=true
type SecretRef struct {
	// name of the Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`
}

// Encryption says which password opens the repository.
//
// +kubebuilder:object:generate=true
type Encryption struct {
	// passwordSecretRef names the Secret and the key that hold the password. Default: a random password in a Secret
	// that is created with the repository, is named after the claim, and outlives this object.
	// +optional
	PasswordSecretRef *SecretKeyRef `json:"passwordSecretRef,omitempty"`
}

// SecretKeyRef names a key of a Secret of the same namespace.
//
// +kubebuilder:object:generate=true
type SecretKeyRef struct {
	// name of the Secret.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`
	// key in the Secret.
	// +kubebuilder:default=password
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Key string `json:"key,omitempty"`
}

// SnapshotPolicy says how the volume is frozen.
//
// +kubebuilder:object:generate=true
type SnapshotPolicy struct {
	// className is the VolumeSnapshotClass. Default: the default class of the volume's driver, else its only one.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	ClassName string `json:"className,omitempty"`
	// keep is how many ready VolumeSnapshots of good runs stay in the cluster for fast restores.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +kubebuilder:default=1
	// +optional
	Keep *int32 `json:"keep,omitempty"`
}

// Retention says which backups are kept. A backup that any rule keeps is kept, and the newest good one always is.
//
// +kubebuilder:object:generate=true
// +kubebuilder:validation:MinProperties=1
type Retention struct {
	// last keeps that many of the newest backups.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Last int32 `json:"last,omitempty"`
	// hourly keeps the newest backup of each of that many hours that have one.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Hourly int32 `json:"hourly,omitempty"`
	// daily keeps the newest backup of each of that many days that have one.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Daily int32 `json:"daily,omitempty"`
	// weekly keeps the newest backup of each of that many weeks that have one.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Weekly int32 `json:"weekly,omitempty"`
	// monthly keeps the newest backup of each of that many months that have one.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Monthly int32 `json:"monthly,omitempty"`
	// yearly keeps the newest backup of each of that many years that have one.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Yearly int32 `json:"yearly,omitempty"`
	// within keeps every backup that is at most this much older than the newest good one, written like 1y2m3d4h.
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:Pattern=`^([0-9]+y)?([0-9]+m)?([0-9]+d)?([0-9]+h)?$`
	// +optional
	Within string `json:"within,omitempty"`
}

// Verify says how a backup is proven before it counts. Every pack and index that a run wrote is always looked up in the
// store with its exact size, and the snapshot and its trees are always read back.
//
// +kubebuilder:object:generate=true
type Verify struct {
	// sampleBlobs is how many blobs, chosen at random from the whole backup, are read back and compared with their
	// hash before a run counts as a success.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100000
	// +kubebuilder:default=16
	// +optional
	SampleBlobs *int32 `json:"sampleBlobs,omitempty"`
}

// MoverSpec says how the Pods that move the data run.
//
// +kubebuilder:object:generate=true
type MoverSpec struct {
	// privilege is Restricted, which fits the Pod Security Standard of that name, or Baseline, which runs as uid 0 with
	// no capabilities but the ones that reading and restoring any file takes.
	// +kubebuilder:validation:Enum=Restricted;Baseline
	// +kubebuilder:default=Restricted
	// +optional
	Privilege string `json:"privilege,omitempty"`
	// runAsUser is the uid of a Restricted mover. Default: the one of a Pod that mounts the claim.
	// +kubebuilder:validation:Minimum=1
	// +optional
	RunAsUser *int64 `json:"runAsUser,omitempty"`
	// runAsGroup is the gid of a Restricted mover. Default: the one of a Pod that mounts the claim.
	// +kubebuilder:validation:Minimum=0
	// +optional
	RunAsGroup *int64 `json:"runAsGroup,omitempty"`
	// resources of the mover's container.
	// +optional
	Resources corev1.ResourceRequirements `json:"resources,omitempty"`
	// serviceAccountName is the identity the mover runs under. Default: the namespace's default, without a token.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	ServiceAccountName string `json:"serviceAccountName,omitempty"`
	// nodeSelector chooses the nodes that movers may run on.
	// +kubebuilder:validation:MaxProperties=32
	// +optional
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`
	// tolerations of the movers.
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +optional
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`
	// affinity of the movers.
	// +optional
	Affinity *corev1.Affinity `json:"affinity,omitempty"`
	// priorityClassName of the movers.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	PriorityClassName string `json:"priorityClassName,omitempty"`
	// imagePullSecrets name the Secrets with which the mover's image is pulled.
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	// +optional
	ImagePullSecrets []corev1.LocalObjectReference `json:"imagePullSecrets,omitempty"`
}

// Deadlines bound the steps of a run, each for itself. When one passes, the message says which.
//
// +kubebuilder:object:generate=true
type Deadlines struct {
	// snapshotTaken is how long the driver may take to freeze the volume. Default: 10m.
	// +optional
	SnapshotTaken *metav1.Duration `json:"snapshotTaken,omitempty"`
	// snapshotReady is how long the snapshot may take to become usable. Default: 1h.
	// +optional
	SnapshotReady *metav1.Duration `json:"snapshotReady,omitempty"`
	// staged is how long a volume may take to be made from the snapshot. Default: 30m.
	// +optional
	Staged *metav1.Duration `json:"staged,omitempty"`
	// moverStarted is how long a mover may take until its program runs. Default: 10m.
	// +optional
	MoverStarted *metav1.Duration `json:"moverStarted,omitempty"`
	// noProgress is how long a mover may go without progress. Default: 1h.
	// +optional
	NoProgress *metav1.Duration `json:"noProgress,omitempty"`
	// run is how long one attempt of a mover may take in all. Default: 24h.
	// +optional
	Run *metav1.Duration `json:"run,omitempty"`
}
