package restorer

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// Shortfall counts what could not be restored because the process or the filesystem does not allow it.
type Shortfall struct {
	Count int
	// First are the first few paths, relative to the target, with the reason.
	First []string
}

// Result is what a restore did.
type Result struct {
	// Entries of the snapshot that are in the target now, by kind. HardLinks are further names of a file.
	Files, Dirs, Symlinks, Specials, HardLinks uint64
	// Bytes of all files; Written is how much of it was written, holes included.
	Bytes, Written uint64
	// Kept files were equal already. Skipped entries existed and were left alone (Never). Deleted were not in the
	// snapshot. Sockets are never restored.
	Kept, Skipped, Deleted, Sockets uint64
	// OwnersRestored is false when owners were not asked for or not permitted; Owners counts the latter.
	OwnersRestored bool
	Owners         Shortfall
	// Modes counts entries without their setuid, setgid or sticky bit, and a target whose own mode and times could
	// not be set.
	Modes Shortfall
	// Xattrs counts attributes that could not be set.
	Xattrs Shortfall
	// NotCreated counts devices and FIFOs that could not be made.
	NotCreated Shortfall
	// Verified says that everything was read again and compared.
	Verified bool
	// DryRun says that nothing was changed.
	DryRun   bool
	Duration time.Duration
}

// tally is a Result in the making. planned counts what was found in the snapshot, done what came of it.
type tally struct {
	planned, done          [kinds]atomic.Uint64
	bytes, written         atomic.Uint64
	kept, skipped, deleted atomic.Uint64
	sockets                atomic.Uint64
	owners, modes          shortfall
	xattrs, notCreated     shortfall
	totalFiles, totalBytes uint64
}

const (
	files = iota
	dirs
	symlinks
	specials
	hardLinks
	kinds
)

type shortfall struct {
	mu sync.Mutex
	s  Shortfall
}

func (s *shortfall) add(rel string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.s.Count++; len(s.s.First) < 20 {
		s.s.First = append(s.s.First, fmt.Sprintf("%.300q (%v)", rel, err))
	}
}

func (r *restore) result() *Result {
	t := &r.tally
	return &Result{
		Files: t.done[files].Load(), Dirs: t.done[dirs].Load(), Symlinks: t.done[symlinks].Load(),
		Specials: t.done[specials].Load(), HardLinks: t.done[hardLinks].Load(),
		Bytes: t.bytes.Load(), Written: t.written.Load(), Kept: t.kept.Load(), Skipped: t.skipped.Load(),
		Deleted: t.deleted.Load(), Sockets: t.sockets.Load(),
		Owners: t.owners.s, OwnersRestored: !r.o.SkipOwners && !r.o.DryRun && t.owners.s.Count == 0,
		Modes: t.modes.s, Xattrs: t.xattrs.s, NotCreated: t.notCreated.s,
		Verified: !r.o.SkipVerify && !r.o.DryRun, DryRun: r.o.DryRun,
	}
}

// complete holds the snapshot against what was done.
func (t *tally) complete() error {
	for k, name := range []string{"files", "directories", "symlinks", "special files", "hard links"} {
		if want, got := t.planned[k].Load(), t.done[k].Load(); want != got {
			return &MismatchError{Field: "the number of " + name, Want: fmt.Sprint(want), Got: fmt.Sprint(got)}
		}
	}
	return nil
}
