package blockdev

import (
	"errors"
	"fmt"
	"time"

	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/backup/restorer"
	"golang.org/x/sys/unix"
)

// RestoreOptions refines RestoreToDevice and RestoreToFile. The zero value writes the volume of a snapshot to a target
// that is not in use, and verifies it.
type RestoreOptions struct {
	// Path is the file of the snapshot that is written, relative to the source. Empty: the volume. It makes an image out
	// of a snapshot that somebody made of a folder, or with restic.
	Path string
	// Overwrite writes to a device that looks used, and replaces a file that exists.
	Overwrite bool
	// Zeroed says that the device is known to read as zeros, so that none are written. That is verified like the rest.
	Zeroed bool
	// SkipVerify does not read the target again.
	SkipVerify bool
	// Concurrency is how many workers write. 0: 4.
	Concurrency int
	// MemoryBudget bounds the buffers, in bytes; the index and the list of chunks come on top. 0: 192 MiB. Each worker
	// takes 48 MiB, and there is always one.
	MemoryBudget int64
	// Progress is called about once a ProgressInterval (0: one second), and at the end. nil: not called.
	Progress         func(Progress)
	ProgressInterval time.Duration
}

const perWorker = 48 * mib

func (o RestoreOptions) withDefaults() RestoreOptions {
	if o.Concurrency <= 0 {
		o.Concurrency = 4
	}
	if o.MemoryBudget <= 0 {
		o.MemoryBudget = 4 * perWorker
	}
	o.Concurrency = int(max(1, min(int64(o.Concurrency), o.MemoryBudget/perWorker)))
	if o.ProgressInterval <= 0 {
		o.ProgressInterval = time.Second
	}
	return o
}

// RestoreResult is what a restore did. Sizes are in bytes.
type RestoreResult struct {
	SnapshotID repo.ID
	// Size is the volume's, TargetSize the target's. What a device has beyond the volume is left alone.
	Size, TargetSize int64
	// Written is data; Zeroed was made to read as zeros; Holes are zeros that were there already.
	Written, Zeroed, Holes int64
	// Verified says that everything was read again and compared.
	Verified bool
	Duration time.Duration
}

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
