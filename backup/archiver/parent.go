package archiver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

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

// chooseParent returns the latest complete snapshot of the same source that is not newer than the run, or nil.
func chooseParent(snapshots []repo.SnapshotInfo, o *Options) *repo.SnapshotInfo {
	for _, sn := range slices.Backward(snapshots) {
		if sn.Hostname == o.Host && slices.Equal(sn.Paths, []string{o.Path}) && Complete(sn.Tags) && !sn.Time.After(o.Time) {
			return &sn
		}
	}
	return nil
}

// findParent lists the snapshots and then loads the index, in that order: otherwise a new snapshot might need an index
// that was not loaded.
func (b *backup) findParent(ctx context.Context) (*parent, error) {
	var chosen *repo.SnapshotInfo
	switch {
	case b.o.NoParent:
	case !b.o.Parent.IsZero():
		sn, err := b.repo.LoadSnapshot(ctx, b.o.Parent)
		if err != nil {
			return nil, fmt.Errorf("parent %s: %w", b.o.Parent.Short(), err)
		}
		chosen = &repo.SnapshotInfo{ID: b.o.Parent, Snapshot: *sn}
	default:
		snapshots, err := b.repo.Snapshots(ctx)
		if err != nil && !errors.Is(err, repo.ErrDamaged) { // a damaged one is not a parent, and no reason to stop
			return nil, fmt.Errorf("list snapshots: %w", err)
		}
		chosen = chooseParent(snapshots, &b.o)
	}
	if err := b.repo.LoadIndex(ctx); err != nil {
		return nil, fmt.Errorf("load the index: %w", err)
	}
	if chosen == nil {
		return nil, nil
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
	b.trees.add(&b.trees.fetched, id)
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
