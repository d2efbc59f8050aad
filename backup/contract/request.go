package contract

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Version is the version of Request and Result. A mover refuses a request of another version, so that an operator and
// a mover image that do not belong together fail with a message that says so.
const Version = 1

// Operation is what a mover is asked to do.
type Operation string

// The operations.
const (
	// OperationLookup finds out whether a repository exists, without its password.
	OperationLookup Operation = "lookup"
	// OperationBackup backs up the source folder.
	OperationBackup Operation = "backup"
	// OperationRestore restores into the target folder.
	OperationRestore Operation = "restore"
	// OperationMaintain forgets snapshots by the keep rules and prunes what nothing refers to any more.
	OperationMaintain Operation = "maintain"
	// OperationDelete forgets the snapshots of one owner, prunes, and removes the repository when none remain.
	OperationDelete Operation = "delete"
)

// Request is what the operator asks of one mover.
type Request struct {
	Version   int       `json:"version"`
	Operation Operation `json:"operation"`
	// Identity says which snapshots of the repository belong to the claim.
	Identity Identity `json:"identity"`
	// Locks says which locks in the repository are known to be dead.
	Locks Locks `json:"locks"`
	// RepositoryID is the repository that must be found. Empty before the first success, or when it is unknown.
	RepositoryID string `json:"repositoryID,omitempty"`

	Backup   *Backup   `json:"backup,omitempty"`
	Restore  *Restore  `json:"restore,omitempty"`
	Maintain *Maintain `json:"maintain,omitempty"`
	Delete   *Delete   `json:"delete,omitempty"`
}

// Identity is how a repository's snapshots name their source. Selections of snapshots go by Host and Path.
type Identity struct {
	// Host is the cluster's id, written as the snapshot's host name.
	Host string `json:"host"`
	// Path is /namespace/claim, written as the snapshot's only path.
	Path string `json:"path"`
}

// Locks is what the operator knows about locks that a killed Pod may have left behind, as of the moment at which it
// looked: of the Jobs that it had started before, those in Live may still run, and all others have ended. It knows
// nothing of Jobs that it started later, which a mover whose Pod was slow to start may meet.
type Locks struct {
	// Owner starts the host name of every lock of this owner's movers. Empty: no lock is known to be dead.
	Owner string `json:"owner,omitempty"`
	// AsOf is when the operator looked, in milliseconds since 1970. It is part of the host name of the mover's own locks.
	AsOf int64 `json:"asOf,omitempty"`
	// Live are the names of the owner's Jobs that may still run; their Pods' names start with "<Job>-".
	Live []string `json:"live,omitempty"`
}

// HostName returns the host name under which a mover takes locks: unique for every Pod, even one of the same name.
func (l Locks) HostName(podName, podUID string) string {
	return strings.Join([]string{l.Owner, strconv.FormatInt(l.AsOf, 10), podName, podUID}, "/")
}

// Dead reports whether the lock of that host is known to be left over by a Pod that ended: one of this owner's, of a Job
// that was started before the operator looked, and that did not run any more then.
func (l Locks) Dead(host string) bool {
	parts := strings.Split(host, "/")
	if len(parts) != 4 || l.Owner == "" || parts[0] != l.Owner {
		return false
	}
	started, err := strconv.ParseInt(parts[1], 10, 64)
	if err != nil || started >= l.AsOf {
		return false
	}
	return !slices.ContainsFunc(l.Live, func(job string) bool { return strings.HasPrefix(parts[2], job+"-") })
}

// Backup asks for one backup.
type Backup struct {
	// Run names the run in the repository: one run has one snapshot, however often it is tried.
	Run string `json:"run"`
	// Time is when the volume's contents were frozen: the snapshot's time. Zero means now.
	Time time.Time `json:"time,omitzero"`
	// Tags are written into the snapshot.
	Tags []string `json:"tags,omitempty"`
	// Initialize allows the repository to be created when it is proven absent.
	Initialize bool `json:"initialize,omitempty"`
	// Owner is written into the repository when it is created, and must match where one is found.
	Owner string `json:"owner,omitempty"`
	// SampleBlobs is how many randomly chosen blobs are read back from the store before success. Zero means the
	// mover's default; negative means none.
	SampleBlobs int `json:"sampleBlobs,omitempty"`
}

