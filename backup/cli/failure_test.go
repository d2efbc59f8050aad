package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/google/go-cmp/cmp"

	"example.com/pvcbackup/backup/archiver"
	"example.com/pvcbackup/backup/contract"
	"example.com/pvcbackup/backup/maintain"
	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/backup/restorer"
	"example.com/pvcbackup/blobstore"
)

func TestEveryKindOfErrorHasItsReasonExitCodeAndHint(t *testing.T) {
	type outcome struct {
		Reason string
		Retry  bool
		Exit   int
	}
	for name, tc := range map[string]struct {
		err  error
		want outcome
	}{
		"unreadable":        {&archiver.UnreadableError{Paths: []string{"a"}, Count: 1, Err: fs.ErrPermission}, outcome{contract.ReasonCannotRead, false, 1}},
		"usage":             {usage(errors.New("x")), outcome{contract.ReasonInvalidRequest, false, 2}},
		"no driver":         {&blobstore.SchemeError{Scheme: "x"}, outcome{contract.ReasonStoreInvalid, false, 2}},
		"not empty":         {&restorer.NotEmptyError{Target: "t"}, outcome{contract.ReasonTargetNotEmpty, false, 1}},
		"conflict":          {&restorer.ConflictError{Path: "p"}, outcome{contract.ReasonTargetNotEmpty, false, 1}},
		"target full":       {&restorer.SpaceError{Path: "p", Err: errors.New("x")}, outcome{contract.ReasonNoSpace, false, 1}},
		"path":              {&restorer.PathError{Path: "p"}, outcome{contract.ReasonSnapshotNotFound, false, 1}},
		"mismatch":          {&restorer.MismatchError{Path: "p"}, outcome{contract.ReasonVerifyFailed, true, 1}},
		"password":          {repo.ErrWrongPassword, outcome{contract.ReasonWrongPassword, false, 12}},
		"absent":            {repo.ErrAbsent, outcome{contract.ReasonRepositoryMissing, false, 10}},
		"half":              {repo.ErrHalfInitialised, outcome{contract.ReasonRepositoryBroken, false, 1}},
		"exists":            {repo.ErrAlreadyInitialised, outcome{contract.ReasonRepositoryForeign, false, 1}},
		"foreign":           {repo.ErrForeignOwner, outcome{contract.ReasonRepositoryForeign, false, 1}},
		"version":           {repo.ErrVersion, outcome{contract.ReasonRepositoryBroken, false, 1}},
		"unverified":        {repo.ErrUnverified, outcome{contract.ReasonVerifyFailed, true, 1}},
		"locked":            {&repo.LockedError{}, outcome{contract.ReasonLocked, true, 11}},
		"lock lost":         {fmt.Errorf("%w: %w", repo.ErrLockLost, context.Canceled), outcome{contract.ReasonLocked, true, 11}},
		"repository clock":  {repo.ErrClockSkew, outcome{contract.ReasonStoreUnavailable, true, 1}},
		"doubt":             {fmt.Errorf("%w: %w", maintain.ErrDoubt, repo.ErrDamaged), outcome{contract.ReasonRepositoryBroken, false, 1}},
		"in use":            {maintain.ErrInUse, outcome{contract.ReasonRepositoryForeign, false, 1}},
		"young":             {maintain.ErrYoung, outcome{contract.ReasonLocked, true, 11}},
		"damaged":           {&repo.DamagedError{File: "data/x", Err: errors.New("x")}, outcome{contract.ReasonVerifyFailed, true, 1}},
		"permission":        {blobstore.ErrPermission, outcome{contract.ReasonStoreDenied, false, 1}},
		"bucket":            {blobstore.ErrNoBucket, outcome{contract.ReasonStoreInvalid, false, 2}},
		"store clock":       {blobstore.ErrClockSkew, outcome{contract.ReasonStoreUnavailable, true, 1}},
		"store full":        {blobstore.ErrFull, outcome{contract.ReasonStoreUnavailable, true, 1}},
		"unavailable":       {blobstore.ErrUnavailable, outcome{contract.ReasonStoreUnavailable, true, 1}},
		"unsupported":       {blobstore.ErrUnsupported, outcome{contract.ReasonStoreInvalid, false, 2}},
		"invalid":           {blobstore.ErrInvalid, outcome{contract.ReasonStoreInvalid, false, 2}},
		"corrupt":           {blobstore.ErrCorrupt, outcome{contract.ReasonVerifyFailed, true, 1}},
		"cancelled":         {context.Canceled, outcome{contract.ReasonInterrupted, true, 130}},
		"store cancelled":   {blobstore.ErrCanceled, outcome{contract.ReasonInterrupted, true, 130}},
		"target permission": {&fs.PathError{Op: "open", Path: "p", Err: fs.ErrPermission}, outcome{contract.ReasonCannotWrite, false, 1}},
		"anything else":     {errors.New("x"), outcome{contract.ReasonInternal, true, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			result := failure(contract.OperationBackup, fmt.Errorf("while testing: %w", tc.err))
			if diff := cmp.Diff(tc.want, outcome{result.Reason, result.Retry, result.ExitCode()}); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if result.Outcome != contract.Failed || result.Message == "" {
				t.Errorf("got %+v", result)
			}
		})
	}
}
