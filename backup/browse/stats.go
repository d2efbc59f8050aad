package browse

import (
	"context"
	"fmt"
	"io/fs"
	"math"

	"example.com/pvcbackup/backup/internal/hardlink"
	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/backup/repo/tree"
)

// Usage says how much data snapshots hold and need.
type Usage struct {
	Snapshots int
	// Files, Dirs and Others are what restoring every snapshot would make, each name counted, and RestoreBytes what the
	// files would take, hard links once in each snapshot.
	Files, Dirs, Others, RestoreBytes uint64
	// DataBlobs and TreeBlobs are what the snapshots need, each blob once; BlobBytes is their size before compression,
	// StoredBytes what they take in the store, without the headers of packs.
	DataBlobs, TreeBlobs, BlobBytes, StoredBytes uint64
}

// Stats counts what the snapshots hold. A tree that several of them have is read once. A blob that no index lists is an
// error, ErrNotFound.
func Stats(ctx context.Context, r *repo.Repository, snapshots []repo.SnapshotInfo) (*Usage, error) {
	c := &counter{usage: &Usage{}, seen: map[repo.ID]*totals{}, blobs: map[repo.BlobHandle]bool{}}
	c.walker = walker{trees: &trees{repo: r}, visit: c.enter, leave: c.leave}
	for _, s := range snapshots {
		if err := c.snapshot(ctx, &s); err != nil {
			return nil, fmt.Errorf("snapshot %s: %w", s.ID.Short(), err)
		}
	}
	if err := c.countBlobs(r); err != nil {
		return nil, err
	}
	return c.usage, nil
}

// totals are of a tree and everything below it, but for the bytes of files with several names.
type totals struct {
	files, dirs, others, bytes uint64
	// links are the files with several names in this tree alone, and below the trees in which there are some.
	links map[hardlink.Key]uint64
	below []repo.ID
}

// counter walks every tree once.
type counter struct {
	walker
	usage *Usage
	seen  map[repo.ID]*totals
	blobs map[repo.BlobHandle]bool
	// open are the folders that are being walked, the innermost last. The first stands for the snapshot.
	open []*totals
}

func (c *counter) snapshot(ctx context.Context, s *repo.SnapshotInfo) error {
	c.open = []*totals{{}}
	if err := c.walk(ctx, "/", &tree.Node{Name: "/", Type: tree.Dir, Subtree: *s.Tree}, none); err != nil {
		return err
	}
	all, u := c.open[0], c.usage
	u.Snapshots++
	u.Files, u.Dirs, u.Others = sum(u.Files, all.files), sum(u.Dirs, all.dirs-1), sum(u.Others, all.others)
	u.RestoreBytes = sum(u.RestoreBytes, sum(all.bytes, c.linked(all)))
	return nil
}

// enter counts one entry. A tree that was walked before is not walked again.
func (c *counter) enter(_ string, n *tree.Node) error {
	here := c.open[len(c.open)-1]
	switch n.Type {
	case tree.Dir:
		here.dirs = sum(here.dirs, 1)
		if known := c.seen[n.Subtree]; known != nil {
			here.add(n.Subtree, known)
			return fs.SkipDir
		}
		c.blobs[treeHandle(n.Subtree)] = true
		c.open = append(c.open, &totals{})
	case tree.File:
		here.file(n)
		for _, id := range n.Content {
			c.blobs[repo.BlobHandle{Type: repo.DataBlob, ID: id}] = true
		}
	default:
		here.others = sum(here.others, 1)
	}
	return nil
}

func (c *counter) leave(n *tree.Node) {
	last := len(c.open) - 1
	c.seen[n.Subtree] = c.open[last]
	c.open[last-1].add(n.Subtree, c.open[last])
	c.open = c.open[:last]
}

func (t *totals) file(n *tree.Node) {
	t.files = sum(t.files, 1)
	key, linked := hardlink.KeyOf(n)
	if !linked {
		t.bytes = sum(t.bytes, n.Size)
		return
	}
	if t.links == nil {
		t.links = map[hardlink.Key]uint64{}
	}
	t.links[key] = n.Size
}

// add adds what is below a tree in this one.
func (t *totals) add(id repo.ID, below *totals) {
	t.files, t.dirs = sum(t.files, below.files), sum(t.dirs, below.dirs)
	t.others, t.bytes = sum(t.others, below.others), sum(t.bytes, below.bytes)
	if len(below.links)+len(below.below) > 0 {
		t.below = append(t.below, id)
	}
}

// linked returns the bytes of files with several names, each file once.
func (c *counter) linked(root *totals) (bytes uint64) {
	files, visited := map[hardlink.Key]bool{}, map[repo.ID]bool{}
	for pending := []*totals{root}; len(pending) > 0; {
		t := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		for key, size := range t.links {
			if !files[key] {
				files[key] = true
				bytes = sum(bytes, size)
			}
		}
		for _, id := range t.below {
			if !visited[id] {
				visited[id] = true
				pending = append(pending, c.seen[id])
			}
		}
	}
	return bytes
}

func (c *counter) countBlobs(r *repo.Repository) error {
	for h := range c.blobs {
		places := r.Locations(h)
		if len(places) == 0 {
			return fmt.Errorf("%v (%s): %w in the index", h, h.ID, repo.ErrNotFound)
		}
		if h.Type == repo.TreeBlob {
			c.usage.TreeBlobs++
		} else {
			c.usage.DataBlobs++
		}
		c.usage.BlobBytes += uint64(places[0].Size())
		c.usage.StoredBytes += uint64(places[0].Length)
	}
	return nil
}

// sum stops at the largest number: a hostile snapshot can have more entries than that, all in a few trees.
func sum(a, b uint64) uint64 {
	if a+b < a {
		return math.MaxUint64
	}
	return a + b
}
