package browse

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/backup/repo/tree"
)

// ChangeKind says what happened to an entry.
type ChangeKind uint8

// The kinds of changes.
const (
	Added ChangeKind = iota
	Removed
	// Modified: the content of a file, the target of a symlink or the number of a device is another one.
	Modified
	// Metadata: only what Change.Fields names is different.
	Metadata
	// TypeChanged: it was something else, such as a folder. What is in a folder that comes or goes with it is Added or
	// Removed.
	TypeChanged
)

// String returns a word.
func (k ChangeKind) String() string {
	return [...]string{"added", "removed", "modified", "metadata", "type"}[k]
}

// Change is one difference.
type Change struct {
	// Path is below the folders that are compared, and begins with a slash; the folders themselves are "/".
	Path string
	Kind ChangeKind
	// Before is nil for Added, After for Removed.
	Before, After *tree.Node
	// Fields names the metadata that differ, of what a restore would set: mode, owner, time, xattrs.
	Fields []string
}

// Totals count entries, and the bytes of files; hard links each.
type Totals struct{ Files, Dirs, Others, Bytes uint64 }

func (t *Totals) add(n *tree.Node) {
	switch n.Type {
	case tree.File:
		t.Files++
		t.Bytes += n.Size
	case tree.Dir:
		t.Dirs++
	default:
		t.Others++
	}
}

// Blobs count blobs, and their bytes before compression.
type Blobs struct{ Data, Trees, Bytes uint64 }

// DiffStats sums a comparison up.
type DiffStats struct {
	Added, Removed                  Totals
	Modified, Metadata, TypeChanged uint64
	// NewBlobs are needed by what changed now and were not before; GoneBlobs the reverse. Unchanged folders are not
	// looked into, so a blob may be in one of them too.
	NewBlobs, GoneBlobs Blobs
}

// Diff calls fn with every difference between two folders, in the order of paths. Folders whose trees are equal are
// passed over without being read. An error of fn ends it. It returns a result only with a nil error.
func Diff(
	ctx context.Context, r *repo.Repository, before, after *tree.Node, fn func(Change) error,
) (*DiffStats, error) {
	d := differ{
		before: trees{repo: r}, after: trees{repo: r}, report: fn, stats: &DiffStats{},
		old: map[repo.BlobHandle]bool{}, fresh: map[repo.BlobHandle]bool{},
	}
	if err := d.pair(ctx, pair{at: "/", a: before, b: after, laterOld: none, laterNew: none}); err != nil {
		return nil, err
	}
	if err := d.countBlobs(r); err != nil {
		return nil, err
	}
	return d.stats, nil
}

// differ is one comparison.
type differ struct {
	before, after trees
	report        func(Change) error
	stats         *DiffStats
	// old and fresh are the blobs of what is different.
	old, fresh map[repo.BlobHandle]bool
}

// pair is two entries of one name, and the folders that are compared after them.
type pair struct {
	at                 string
	a, b               *tree.Node
	laterOld, laterNew func() []repo.ID
}

func (d *differ) pair(ctx context.Context, p pair) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if p.a.Type != p.b.Type {
		return d.typeChanged(ctx, p)
	}
	change := Change{Path: p.at, Before: p.a, After: p.b, Fields: metadata(p.a, p.b)}
	switch {
	case modified(p.a, p.b):
		d.stats.Modified++
		change.Kind = Modified
		need(d.old, p.a)
		need(d.fresh, p.b)
	case len(change.Fields) > 0:
		d.stats.Metadata++
		change.Kind = Metadata
	}
	if change.Kind != Added {
		if err := d.report(change); err != nil {
			return err
		}
	}
	if p.a.Type != tree.Dir || p.a.Subtree == p.b.Subtree {
		return nil
	}
	return d.inside(ctx, p)
}

// typeChanged reports one thing that became another. What is in a folder comes, or goes, with it.
func (d *differ) typeChanged(ctx context.Context, p pair) error {
	d.stats.TypeChanged++
	change := Change{Path: p.at, Kind: TypeChanged, Before: p.a, After: p.b, Fields: metadata(p.a, p.b)}
	if err := d.report(change); err != nil {
		return err
	}
	need(d.old, p.a)
	need(d.fresh, p.b)
	if p.a.Type == tree.Dir {
		return d.removed().inside(ctx, p.at, p.a, p.laterOld)
	}
	if p.b.Type == tree.Dir {
		return d.added().inside(ctx, p.at, p.b, p.laterNew)
	}
	return nil
}

// inside compares what is in two folders.
func (d *differ) inside(ctx context.Context, p pair) error {
	if err := checkPath(p.at); err != nil {
		return err
	}
	need(d.old, p.a)
	need(d.fresh, p.b)
	old, err := d.before.open(ctx, p.a, p.laterOld)
	if err != nil {
		return fmt.Errorf("%.200q: %w", p.at, err)
	}
	fresh, err := d.after.open(ctx, p.b, p.laterNew)
	if err != nil {
		return fmt.Errorf("%.200q: %w", p.at, err)
	}
	for old.node != nil || fresh.node != nil {
		if err := d.step(ctx, p, old, fresh); err != nil {
			return err
		}
	}
	return nil
}

