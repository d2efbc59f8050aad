package archiver

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"example.com/pvcbackup/backup/internal/commit"
	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/backup/repo/tree"
)

// parent is the snapshot that a run compares with.
type parent struct {
	id   repo.ID
	tags []string
	// root is the node that stands for the source; nil when the snapshot has none.
	root *tree.Node
}

// findParent chooses the parent, loads the index, and finds the source in the parent.
func (b *backup) findParent(ctx context.Context) (*parent, error) {
	chosen, err := commit.FindParent(ctx, b.repo, commit.Choice{
		ID: b.o.Parent, None: b.o.NoParent, Host: b.o.Host, Path: b.o.Path, Time: b.o.Time, Usable: ofFolder,
	})
	if err != nil || chosen == nil {
		return nil, err
	}
	root, err := b.parentRoot(ctx, &chosen.Snapshot)
	return &parent{id: chosen.ID, tags: chosen.Tags, root: root}, err
}

// parentRoot finds the node that stands for the source: the wrapper, or, in what restic wrote, the end of the path, of
// which it keeps less when it was given a relative one.
func (b *backup) parentRoot(ctx context.Context, sn *repo.Snapshot) (*tree.Node, error) {
	ways := [][]string{{b.o.Wrapper}}
	if len(sn.Paths) == 1 {
		given := strings.Split(strings.Trim(sn.Paths[0], "/"), "/")
		for i := range given {
			ways = append(ways, given[i:])
		}
	}
	for _, way := range ways {
		at := &tree.Node{Type: tree.Dir, Subtree: *sn.Tree}
		for _, name := range way {
			if at == nil || at.Type != tree.Dir {
				break
			}
			siblings, err := b.openParentTree(ctx, at.Subtree)
			if err != nil {
				return nil, err
			}
			at = siblings.find(name)
		}
		if at != nil && at.Type == tree.Dir {
			return at, nil
		}
	}
	return nil, nil
}

// siblings looks names up in a tree, in ascending order.
type siblings struct {
	in   *tree.Decoder // nil when there is no such tree
	next *tree.Node
}

// openParentTree loads a tree of the parent. One that is damaged, or that some other program wrote in disorder, is as
// good as none: its files are read.
func (b *backup) openParentTree(ctx context.Context, id repo.ID) (*siblings, error) {
	if id.IsZero() {
		return &siblings{}, nil
	}
	text, err := b.repo.LoadBlob(ctx, repo.BlobHandle{Type: repo.TreeBlob, ID: id}, nil)
	switch {
	case errors.Is(err, repo.ErrNotFound), errors.Is(err, repo.ErrDamaged):
		return &siblings{}, nil
	case err != nil:
		return nil, fmt.Errorf("tree %s of the parent: %w", id.Short(), err)
	}
	b.trees.Fetched(id)
	return &siblings{in: tree.NewDecoder(text, tree.Limits{})}, nil
}

// find returns the node of this name, or nil. Names must be asked for in ascending order.
func (s *siblings) find(name string) *tree.Node {
	for s.in != nil {
		if s.next == nil {
			n, err := s.in.Next()
			if err != nil { // its end, or disorder: no more can be told of it
				s.in = nil
				return nil
			}
			s.next = n
		}
		switch strings.Compare(s.next.Name, name) {
		case 0:
			found := s.next
			s.next = nil
			return found
		case 1:
			return nil
		}
		s.next = nil
	}
	return nil
}
