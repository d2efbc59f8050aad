package cli

import (
	"context"
	"errors"
	"io/fs"
	"strings"
	"syscall"

	"example.com/pvcbackup/backup/archiver"
	"example.com/pvcbackup/backup/browse"
	"example.com/pvcbackup/backup/contract"
	"example.com/pvcbackup/backup/copier"
	"example.com/pvcbackup/backup/maintain"
	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/backup/restorer"
	"example.com/pvcbackup/blobstore"
)

// failure turns an error into what operators and people get to know about it.
func failure(operation contract.Operation, err error) contract.Result {
	reason, retry, hint := classify(err)
	message := err.Error()
	if hint != "" && !strings.Contains(message, hint) {
		message += ": " + hint
	}
	result := contract.Result{Version: contract.Version, Operation: operation, Outcome: contract.Failed, Reason: reason, Message: message, Retry: retry}
	var unreadable *archiver.UnreadableError
	if errors.As(err, &unreadable) {
		result.Paths, result.PathCount = unreadable.Paths, unreadable.Count
	}
	return result
}

// causes are tried in this order: what is most specific first.
var causes = []struct {
	target error
	reason string
	retry  bool
	hint   string
}{
	{restorer.ErrNotEmpty, contract.ReasonTargetNotEmpty, false, ""},
	{restorer.ErrConflict, contract.ReasonTargetNotEmpty, false, "remove it, or choose another overwrite policy"},
	{restorer.ErrNoSpace, contract.ReasonNoSpace, false, "make the target larger"},
	{restorer.ErrNoPath, contract.ReasonSnapshotNotFound, false, "look for the path with the command ls"},
	{restorer.ErrMismatch, contract.ReasonVerifyFailed, true, ""},
	{repo.ErrWrongPassword, contract.ReasonWrongPassword, false, "give the password that the repository was made with"},
	{repo.ErrAbsent, contract.ReasonRepositoryMissing, false, "check the URL and the prefix"},
	{repo.ErrHalfInitialised, contract.ReasonRepositoryBroken, false, ""},
	{repo.ErrAlreadyInitialised, contract.ReasonRepositoryForeign, false, "open it with its password, or choose another prefix"},
	{repo.ErrForeignOwner, contract.ReasonRepositoryForeign, false, "choose another prefix"},
	{repo.ErrVersion, contract.ReasonRepositoryBroken, false, ""},
	{repo.ErrUnverified, contract.ReasonVerifyFailed, true, "the store does not keep what it confirms: look for its errors"},
	{repo.ErrLocked, contract.ReasonLocked, true, "a lock that is left over is removed by the command unlock"},
	{repo.ErrLockLost, contract.ReasonLocked, true, ""},
	{repo.ErrClockSkew, contract.ReasonStoreUnavailable, true, ""},
	{browse.ErrNotFile, contract.ReasonInvalidRequest, false, ""},
	{copier.ErrSameRepository, contract.ReasonInvalidRequest, false, "name two different ones"},
	{repo.ErrKeyInUse, contract.ReasonInvalidRequest, false, ""},
	{maintain.ErrPacksMissing, contract.ReasonRepositoryBroken, false, ""},
	{maintain.ErrPacksUnreadable, contract.ReasonRepositoryBroken, false, ""},
	{maintain.ErrDoubt, contract.ReasonRepositoryBroken, false, ""},
	{maintain.ErrInUse, contract.ReasonRepositoryForeign, false, ""},
	{maintain.ErrYoung, contract.ReasonLocked, true, "try again later"},
	{archiver.ErrEmpty, contract.ReasonCannotRead, false, ""},
	{blobstore.ErrPermission, contract.ReasonStoreDenied, false, "check the credentials and what they may do"},
	{blobstore.ErrNoBucket, contract.ReasonStoreInvalid, false, "correct the URL, or create the bucket"},
	{blobstore.ErrClockSkew, contract.ReasonStoreUnavailable, true, "synchronise the clock of this machine"},
	{blobstore.ErrFull, contract.ReasonStoreUnavailable, true, "make room in the store"},
	{blobstore.ErrUnavailable, contract.ReasonStoreUnavailable, true, ""},
	{blobstore.ErrUnsupported, contract.ReasonStoreInvalid, false, ""},
	{blobstore.ErrInvalid, contract.ReasonStoreInvalid, false, ""},
	{repo.ErrDamaged, contract.ReasonVerifyFailed, true, "run check --read-data"},
	{blobstore.ErrCorrupt, contract.ReasonVerifyFailed, true, "run check --read-data"},
	{context.Canceled, contract.ReasonInterrupted, true, ""},
	{blobstore.ErrCanceled, contract.ReasonInterrupted, true, ""},
	{context.DeadlineExceeded, contract.ReasonInterrupted, true, ""},
	{fs.ErrPermission, contract.ReasonCannotWrite, false, "run it with the uid and gid that own the target (in a cluster: mover.runAsUser and mover.runAsGroup, or mover.privilege Baseline)"},
	{syscall.EROFS, contract.ReasonCannotWrite, false, "the target is mounted read-only"},
}

func classify(err error) (reason string, retry bool, hint string) {
	var reasoned *reasonError
	if errors.As(err, &reasoned) {
		return reasoned.reason, reasoned.retry, ""
	}
	var unreadable *archiver.UnreadableError
	if errors.As(err, &unreadable) {
		return contract.ReasonCannotRead, false, rightsHint(err)
	}
	if errors.As(err, &usageError{}) {
		return contract.ReasonInvalidRequest, false, "see pvcbackup --help"
	}
	var scheme *blobstore.SchemeError
	if errors.As(err, &scheme) {
		return contract.ReasonStoreInvalid, false, ""
	}
	for _, cause := range causes {
		if errors.Is(err, cause.target) {
			return cause.reason, cause.retry, cause.hint
		}
	}
	var terminal interface {
		Terminal() bool
		Reason() string
	}
	if errors.As(err, &terminal) {
		return terminal.Reason(), !terminal.Terminal(), ""
	}
	return contract.ReasonInternal, true, ""
}

// rightsHint is for files that could not be read, if it was for the want of rights.
func rightsHint(err error) string {
	if !errors.Is(err, fs.ErrPermission) {
		return ""
	}
	return "run it with the uid and gid that own the files (in a cluster: mover.runAsUser and mover.runAsGroup, or mover.privilege Baseline)"
}

// reasonError is an error that knows its reason.
type reasonError struct {
	reason string
	retry  bool
	err    error
}

func because(reason string, err error) error { return &reasonError{reason: reason, err: err} }

func (e *reasonError) Error() string { return e.err.Error() }
func (e *reasonError) Unwrap() error { return e.err }
