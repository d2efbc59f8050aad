// Package treewalk visits every tree that some trees lead to.
//
// # What it does
//
// Walk fetches trees in batches, so that neighbours come with one request, and visits each once, in no order. It is for
// what concerns every tree: finding out what is in use, checking, copying.
//
// # Minimal use
//
//	seen := map[repo.ID]bool{}
//	visit := func(at treewalk.Place, encoded []byte, err error) (below []treewalk.Place, stop error) { … }
//	err := treewalk.Walk(ctx, r, []treewalk.Place{{Tree: root, Path: "/"}}, seen, visit)
//
// # Guarantees
//
// A tree that cannot be read is given to visit with its error, and the others are still visited. There is no recursion,
// so that a hostile depth costs memory and not the stack.
//
// # What it never does
//
// It does not look into trees: visit says what is below one.
package treewalk

import (
	"context"

	"example.com/pvcbackup/backup/repo"
)

// Place is a tree and the first path that led to it, which is only for messages.
type Place struct {
	Tree repo.ID
	Path string
}

// Visit gets a tree, or why it cannot be read, and returns the trees below it; its error ends the walk. encoded is
// valid until it returns.
type Visit func(at Place, encoded []byte, err error) ([]Place, error)

// batchSize is how many trees are fetched together.
const batchSize = 256

// Walk visits every tree that can be reached from the roots once. seen holds what was visited, and may hold what was
// before. The index must be loaded.
func Walk(ctx context.Context, r *repo.Repository, roots []Place, seen map[repo.ID]bool, visit Visit) error {
	pending := enter(nil, roots, seen)
	for len(pending) > 0 {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		n := min(len(pending), batchSize)
		batch := append([]Place(nil), pending[len(pending)-n:]...)
		pending = pending[:len(pending)-n]
		below, err := visitBatch(ctx, r, batch, visit)
		if err != nil {
			return err
		}
		pending = enter(pending, below, seen)
	}
	return nil
}

func enter(pending, places []Place, seen map[repo.ID]bool) []Place {
	for _, at := range places {
		if !seen[at.Tree] {
			seen[at.Tree] = true
			pending = append(pending, at)
		}
	}
	return pending
}

func visitBatch(ctx context.Context, r *repo.Repository, batch []Place, visit Visit) (below []Place, stop error) {
	open := make(map[repo.ID]Place, len(batch))
	handles := make([]repo.BlobHandle, 0, len(batch))
	for _, at := range batch {
		open[at.Tree] = at
		handles = append(handles, repo.BlobHandle{Type: repo.TreeBlob, ID: at.Tree})
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
		if _, left := open[at.Tree]; !left {
			continue
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		encoded, err := r.LoadBlob(ctx, repo.BlobHandle{Type: repo.TreeBlob, ID: at.Tree}, nil)
		if err := one(at.Tree, encoded, err); err != nil {
			return nil, err
		}
	}
	return below, nil
}
