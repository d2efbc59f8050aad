package restorer

import (
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
)

// Errors to compare with errors.Is. Each has a type of its own that says more.
var (
	// ErrNotEmpty: the target has something in it. See NotEmptyError.
	ErrNotEmpty = errors.New("the target is not empty")
	// ErrConflict: something is in the way that the policy does not allow to be replaced. See ConflictError.
	ErrConflict = errors.New("something is in the way")
	// ErrNoSpace: the target is full, or a quota or file size limit is reached. See SpaceError.
	ErrNoSpace = errors.New("the target is full")
	// ErrMismatch: what is in the target is not what the snapshot says. See MismatchError.
	ErrMismatch = errors.New("the restored data is not what the snapshot has")
	// ErrNoPath: Options.Path is not in the snapshot. See PathError.
	ErrNoPath = errors.New("the path is not in the snapshot")
)

// NotEmptyError names a few of the entries that are in the target.
type NotEmptyError struct {
	Target string
	Names  []string
}

func (e *NotEmptyError) Error() string {
	return fmt.Sprintf("target %s is not empty (%.200q): empty it, or choose what becomes of what exists", e.Target, strings.Join(e.Names, ", "))
}

// Is makes errors.Is(err, ErrNotEmpty) hold.
func (e *NotEmptyError) Is(target error) bool { return target == ErrNotEmpty }

// Reason is the condition reason for reconcilers.
func (e *NotEmptyError) Reason() string { return "TargetNotEmpty" }

// Terminal reports that trying again is of no use.
func (e *NotEmptyError) Terminal() bool { return true }

// ConflictError says what is in the way of an entry.
type ConflictError struct {
	// Path is relative to the target.
	Path string
	// Problem is a clause.
	Problem string
}

func (e *ConflictError) Error() string { return fmt.Sprintf("%.300q: %s", e.Path, e.Problem) }

// Is makes errors.Is(err, ErrConflict) hold.
func (e *ConflictError) Is(target error) bool { return target == ErrConflict }

// Reason is the condition reason for reconcilers.
func (e *ConflictError) Reason() string { return "TargetConflict" }

// Terminal reports that trying again is of no use.
func (e *ConflictError) Terminal() bool { return true }

// SpaceError says which entry there was no room for.
type SpaceError struct {
	Path string
	Err  error
}

func (e *SpaceError) Error() string {
	return fmt.Sprintf("%.300q: there is no room left in the target: %v", e.Path, e.Err)
}

// Is makes errors.Is(err, ErrNoSpace) hold.
func (e *SpaceError) Is(target error) bool { return target == ErrNoSpace }

// Unwrap returns the system's error.
func (e *SpaceError) Unwrap() error { return e.Err }

// Reason is the condition reason for reconcilers.
func (e *SpaceError) Reason() string { return "TargetFull" }

// Terminal reports that trying again is of no use before the target is larger.
func (e *SpaceError) Terminal() bool { return true }

// MismatchError says what differs. Path is relative to the target, empty when the whole is meant.
type MismatchError struct {
	Path, Field string
	Want, Got   string
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("%.300q: %s is %s and not %s as in the snapshot", e.Path, e.Field, e.Got, e.Want)
}

// Is makes errors.Is(err, ErrMismatch) hold.
func (e *MismatchError) Is(target error) bool { return target == ErrMismatch }

// Reason is the condition reason for reconcilers.
func (e *MismatchError) Reason() string { return "RestoreNotVerified" }

// PathError names the path that is not in the snapshot.
type PathError struct{ Path string }

func (e *PathError) Error() string { return fmt.Sprintf("path %.300q is not in the snapshot", e.Path) }

// Is makes errors.Is(err, ErrNoPath) hold.
func (e *PathError) Is(target error) bool { return target == ErrNoPath }

// Reason is the condition reason for reconcilers.
func (e *PathError) Reason() string { return "PathNotFound" }

// Terminal reports that trying again is of no use.
func (e *PathError) Terminal() bool { return true }

// at says where an error of the system happened, and gives a full target its type.
func at(rel string, err error) error {
	var typed interface{ Reason() string }
	switch {
	case err == nil:
		return nil
	case errors.As(err, &typed):
		return err // it names the place already
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT), errors.Is(err, unix.EFBIG):
		return &SpaceError{Path: rel, Err: err}
	}
	return fmt.Errorf("%.300q: %w", rel, err)
}
