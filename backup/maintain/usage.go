package maintain

import (
	"context"
	"fmt"

	"example.com/pvcbackup/backup/internal/treewalk"
	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/backup/repo/tree"
)

// used walks the trees of all snapshots and returns every blob that they need. Anything that cannot be read is an error:
// what it refers to would look unused.
func used(ctx context.Context, r *repo.Repository, snapshots []repo.SnapshotInfo) (map[repo.BlobHandle]bool, error) {
	needed, trees := map[repo.BlobHandle]bool{}, map[repo.ID]bool{}
	visit := func(at treewalk.Place, encoded []byte, err error) ([]treewalk.Place, error) {
		if err != nil {
			return nil, err
		}
		return needs(needed, at, encoded)
	}
	for _, snapshot := range snapshots {
		if snapshot.Tree == nil {
			return nil, fmt.Errorf("snapshot %s has no tree: it is damaged, so nothing can be judged to be unused", snapshot.ID.Short())
		}
		err := treewalk.Walk(ctx, r, []treewalk.Place{{Tree: *snapshot.Tree, Path: "/"}}, trees, visit)
		if err != nil {
			return nil, fmt.Errorf("snapshot %s: %w", snapshot.ID.Short(), err)
		}
	}
	for id := range trees {
		needed[repo.BlobHandle{Type: repo.TreeBlob, ID: id}] = true
	}
	return needed, nil
}

// needs adds the content of a tree's files and returns the trees below it.
func needs(needed map[repo.BlobHandle]bool, at treewalk.Place, encoded []byte) (below []treewalk.Place, err error) {
	for node, err := range tree.All(encoded) {
		if err != nil {
			return nil, fmt.Errorf("tree %s: %w", at.Tree.Short(), err)
		}
		for _, content := range node.Content {
			needed[repo.BlobHandle{Type: repo.DataBlob, ID: content}] = true
		}
		if node.Type == tree.Dir {
			below = append(below, treewalk.Place{Tree: node.Subtree})
		}
	}
	return below, nil
}
