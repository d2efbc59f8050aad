package maintain

import (
	"context"

	"example.com/pvcbackup/backup/repo"
)

// place is a tree and the first path that led to it, which is only for messages.
type place struct {
	tree repo.ID
	path string
}

// batchSize is how many trees are fetched together: neighbours come with one request.
const batchSize = 256

// walk visits every tree that can be reached from the roots once. visit gets the tree, or why it cannot be read, and
// returns the trees below it; its error ends the walk. There is no recursion, so that a hostile depth costs memory and
// not the stack. seen holds what was visited, and may hold what was before.
func walk(ctx context.Context, r *repo.Repository, roots []place, seen map[repo.ID]bool, visit func(at place, encoded []byte, err error) ([]place, error)) error {
	pending := enter(nil, roots, seen)
	for len(pending) > 0 {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		n := min(len(pending), batchSize)
		batch := append([]place(nil), pending[len(pending)-n:]...)
		pending = pending[:len(pending)-n]
		below, err := visitBatch(ctx, r, batch, visit)
		if err != nil {
			return err
		}
		pending = enter(pending, below, seen)
	}
	return nil
}

func enter(pending, places []place, seen map[repo.ID]bool) []place {
	for _, at := range places {
		if !seen[at.tree] {
			seen[at.tree] = true
			pending = append(pending, at)
		}
	}
	return pending
}

func visitBatch(ctx context.Context, r *repo.Repository, batch []place, visit func(place, []byte, error) ([]place, error)) (below []place, stop error) {
	open := make(map[repo.ID]place, len(batch))
	handles := make([]repo.BlobHandle, 0, len(batch))
	for _, at := range batch {
		open[at.tree] = at
		handles = append(handles, repo.BlobHandle{Type: repo.TreeBlob, ID: at.tree})
	}
	one := func(id repo.ID, encoded []byte, err error) error {
		at := open[id]
		delete(open, id)
		more, err := visit(at, encoded, err)
		below, stop = append(below, more...), err
		return err
	}
	failed := r.LoadBlobs(ctx, handles, func(h repo.BlobHandle, encoded []byte) error { return one(h.ID, encoded, nil) })
	if stop != nil || failed == nil {
		return below, stop
	}
	// One of them cannot be read: find out which.
	for _, at := range batch {
		if _, left := open[at.tree]; !left {
			continue
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		encoded, err := r.LoadBlob(ctx, repo.BlobHandle{Type: repo.TreeBlob, ID: at.tree}, nil)
		if err := one(at.tree, encoded, err); err != nil {
			return nil, err
		}
	}
	return below, nil
}
