package restorer

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"example.com/pvcbackup/backup/internal/fsmeta"
	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/backup/repo/tree"
	"golang.org/x/sys/unix"
)

// DamageError says what could not be restored because the repository does not have it any more as it was written.
// Everything else was restored, and verified if that was asked for. errors.Is(err, repo.ErrDamaged) holds.
type DamageError struct {
	// Count is how many files, further names of files and directories lack. Of a directory whose listing is damaged
	// nobody knows what was in it.
	Count int
	// First are the first few paths, relative to the target; "." is the target itself.
	First []string
	// Err is why the first one is missing. It names the object of the repository.
	Err error
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("everything was restored but %d damaged entries (%.500q, ...): %v", e.Count, strings.Join(e.First, ", "), e.Err)
}

// Unwrap makes errors.Is(err, repo.ErrDamaged) hold, and gives the cause.
func (e *DamageError) Unwrap() []error { return []error{repo.ErrDamaged, e.Err} }

// damage collects what cannot be restored.
type damage struct {
	mu    sync.Mutex
	found DamageError
	// linked are the files among it that have several names.
	linked map[string]bool
}

// lasting reports whether an error means that the repository does not have something, rather than that it could not be
// read now.
func lasting(err error) bool {
	return errors.Is(err, repo.ErrDamaged) || errors.Is(err, repo.ErrNotFound)
}

func (d *damage) add(rel string, n *tree.Node, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.found.Count++; len(d.found.First) < 20 {
		d.found.First = append(d.found.First, rel)
	}
	if d.found.Err == nil {
		d.found.Err = err
	}
	if n.Type == tree.File && n.Links > 1 {
		if d.linked == nil {
			d.linked = map[string]bool{}
		}
		d.linked[rel] = true
	}
}

func (d *damage) err() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.found.Count == 0 {
		return nil
	}
	return &d.found
}

// lacks reports whether a file with several names is among it.
func (d *damage) lacks(rel string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.linked[rel]
}

// lose gives a file up. It may be called for each of its chunks.
func (w *worker) lose(f *file, err error) {
	if f.lost.CompareAndSwap(false, true) {
		w.damage.add(f.rel, f.node, err)
	}
}

// discard removes what was written of a file that was lost, so that nobody takes it for whole.
func (w *worker) discard(f *file) error {
	w.tally.planned[files].Add(^uint64(0))
	if !f.ready {
		return nil // it was not begun
	}
	f.ready = false
	defer unix.Close(f.fd)
	dir, name := split(f.rel)
	dirfd, err := w.dirs.get(dir)
	if err != nil {
		return at(f.rel, err)
	}
	open, err := fsmeta.Fstat(f.fd)
	if err != nil {
		return at(f.rel, err)
	}
	named, err := fsmeta.Lstat(dirfd, name)
	if err != nil || named.Ino != open.Ino || named.Dev != open.Dev {
		return nil // somebody has put something else there
	}
	return at(f.rel, fsmeta.Retry(func() error { return unix.Unlinkat(dirfd, name, 0) }))
}
