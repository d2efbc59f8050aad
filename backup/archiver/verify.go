package archiver

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"

	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/backup/repo/tree"
)

// treeLog remembers the trees of the snapshot, and which of them this run has fetched, as the parent's.
type treeLog struct {
	mu             sync.Mutex
	saved, fetched map[repo.ID]struct{}
}

func (l *treeLog) add(set *map[repo.ID]struct{}, id repo.ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if *set == nil {
		*set = map[repo.ID]struct{}{}
	}
	(*set)[id] = struct{}{}
}

// unseen returns the trees that nobody has fetched yet. An index that lists a tree proves little: its pack may be one
// that the store confirmed and lost.
func (l *treeLog) unseen() []repo.BlobHandle {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []repo.BlobHandle
	for id := range l.saved {
		if _, ok := l.fetched[id]; !ok {
			out = append(out, repo.BlobHandle{Type: repo.TreeBlob, ID: id})
		}
	}
	return out
}

// sample is a few data blobs of the snapshot, every one as likely as any other.
type sample struct {
	mu    sync.Mutex
	size  int
	seen  int
	blobs []repo.BlobHandle
}

func (s *sample) add(content []repo.ID) {
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

// verify looks at what the snapshot is going to rely on, in the index and in the store.
func (b *backup) verify(ctx context.Context, root repo.ID) error {
	if root.IsZero() {
		return fmt.Errorf("the root tree has no ID: %w", repo.ErrUnverified)
	}
	if err := b.indexed(repo.TreeBlob, root); err != nil {
		return err
	}
	if err := b.repo.VerifyWritten(ctx, b.writer.Written(), b.o.Verify.SampleBlobs); err != nil {
		return err
	}
	err := b.repo.LoadBlobs(ctx, b.trees.unseen(), func(h repo.BlobHandle, text []byte) error {
		for n, err := range tree.All(text) {
			if err == nil {
				err = b.allIndexed(n)
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
	if err := b.repo.LoadBlobs(ctx, b.sample.blobs, func(repo.BlobHandle, []byte) error { return nil }); err != nil {
		return fmt.Errorf("read a sample back: %w", err)
	}
	return nil
}

// allIndexed holds for the parent's trees, too: what they refer to was looked up when it was taken over.
func (b *backup) allIndexed(n *tree.Node) error {
	for _, c := range n.Content {
		if err := b.indexed(repo.DataBlob, c); err != nil {
			return fmt.Errorf("%q: %w", n.Name, err)
		}
	}
	if n.Type == tree.Dir {
		return b.indexed(repo.TreeBlob, n.Subtree)
	}
	return nil
}

func (b *backup) indexed(t repo.BlobType, id repo.ID) error {
	if h := (repo.BlobHandle{Type: t, ID: id}); !b.repo.Has(h) {
		return fmt.Errorf("%v is not in the index: %w", h, repo.ErrUnverified)
	}
	return nil
}
