package restorer

import (
	"context"
	"path"
	"strings"

	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/backup/repo/tree"
)

// Base returns the node that Restore would begin with for this snapshot and Options.Path: the directory whose content
// lands in the target, or the single file. It is for looking at what a restore would bring. The index must be loaded.
// Errors: PathError, and those of the repository and its store.
func Base(ctx context.Context, r *repo.Repository, snapshot *repo.Snapshot, below string) (*tree.Node, error) {
	below = strings.TrimPrefix(path.Clean("/"+below), "/")
	return (&restore{repo: r, o: Options{Path: below}}).base(ctx, snapshot)
}