// step deals with the next name of two folders.
func (d *differ) step(ctx context.Context, p pair, old, fresh *cursor) error {
	a, b, err := advance(old, fresh)
	if err != nil {
		return fmt.Errorf("%.200q: %w", p.at, err)
	}
	later := func() ([]repo.ID, []repo.ID) { return changedFolders(*old, *fresh) }
	below := pair{a: a, b: b}
	below.laterOld = func() []repo.ID { ids, _ := later(); return ids }
	below.laterNew = func() []repo.ID { _, ids := later(); return ids }
	switch {
	case b == nil:
		return d.removed().walk(ctx, join(p.at, a.Name), a, below.laterOld)
	case a == nil:
		return d.added().walk(ctx, join(p.at, b.Name), b, below.laterNew)
	}
	below.at = join(p.at, a.Name)
	return d.pair(ctx, below)
}

func (d *differ) added() *walker {
	return &walker{trees: &d.after, visit: func(at string, n *tree.Node) error {
		d.stats.Added.add(n)
		need(d.fresh, n)
		return d.report(Change{Path: at, Kind: Added, After: n})
	}}
}

func (d *differ) removed() *walker {
	return &walker{trees: &d.before, visit: func(at string, n *tree.Node) error {
		d.stats.Removed.add(n)
		need(d.old, n)
		return d.report(Change{Path: at, Kind: Removed, Before: n})
	}}
}

// countBlobs counts the blobs that only one side needs.
func (d *differ) countBlobs(r *repo.Repository) error {
	for _, side := range []struct {
		mine, others map[repo.BlobHandle]bool
		to           *Blobs
	}{{d.fresh, d.old, &d.stats.NewBlobs}, {d.old, d.fresh, &d.stats.GoneBlobs}} {
		for h := range side.mine {
			if side.others[h] {
				continue
			}
			size, listed := r.BlobSize(h)
			if !listed {
				return fmt.Errorf("%v (%s): %w in the index", h, h.ID, repo.ErrNotFound)
			}
			side.to.Bytes += uint64(size)
			if h.Type == repo.TreeBlob {
				side.to.Trees++
			} else {
				side.to.Data++
			}
		}
	}
	return nil
}

// need adds the blobs of a node.
func need(blobs map[repo.BlobHandle]bool, n *tree.Node) {
	for _, id := range n.Content {
		blobs[repo.BlobHandle{Type: repo.DataBlob, ID: id}] = true
	}
	if n.Type == tree.Dir {
		blobs[treeHandle(n.Subtree)] = true
	}
}

// modified reports whether two entries of one type hold different things. Folders are judged by what is in them.
func modified(a, b *tree.Node) bool {
	return !slices.Equal(a.Content, b.Content) || a.Size != b.Size || a.LinkTarget != b.LinkTarget || a.Device != b.Device
}

// metadata names what differs of what a restore sets.
func metadata(a, b *tree.Node) (fields []string) {
	add := func(name string, differs bool) {
		if differs {
			fields = append(fields, name)
		}
	}
	add("mode", a.Mode != b.Mode)
	add("owner", a.UID != b.UID || a.GID != b.GID || a.User != b.User || a.Group != b.Group)
	add("time", !a.ModTime.Equal(b.ModTime))
	add("xattrs", !equalXattrs(a.Xattrs, b.Xattrs))
	return fields
}

// equalXattrs compares without regard to order: it is the file system's.
func equalXattrs(a, b []tree.Xattr) bool {
	sorted := func(xattrs []tree.Xattr) []tree.Xattr {
		return slices.SortedFunc(slices.Values(xattrs), func(a, b tree.Xattr) int { return strings.Compare(a.Name, b.Name) })
	}
	return slices.EqualFunc(sorted(a), sorted(b), func(a, b tree.Xattr) bool {
		return a.Name == b.Name && bytes.Equal(a.Value, b.Value)
	})
}

// cursor goes through a tree. node is the next one, nil at the end.
type cursor struct {
	nodes tree.Decoder
	node  *tree.Node
}

func (t *trees) open(ctx context.Context, dir *tree.Node, later func() []repo.ID) (*cursor, error) {
	encoded, err := t.get(ctx, dir.Subtree, later)
	if err != nil {
		return nil, err
	}
	c := &cursor{nodes: *tree.NewDecoder(encoded, tree.Limits{})}
	return c, c.advance()
}

func (c *cursor) advance() (err error) {
	if c.node, err = c.nodes.Next(); errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// advance returns the next name's nodes: of one cursor, or of both.
func advance(x, y *cursor) (a, b *tree.Node, err error) {
	switch {
	case y.node == nil || x.node != nil && x.node.Name < y.node.Name:
		a = x.node
		return a, nil, x.advance()
	case x.node == nil || y.node.Name < x.node.Name:
		b = y.node
		return nil, b, y.advance()
	}
	a, b = x.node, y.node
	return a, b, errors.Join(x.advance(), y.advance())
}

// changedFolders returns the trees that will be compared next. The cursors are copies that run ahead.
func changedFolders(x, y cursor) (old, fresh []repo.ID) {
	for len(old) < aheadTrees && (x.node != nil || y.node != nil) {
		a, b, err := advance(&x, &y)
		if err != nil {
			return old, fresh // whoever gets there will see it
		}
		if a != nil && b != nil && a.Type == tree.Dir && b.Type == tree.Dir && a.Subtree != b.Subtree {
			old, fresh = append(old, a.Subtree), append(fresh, b.Subtree)
		}
	}
	return old, fresh
}
