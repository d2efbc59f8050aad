package browse

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/backup/repo/tree"
)

// maxPath is how long the path of a folder may be, in bytes: four times what a system call takes. A hostile repository
// must exhaust neither the stack nor the memory with folders in folders.
const maxPath = 16 << 10

// Walk calls fn with root and with everything below it, depth first and in the order of names; a folder comes before
// what is in it. at is the path of root, and begins with a slash; the others' paths follow from it. If fn returns
// fs.SkipDir for a folder, what is in it is passed over; fs.SkipAll ends Walk without an error, and anything else is
// Walk's error. fn may keep the node.
func Walk(
	ctx context.Context, r *repo.Repository, at string, root *tree.Node, fn func(at string, n *tree.Node) error,
) error {
	w := walker{trees: &trees{repo: r}, visit: fn}
	if err := w.walk(ctx, at, root, none); !errors.Is(err, fs.SkipAll) {
		return err
	}
	return nil
}

// walker is one walk.
type walker struct {
	trees *trees
	visit func(at string, n *tree.Node) error
	// leave, if not nil, is called with a folder when everything in it was visited.
	leave func(n *tree.Node)
}

func none() []repo.ID { return nil }

// walk visits a node and what is below it. next names the folders that follow.
func (w *walker) walk(ctx context.Context, at string, n *tree.Node, next func() []repo.ID) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	err := w.visit(at, n)
	if err == nil && n.Type == tree.Dir {
		return w.inside(ctx, at, n, next)
	}
	if n.Type == tree.Dir && errors.Is(err, fs.SkipDir) {
		return nil
	}
	return err
}

func (w *walker) inside(ctx context.Context, at string, dir *tree.Node, next func() []repo.ID) error {
	if err := checkPath(at); err != nil {
		return err
	}
	encoded, err := w.trees.get(ctx, dir.Subtree, next)
	if err != nil {
		return fmt.Errorf("%.200q: %w", at, err)
	}
	nodes := tree.NewDecoder(encoded, tree.Limits{})
	for {
		child, err := nodes.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("%.200q: tree %s: %w", at, dir.Subtree.Short(), err)
		}
		if err := w.walk(ctx, join(at, child.Name), child, func() []repo.ID { return upcoming(*nodes) }); err != nil {
			return err
		}
	}
	if w.leave != nil {
		w.leave(dir)
	}
	return nil
}

func checkPath(at string) error {
	if len(at) > maxPath {
		return fmt.Errorf("%.200q…: %w: the path of a folder has more than %d bytes", at, tree.ErrTooLarge, maxPath)
	}
	return nil
}

// join appends a name, which has no slash, to a clean path.
func join(at, name string) string {
	if at == "/" {
		return at + name
	}
	return at + "/" + name
}
