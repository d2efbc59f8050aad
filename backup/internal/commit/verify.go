package commit

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"

	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/backup/repo/tree"
)

// Trees remembers the trees of a snapshot, and which of them the run has fetched, as the parent's. The zero value is
// empty.
type Trees struct {
	mu             sync.Mutex
	saved, fetched map[repo.ID]struct{}
}

// Saved notes a tree of the snapshot.
func (t *Trees) Saved(id repo.ID) { t.add(&t.saved, id) }

// Fetched notes a tree that was read from the store, and of which all that it refers to was looked up.
func (t *Trees) Fetched(id repo.ID) { t.add(&t.fetched, id) }

func (t *Trees) add(set *map[repo.ID]struct{}, id repo.ID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if *set == nil {
		*set = map[repo.ID]struct{}{}
	}
	(*set)[id] = struct{}{}
}

// unseen returns the trees that nobody has fetched yet. An index that lists a tree proves little: its pack may be one
// that the store confirmed and lost.
func (t *Trees) unseen() []repo.BlobHandle {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []repo.BlobHandle
	for id := range t.saved {
		if _, ok := t.fetched[id]; !ok {
			out = append(out, repo.BlobHandle{Type: repo.TreeBlob, ID: id})
		}
	}
	return out
}

// Sample is a few data blobs of a snapshot, every one as likely as any other.
type Sample struct {
	size int

	mu    sync.Mutex
	seen  int
	blobs []repo.BlobHandle
}

// NewSample keeps up to size blobs; of packs as many are read back.
func NewSample(size int) *Sample { return &Sample{size: size} }

// Add offers the content of a file.
func (s *Sample) Add(content []repo.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range content {
		h := repo.BlobHandle{Type: repo.DataBlob, ID: c}
		if s.seen++; len(s.blobs) < s.size {
			s.blobs = append(s.blobs, h)
		} else if at := rand.IntN(s.seen); at < s.size {
			s.blobs[at] = h
		}
	}
}

// Verify looks at what a snapshot of this root tree is going to rely on, in the index and in the store. The error is
// that of the store, or repo.ErrUnverified or repo.ErrDamaged, and names what is wrong.
func Verify(ctx context.Context, r *repo.Repository, root repo.ID, written repo.Written,
	trees *Trees, sample *Sample) error {
	if root.IsZero() {
		return fmt.Errorf("the root tree has no ID: %w", repo.ErrUnverified)
	}
	if err := indexed(r, repo.TreeBlob, root); err != nil {
		return err
	}
	if err := r.VerifyWritten(ctx, written, sample.size); err != nil {
		return err
	}
	err := r.LoadBlobs(ctx, trees.unseen(), func(h repo.BlobHandle, text []byte) error {
		for n, err := range tree.All(text) {
			if err == nil {
				err = allIndexed(r, n)
			}
			if err != nil {
				return fmt.Errorf("tree %s: %w", h.ID.Short(), err)
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read the trees back: %w", err)
	}
	if err := r.LoadBlobs(ctx, sample.blobs, func(repo.BlobHandle, []byte) error { return nil }); err != nil {
		return fmt.Errorf("read a sample back: %w", err)
	}
	return nil
}

// allIndexed holds for the parent's trees, too: what they refer to was looked up when it was taken over.
func allIndexed(r *repo.Repository, n *tree.Node) error {
	for _, c := range n.Content {
		if err := indexed(r, repo.DataBlob, c); err != nil {
			return fmt.Errorf("%q: %w", n.Name, err)
		}
	}
	if n.Type == tree.Dir {
		return indexed(r, repo.TreeBlob, n.Subtree)
	}
	return nil
}

func indexed(r *repo.Repository, t repo.BlobType, id repo.ID) error {
	if h := (repo.BlobHandle{Type: t, ID: id}); !r.Has(h) {
		return fmt.Errorf("%v is not in the index: %w", h, repo.ErrUnverified)
	}
	return nil
}
