package blockdev

import (
	"errors"
	"fmt"

	"example.com/pvcbackup/backup/restorer"
	"golang.org/x/sys/unix"
)

// ErrOption means that an option has a value that cannot be used.
var ErrOption = errors.New("invalid option for the backup of a volume")

// ChangesError says why a list of ranges cannot be relied on.
type ChangesError struct {
	// Index counts the ranges from 0. It is -1 when the list as a whole is meant.
	Index int
	Range Range
	// Problem is a clause.
	Problem string
	// Err is the source's own error, if there is one.
	Err error
}

func (e *ChangesError) Error() string {
	text := "the list of ranges cannot be used: " + e.Problem
	if e.Index >= 0 {
		text = fmt.Sprintf("range %d of the list, %d bytes at %d, cannot be used: %s",
			e.Index, e.Range.Length, e.Range.Offset, e.Problem)
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns the source's error.
func (e *ChangesError) Unwrap() error { return e.Err }

// SourceError says why something cannot be backed up as a volume.
type SourceError struct {
	Path string
	// Problem is a clause that says what to do.
	Problem string
}

func (e *SourceError) Error() string {
	return fmt.Sprintf("%.300q is not a volume: %s", e.Path, e.Problem)
}

// Reason is the condition reason for reconcilers.
func (e *SourceError) Reason() string { return "InvalidRequest" }

// Terminal reports that trying again is of no use.
func (e *SourceError) Terminal() bool { return true }

// TargetError says why a target cannot be restored to. errors.Is finds restorer.ErrNotEmpty and restorer.ErrNoSpace
// where they are the reason.
type TargetError struct {
	Path string
	// Problem is a clause that says what to do.
	Problem string
	Err     error
}

func (e *TargetError) Error() string { return fmt.Sprintf("target %.300q: %s", e.Path, e.Problem) }

// Unwrap returns what kind of problem it is, or the system's error.
func (e *TargetError) Unwrap() error { return e.Err }

// Reason is the condition reason for reconcilers.
func (e *TargetError) Reason() string {
	switch {
	case errors.Is(e.Err, restorer.ErrNotEmpty):
		return "TargetNotEmpty"
	case errors.Is(e.Err, restorer.ErrNoSpace):
		return "TargetFull"
	case e.inUse():
		return "MoverCannotWrite"
	}
	return "InvalidRequest"
}

// Terminal reports that trying again is of no use, but for a target in use.
func (e *TargetError) Terminal() bool { return !e.inUse() }

func (e *TargetError) inUse() bool {
	return errors.Is(e.Err, unix.EBUSY) || errors.Is(e.Err, unix.EWOULDBLOCK)
}