// Restore asks for one restore. Of SnapshotID, AsOf and Offset at most one is set; none means the newest complete one.
type Restore struct {
	// SnapshotID is a snapshot's id, or a unique prefix of one.
	SnapshotID string `json:"snapshotID,omitempty"`
	// AsOf chooses the newest snapshot taken at or before this time.
	AsOf time.Time `json:"asOf,omitzero"`
	// Offset chooses an older one: 1 is the one before the newest.
	Offset int `json:"offset,omitempty"`
	// AnyHost and AnyPath widen the selection for repositories written by other programs: with them Identity's host
	// or path may be empty.
	AnyHost bool `json:"anyHost,omitempty"`
	AnyPath bool `json:"anyPath,omitempty"`
	// Tags must all be on the snapshot.
	Tags []string `json:"tags,omitempty"`
	// Path restores only what lies below this path of the snapshot's tree.
	Path string `json:"path,omitempty"`
	// Overwrite is what happens to files that exist: "" refuses a target that is not empty, "IfChanged", "Always" and
	// "Never" are explicit choices.
	Overwrite string `json:"overwrite,omitempty"`
	// AllowAbsent lets a restore succeed with nothing when it is proven that the store holds no backup.
	AllowAbsent bool `json:"allowAbsent,omitempty"`
}

// Maintain asks for forget and prune.
type Maintain struct {
	// Keep are the keep rules. All zero keeps every snapshot.
	Keep Keep `json:"keep"`
	// TimeZone is the zone in which days and weeks are counted. Empty means UTC.
	TimeZone string `json:"timeZone,omitempty"`
}

// Keep says how many snapshots of each kind are kept.
type Keep struct {
	Last    int `json:"last,omitempty"`
	Hourly  int `json:"hourly,omitempty"`
	Daily   int `json:"daily,omitempty"`
	Weekly  int `json:"weekly,omitempty"`
	Monthly int `json:"monthly,omitempty"`
	Yearly  int `json:"yearly,omitempty"`
	// Within keeps everything newer than this before the newest good snapshot, written like 2y5m7d3h.
	Within string `json:"within,omitempty"`
}

// Delete asks to forget one owner's snapshots.
type Delete struct {
	// OwnerUID is the object whose snapshots are forgotten.
	OwnerUID string `json:"ownerUID"`
}

// Encode returns the request as JSON.
func (r Request) Encode() (string, error) {
	r.Version = Version
	if err := r.validate(); err != nil {
		return "", err
	}
	text, err := json.Marshal(r)
	return string(text), err
}

// DecodeRequest reads what Encode wrote. Another version, an unknown operation or a missing part is an error.
func DecodeRequest(text string) (Request, error) {
	var r Request
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return Request{}, fmt.Errorf("%s does not hold a request: %w", EnvRequest, err)
	}
	if r.Version != Version {
		return Request{}, fmt.Errorf("%s has version %d and this mover knows %d: use the mover image of the operator's release",
			EnvRequest, r.Version, Version)
	}
	return r, r.validate()
}

func (r Request) validate() error {
	part := map[Operation]bool{
		OperationLookup:   true,
		OperationBackup:   r.Backup != nil,
		OperationRestore:  r.Restore != nil,
		OperationMaintain: r.Maintain != nil,
		OperationDelete:   r.Delete != nil,
	}
	present, known := part[r.Operation]
	switch {
	case !known:
		return fmt.Errorf("operation %.40q is not known", r.Operation)
	case !present:
		return fmt.Errorf("operation %q lacks its part %q", r.Operation, r.Operation)
	case r.Operation == OperationBackup && r.Backup.Run == "":
		return fmt.Errorf("operation %q lacks the name of its run", r.Operation)
	case r.Operation == OperationDelete && r.Delete.OwnerUID == "":
		return fmt.Errorf("operation %q lacks the owner's UID", r.Operation)
	}
	return nil
}
