package restorer

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"time"
)

// Overwrite says what becomes of what is in the target already.
type Overwrite uint8

const (
	// RefuseNonEmpty restores only into an empty target. lost+found does not count.
	RefuseNonEmpty Overwrite = iota
	// IfChanged keeps files whose content is equal, after hashing them, and replaces the others. Files that an
	// interrupted restore of the same user has left are completed in place.
	IfChanged
	// Always replaces every file.
	Always
	// Never leaves everything that exists as it is, and adds what is missing.
	Never
)

// Options refines Restore. The zero value restores everything into an empty directory and verifies it.
type Options struct {
	// Path restores only what is there, relative to the source: a directory's content, or a single file. Empty: all.
	// The metadata of the target itself is restored only with all.
	Path string
	// Overwrite is what to do about what exists.
	Overwrite Overwrite
	// Delete removes what is in the target and not in the snapshot, but for lost+found.
	Delete bool
	// SkipOwners leaves users and groups as they come.
	SkipOwners bool
	// NoHoles writes zeros out. Otherwise what is zero for 64 KiB becomes a hole.
	NoHoles bool
	// SkipVerify does not read files again after they were written.
	SkipVerify bool
	// DryRun counts and changes nothing.
	DryRun bool
	// Concurrency is how many workers write files. 0: 4.
	Concurrency int
	// MemoryBudget bounds the buffers, in bytes; the index and the trees come on top. 0: 192 MiB. Each worker takes
	// 48 MiB, and there is always one.
	MemoryBudget int64
	// Progress is called about once a ProgressInterval (0: one second), and at the end. nil: not called.
	Progress         func(Progress)
	ProgressInterval time.Duration
}

// Progress is how far a restore has come.
type Progress struct {
	// Files and Bytes are done.
	Files, Bytes uint64
	// TotalFiles and TotalBytes are what the snapshot's summary says of the whole snapshot; zero if it says nothing.
	TotalFiles, TotalBytes uint64
}

const perWorker = 48 << 20

var errOption = errors.New("invalid restore option")

func (o Options) withDefaults() (Options, error) {
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
	if o.Overwrite > Never {
		return o, fmt.Errorf("%w: overwrite policy %d is unknown", errOption, o.Overwrite)
	}
	clean := strings.Trim(path.Clean("/"+o.Path), "/")
	if strings.Trim(o.Path, "/") != clean {
		return o, fmt.Errorf("%w: path is %q: use a clean path below the source such as dir/file", errOption, o.Path)
	}
	o.Path = clean
	if o.Delete && (o.Overwrite == Never || o.Path != "") {
		return o, fmt.Errorf("%w: delete needs a whole snapshot and a policy that replaces files", errOption)
	}
	return o, nil
}
