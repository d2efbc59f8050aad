package maintain

import (
	"context"
	"fmt"

	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/backup/repo/tree"
)

// used walks the trees of all snapshots and returns every blob that they need. Anything that cannot be read is an error:
// what it refers to would look unused.
func used(ctx context.Context, r *repo.Repository, snapshots []repo.SnapshotInfo) (map[repo.BlobHandle]bool, error) {
	u := usage{repository: r, seen: map[repo.BlobHandle]bool{}}
	for _, snapshot := range snapshots {
		if snapshot.Tree == nil {
			return nil, fmt.Errorf("snapshot %s has no tree: it is damaged, so nothing can be judged to be unused", snapshot.ID.Short())
		}
		if err := u.walk(ctx, *snapshot.Tree); err != nil {
			return nil, fmt.Errorf("snapshot %s: %w", snapshot.ID.Short(), err)
		}
	}
	return u.seen, nil
}

type usage struct {
	repository *repo.Repository
	seen       map[repo.BlobHandle]bool
}

// walk goes through the trees below root without recursion, so that a hostile depth costs memory and not the stack.
func (u *usage) walk(ctx context.Context, root repo.ID) error {
	var buf []byte
	for pending := u.enter(nil, root); len(pending) > 0; {
		next := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		encoded, err := u.repository.LoadBlob(ctx, repo.BlobHandle{Type: repo.TreeBlob, ID: next}, buf)
		if err != nil {
			return fmt.Errorf("tree %s: %w", next.Short(), err)
		}
		buf = encoded[:0]
		for node, err := range tree.All(encoded) {
			if err != nil {
				return fmt.Errorf("tree %s: %w", next.Short(), err)
			}
			for _, content := range node.Content {
				u.seen[repo.BlobHandle{Type: repo.DataBlob, ID: content}] = true
			}
			if node.Type == tree.Dir {
				pending = u.enter(pending, node.Subtree)
			}
		}
	}
	return nil
}

// enter appends a tree that was not seen before.
func (u *usage) enter(pending []repo.ID, subtree repo.ID) []repo.ID {
	handle := repo.BlobHandle{Type: repo.TreeBlob, ID: subtree}
	if u.seen[handle] {
		return pending
	}
	u.seen[handle] = true
	return append(pending, subtree)
}
