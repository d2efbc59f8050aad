package backup

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"example.com/pvcbackup/backup/contract"
)

// Mover does the work beside the data. An implementation may run Pods (jobmover), work in this process (localmover),
// or anything else.
//
// Each method may be called again at any time, also after a crash in the middle of it: names follow from the task and
// the attempt, what exists already is taken as done, and what is gone already is taken as gone. None of them waits.
type Mover interface {
	// Start makes sure that this attempt of the task was started. It returns nil when it was started before.
	// An object of the same name that is not the owner's is an error, never adopted.
	Start(ctx context.Context, task Task, attempt int) error
	// Poll observes an attempt. An attempt that was never started, or of which nothing is left, is MoverAbsent.
	Poll(ctx context.Context, task Task, attempt int) (MoverState, error)
	// Stop ends every attempt of the task and removes what they left in the cluster. It returns true when nothing is
	// left, and false while something still ends; it is called again until then. It never touches the store.
	Stop(ctx context.Context, task Task) (gone bool, err error)
}

// TaskRef names a task of an owner.
type TaskRef struct {
	Role Role
	Slot string
}

// TaskLister tells which tasks of an owner have left anything: what a Stop of each would have to remove. A Mover that
// is used by the loop of package scheduled implements it.
type TaskLister interface {
	Tasks(ctx context.Context, owner Owner) ([]TaskRef, error)
}

// MoverPhase is what is observed of an attempt.
type MoverPhase string

// The phases of an attempt.
const (
	MoverAbsent   MoverPhase = "Absent"
	MoverStarting MoverPhase = "Starting"
	MoverRunning  MoverPhase = "Running"
	MoverEnded    MoverPhase = "Ended"
)

// MoverState is an observation of one attempt.
type MoverState struct {
	Phase MoverPhase
	// Since is when the attempt entered its phase, as far as that can be observed; zero when it cannot.
	Since time.Time
	// Reason and Message say what a starting attempt waits for, in the scheduler's or the kubelet's own words.
	Reason  string
	Message string
	// Result is set exactly when the phase is MoverEnded. An attempt whose result cannot be known has a failed one
	// with Retry set: unknown is not success.
	Result *contract.Result
	// Progress is the newest progress of a running attempt; nil while unknown.
	Progress *contract.Progress
}

// Task is one operation for one owner and slot.
type Task struct {
	Owner Owner
	Role  Role
	// Slot is the id of the slot that the task belongs to, a DNS label.
	Slot    string
	Request contract.Request
	// Repository is the URL of the repository, without credentials.
	Repository string
	Volumes    Volumes
	Secrets    Secrets
	Pod        PodSettings
	Deadlines  MoverDeadlines
}

// Name returns the name of what runs an attempt of the task.
func (t Task) Name(attempt int) string { return t.Owner.ChildName(t.Role, t.Slot, attempt) }

// Volumes are the claims that a task mounts, each by name in the owner's namespace; empty for none.
type Volumes struct {
	// Source is mounted read-only and backed up.
	Source string
	// Target is restored into.
	Target string
	// Destination holds the repository of a file: URL, at DestinationPath.
	Destination string
}

// Where a task's volumes are mounted in a Pod. A file: URL of a repository starts with DestinationPath.
const (
	SourcePath      = "/pvcbackup/source"
	TargetPath      = "/pvcbackup/target"
	DestinationPath = "/pvcbackup/destination"
)

// Secrets are references to Secrets of the owner's namespace. Their contents are never read by the operator.
type Secrets struct {
	// Password and PasswordKey name the Secret and the key that hold the repository's password. Empty for tasks that
	// need none.
	Password    string
	PasswordKey string
	// Credentials names the Secret whose keys become the mover's environment (AWS_ACCESS_KEY_ID and the like).
	// Empty for none.
	Credentials string
	// CredentialsOptional lets the mover start when that Secret does not exist.
	CredentialsOptional bool
}

// Privilege is what a mover's Pod may do.
type Privilege string

// The privileges.
const (
	// Restricted fits the Pod Security Standard "restricted": no root, no capabilities.
	Restricted Privilege = "Restricted"
	// Baseline fits the Pod Security Standard "baseline": uid 0 with every capability dropped but DAC_OVERRIDE, and for
	// restores CHOWN, FOWNER, FSETID, SETFCAP and MKNOD.
	Baseline Privilege = "Baseline"
)

// PodSettings is what a Pod gets beyond what the task itself needs. The zero value is a restricted Pod with the
// cluster's defaults.
type PodSettings struct {
	Privilege Privilege
	// RunAsUser and RunAsGroup are the uid and gid of a restricted mover; nil means the mover image's own.
	RunAsUser  *int64
	RunAsGroup *int64
	// SupplementalGroups are further gids of a restricted mover.
	SupplementalGroups []int64

	Resources          corev1.ResourceRequirements
	ServiceAccountName string
	NodeSelector       map[string]string
	Tolerations        []corev1.Toleration
	Affinity           *corev1.Affinity
	PriorityClassName  string
	ImagePullSecrets   []corev1.LocalObjectReference
}

// MoverDeadlines bound one attempt. Zero means no bound.
type MoverDeadlines struct {
	// Start is how long an attempt may take until its program runs.
	Start time.Duration
	// NoProgress is how long a running attempt may go without telling progress that differs.
	NoProgress time.Duration
	// Run is how long an attempt may take in all.
	Run time.Duration
}
