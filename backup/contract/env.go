package contract

// The mover's environment. Every path and URL has a variable of its own, so that whatever runs the Pod can see which
// values name places in the Pod's file system.
const (
	// EnvRequest holds the Request as JSON.
	EnvRequest = "PVCBACKUP_REQUEST"
	// EnvRepository holds the repository's URL, without credentials.
	EnvRepository = "PVCBACKUP_REPOSITORY"
	// EnvPassword holds the repository's password; a reference to a Secret in a Pod.
	EnvPassword = "PVCBACKUP_PASSWORD"
	// EnvSource holds the folder to back up.
	EnvSource = "PVCBACKUP_SOURCE"
	// EnvTarget holds the folder to restore into.
	EnvTarget = "PVCBACKUP_TARGET"
	// EnvDestination holds the folder that the destination volume is mounted at. A file: repository must lie below it;
	// without it a file: repository is refused.
	EnvDestination = "PVCBACKUP_DESTINATION"
	// EnvResultFile holds the path that the Result is written to. Unset means DefaultResultFile.
	EnvResultFile = "PVCBACKUP_RESULT_FILE"
	// EnvPodName and EnvPodUID hold the Pod's own name and UID, from the downward API; together with the request's
	// Locks.Owner they make the host name under which the mover takes repository locks.
	EnvPodName = "PVCBACKUP_POD_NAME"
	EnvPodUID  = "PVCBACKUP_POD_UID"
)

// DefaultResultFile is where Kubernetes looks for a container's termination message unless told otherwise.
const DefaultResultFile = "/dev/termination-log"

// PasswordKey is the key below which a Secret holds a repository's password.
const PasswordKey = "password"

// Tags of repository snapshots, written as "name=value" (restic splits tag filters at commas: values hold none).
const (
	// TagOwner names the object that asked for the backup, by UID. Deleting an object forgets snapshots with its UID.
	TagOwner = "backup-uid"
	// TagSlot names the slot that the snapshot is of.
	TagSlot = "slot"
	// TagKind names what asked for the run: scheduled, create or manual.
	TagKind = "kind"
	// TagClaim names the claim by UID, since a claim's name may be used again.
	TagClaim = "pvc-uid"
)
