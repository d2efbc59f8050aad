package archiver

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"example.com/pvcbackup/backup/repo"
	"golang.org/x/sys/unix"
)

// Counts compares with the parent. Without one everything is new.
type Counts struct{ New, Changed, Unmodified uint64 }

// Total is the sum of all.
func (c Counts) Total() uint64 { return c.New + c.Changed + c.Unmodified }

// Paths is a list that is cut off.
type Paths struct {
	// First are the first ones, relative to the source.
	First []string
	// Count is how many there are.
	Count int
}

// Result is what a run did.
type Result struct {
	SnapshotID repo.ID
	// Parent is the snapshot that was compared with; zero for none.
	Parent repo.ID
	// Tree is the root: a directory with the wrapper in it.
	Tree repo.ID
	// Files, Dirs and Bytes compare with the parent. Bytes are those of files.
	Files, Dirs, Bytes Counts
	// Added is what was stored, in bytes before compression; AddedPacked is what that takes in the store.
	Added, AddedPacked uint64
	// Sockets are counted and left out.
	Sockets int
	// Changed are files that were changed while they were read.
	Changed Paths
	// Lossy are entries with attribute names that are not UTF-8, which the format cannot keep.
	Lossy Paths
	// Unreadable is empty unless Partial.
	Unreadable Paths
	// Empty says that there was nothing in the source; Partial that not all could be read.
	Empty, Partial bool
	// Chunker is how files were cut.
	Chunker Chunker
	// Duration is that of the whole call.
	Duration time.Duration
	// ReusedRun says that the snapshot is of an earlier call for this run, and that this one did nothing, or lost to it.
	ReusedRun bool
}

// tally is a Result in the making.
type tally struct {
	files, dirs, bytes          [3]atomic.Uint64
	filesDone, dirsDone         atomic.Uint64
	bytesDone                   atomic.Uint64
	sockets                     atomic.Int64
	totalFiles, totalBytes      atomic.Uint64
	counted                     atomic.Bool // the totals are complete
	changed, lossy, unreadables pathList
	firstCause                  error
	mu                          sync.Mutex
}

type kind int

const (
	isNew kind = iota
	isChanged
	isUnmodified
)

func counts(c *[3]atomic.Uint64) Counts {
	return Counts{New: c[isNew].Load(), Changed: c[isChanged].Load(), Unmodified: c[isUnmodified].Load()}
}

func (t *tally) file(k kind, size uint64) {
	t.files[k].Add(1)
	t.bytes[k].Add(size)
	t.filesDone.Add(1)
}

func (t *tally) dir(k kind) {
	t.dirs[k].Add(1)
	t.dirsDone.Add(1)
}

func (t *tally) unreadable(path string, err error) {
	t.mu.Lock()
	if t.firstCause == nil {
		t.firstCause = err
	}
	t.mu.Unlock()
	t.unreadables.add(fmt.Sprintf("%.300q (%v)", path, err))
}

// pathList is a Paths in the making.
type pathList struct {
	mu sync.Mutex
	p  Paths
}

func (l *pathList) add(path string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.p.Count++; len(l.p.First) < maxListed {
		l.p.First = append(l.p.First, path)
	}
}

func (l *pathList) get() Paths {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Paths{First: append([]string(nil), l.p.First...), Count: l.p.Count}
}

// ours reports whether an error is about this process rather than about one file.
func ours(err error) bool {
	return errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) || errors.Is(err, unix.ENOMEM)
}
