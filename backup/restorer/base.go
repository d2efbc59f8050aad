package restorer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/backup/repo/tree"
)

// chunkerTag begins a tag that this project's archiver puts on every snapshot, and nobody else.
const chunkerTag = "chunker="

// base returns the node whose content lands in the target, or the single file that does.
func (r *restore) base(ctx context.Context, sn *repo.Snapshot) (*tree.Node, error) {
	at := &tree.Node{Name: "/", Type: tree.Dir, Subtree: *sn.Tree}
	way, err := r.wrapper(ctx, sn)
	if err != nil {
		return nil, err
	}
	if r.o.Path != "" {
		way = append(way, strings.Split(r.o.Path, "/")...)
	}
	for _, name := range way {
		next, err := r.child(ctx, at, name)
		if err != nil {
			return nil, err
		}
		if next == nil {
			return nil, &PathError{Path: strings.Join(way, "/")}
		}
		at = next
	}
	return at, nil
}

// wrapper returns the directories that stand for the source: the only one in the root, or the path that restic was
// given, of which it keeps less when it was a relative one. A restic snapshot of several paths has none.
func (r *restore) wrapper(ctx context.Context, sn *repo.Snapshot) ([]string, error) {
	if slices.ContainsFunc(sn.Tags, func(t string) bool { return strings.HasPrefix(t, chunkerTag) }) {
		chain, err := r.chain(ctx, *sn.Tree, 1)
		if err == nil && len(chain) != 1 {
			err = errors.New("the root of the snapshot does not have the one entry that stands for its source")
		}
		return chain, err
	}
	if len(sn.Paths) != 1 {
		return nil, nil
	}
	given := strings.Split(strings.Trim(sn.Paths[0], "/"), "/")
	chain, err := r.chain(ctx, *sn.Tree, len(given))
	for n := len(chain); n > 0; n-- {
		if slices.Equal(chain[:n], given[len(given)-n:]) {
			return chain[:n], err
		}
	}
	return nil, err
}

// chain follows directories from a tree on, as long as they have one entry each, and returns the entries' names.
func (r *restore) chain(ctx context.Context, id repo.ID, most int) (names []string, err error) {
	for len(names) < most && !id.IsZero() {
		var only *tree.Node
		count := 0
		err := r.each(ctx, id, func(n *tree.Node) error {
			if count++; count > 1 {
				return io.EOF
			}
			only = n
			return nil
		})
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		if count != 1 {
			break
		}
		names, id = append(names, only.Name), only.Subtree
	}
	return names, nil
}

func (r *restore) child(ctx context.Context, dir *tree.Node, name string) (found *tree.Node, err error) {
	if dir.Type != tree.Dir {
		return nil, nil
	}
	err = r.each(ctx, dir.Subtree, func(n *tree.Node) error {
		if n.Name == name {
			found = n
			return io.EOF
		}
		return nil
	})
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return found, err
}

// each calls f with the nodes of a tree.
func (r *restore) each(ctx context.Context, id repo.ID, f func(*tree.Node) error) error {
	text, err := r.repo.LoadBlob(ctx, repo.BlobHandle{Type: repo.TreeBlob, ID: id}, nil)
	if err != nil {
		return fmt.Errorf("tree %s: %w", id.Short(), err)
	}
	for n, err := range tree.All(text) {
		if err != nil {
			return fmt.Errorf("tree %s: %w", id.Short(), err)
		}
		if err := f(n); err != nil {
			return err
		}
	}
	return nil
}
