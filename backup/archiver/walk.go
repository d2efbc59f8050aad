package archiver

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"example.com/pvcbackup/backup/internal/fsmeta"
	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/backup/repo/tree"
	"golang.org/x/sys/unix"
)

const (
	// maxPending is how many entries of one directory may wait for the ones before them.
	maxPending = 1024
	// sourceDevice stands for the source's filesystem in hard links, whose real number is another one at every mount.
	// The kernel's numbers are smaller.
	sourceDevice = 1 << 40
)

// walk is one walker: a goroutine that goes down a directory and stores its tree.
type walk struct {
	*backup
	ctx     context.Context
	builder tree.Builder
}

// entry is one name in a directory.
type entry struct {
	path     string // below the source, for people
	name     string
	st       unix.Stat_t
	previous *tree.Node // of the parent; nil for none
}

// promise is a node that may still be in the making. A nil node, once it is there, is left out.
type promise struct {
	node *tree.Node
	err  error
	done chan struct{} // nil: it is there
}

func (p *promise) wait(ctx context.Context) (*tree.Node, error) {
	if p.done == nil {
		return p.node, p.err
	}
	select {
	case <-p.done:
		return p.node, p.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// skip records that something could not be read, unless that is this process's own fault.
func (b *backup) skip(path string, err error) error {
	if ours(err) {
		return fmt.Errorf("%q: %w", path, err)
	}
	b.tally.unreadable(path, err)
	return nil
}

// dir stores the directory open as fd and returns its node.
func (w *walk) dir(fd int, e *entry) (*tree.Node, error) {
	node, err := w.describe(e, func() ([]tree.Xattr, error) { return fsmeta.FdXattrs(fd) })
	if err != nil {
		if err := w.skip(e.path, err); err != nil {
			return nil, err
		}
	}
	if !w.o.OneFileSystem || e.st.Dev == w.device {
		nodes := nodeQueue{w: w}
		if err := w.children(fd, e, &nodes); err != nil {
			w.cancel(err)
			nodes.abandon()
			return nil, err
		}
	}
	if node.Subtree, err = w.storeTree(); err != nil {
		return nil, err
	}
	w.tally.dir(dirChange(e.previous, node))
	return node, nil
}

// children puts the nodes of all entries into the queue.
func (w *walk) children(fd int, e *entry, nodes *nodeQueue) error {
	entries, err := fsmeta.Entries(fd)
	if err != nil {
		return w.skip(e.path, err)
	}
	var before repo.ID
	if e.previous != nil {
		before = e.previous.Subtree
	}
	previous, err := w.openParentTree(w.ctx, before)
	if err != nil {
		return err
	}
	for _, listed := range entries {
		if err := w.ctx.Err(); err != nil {
			return context.Cause(w.ctx)
		}
		name := listed.Name
		child := &entry{path: join(e.path, name), name: name, previous: previous.find(name)}
		if w.o.excluded(child.path, name) || child.path == lostAndFound && leaveOut(fd) {
			continue
		}
		p, err := w.child(fd, child, listed.Regular)
		if err != nil {
			return err
		}
		if err := nodes.push(p); err != nil {
			return err
		}
	}
	return nodes.drain(0)
}

func join(dir, name string) string {
	if dir == "." {
		return name
	}
	return dir + "/" + name
}

// child looks at an entry and begins to store it. A new file is looked at when it is open.
func (w *walk) child(fd int, e *entry, regular bool) (*promise, error) {
	if regular && e.previous == nil {
		return w.readers.submit(fd, e)
	}
	var err error
	if e.st, err = fsmeta.Lstat(fd, e.name); err != nil {
		return &promise{}, w.skip(e.path, err)
	}
	if e.previous != nil && e.previous.Type != fsmeta.TypeOf(&e.st) {
		e.previous = nil
	}
	return w.save(fd, e)
}

// save begins to store one entry of the directory open as fd, which stays open until the promise is kept.
func (w *walk) save(fd int, e *entry) (*promise, error) {
	switch fsmeta.TypeOf(&e.st) {
	case tree.Dir:
		return w.subdir(fd, e)
	case tree.File:
		if node := w.unchanged(e); node != nil {
			return &promise{node: node}, nil
		}
		return w.readers.submit(fd, e)
	case tree.Socket:
		w.tally.sockets.Add(1)
		return &promise{}, nil
	case "":
		return &promise{}, w.skip(e.path, unix.ENOTSUP)
	}
	node, err := w.describe(e, func() ([]tree.Xattr, error) { return fsmeta.Xattrs(fd, e.name) })
	if err == nil && node.Type == tree.Symlink {
		node.LinkTarget, err = fsmeta.Readlink(fd, e.name)
	}
	if err != nil {
		return &promise{}, w.skip(e.path, err)
	}
	return &promise{node: node}, nil
}

// subdir goes down, in a walker of its own if one is free.
func (w *walk) subdir(parent int, e *entry) (*promise, error) {
	fd, err := fsmeta.OpenQuiet(parent, e.name, unix.O_DIRECTORY)
	if err != nil {
		// Its metadata is known all the same, and a partial snapshot keeps it.
		node := w.node(e)
		if err := w.skip(e.path, err); err != nil {
			return nil, err
		}
		node.Subtree, err = (&walk{backup: w.backup, ctx: w.ctx}).saveTree(nil)
		return &promise{node: node}, err
	}
	select {
	case w.walkers <- struct{}{}:
		p := &promise{done: make(chan struct{})}
		go func() {
			defer func() {
				unix.Close(fd)
				<-w.walkers
				close(p.done)
			}()
			other := &walk{backup: w.backup, ctx: w.ctx}
			p.node, p.err = other.dir(fd, e)
		}()
		return p, nil
	default:
		defer unix.Close(fd)
		node, err := (&walk{backup: w.backup, ctx: w.ctx}).dir(fd, e)
		return &promise{node: node}, err
	}
}

// node returns what the entry's stat says, in the form that is equal in every run.
func (b *backup) node(e *entry) *tree.Node {
	n := fsmeta.Node(e.name, &e.st)
	if b.o.AccessTimes {
		n.AccessTime = fsmeta.AccessTime(&e.st)
	}
	if n.Links > 1 {
		if n.DeviceID = e.st.Dev; e.st.Dev == b.device {
			n.DeviceID = sourceDevice
		}
	}
	return n
}

// describe returns the node of an entry with its attributes. With an error the node lacks them.
func (b *backup) describe(e *entry, xattrs func() ([]tree.Xattr, error)) (*tree.Node, error) {
	n := b.node(e)
	attrs, err := xattrs()
	n.Xattrs = attrs
	for _, x := range attrs {
		if !utf8.ValidString(x.Name) {
			b.tally.lossy.add(e.path)
			break
		}
	}
	return n, err
}

// unchanged returns the node of a file that is as it was in the parent, or nil. A change of its attributes or content
// changes its ctime. All of its content must be in the index.
func (b *backup) unchanged(e *entry) *tree.Node {
	p := e.previous
	if p == nil || p.Content == nil {
		return nil
	}
	n := b.node(e)
	if p.Size != n.Size || p.Inode != n.Inode || !p.ModTime.Equal(n.ModTime) || !p.ChangeTime.Equal(n.ChangeTime) {
		return nil
	}
	sum := uint64(0)
	for _, c := range p.Content {
		size, ok := b.repo.BlobSize(repo.BlobHandle{Type: repo.DataBlob, ID: c})
		if !ok {
			return nil
		}
		sum += uint64(size)
	}
	if sum != n.Size {
		return nil
	}
	n.Content, n.Xattrs = p.Content, p.Xattrs
	slices.SortFunc(n.Xattrs, func(a, b tree.Xattr) int { return strings.Compare(a.Name, b.Name) })
	b.tally.file(isUnmodified, n.Size)
	b.sample.Add(n.Content)
	return n
}

func dirChange(before, now *tree.Node) kind {
	switch {
	case before == nil:
		return isNew
	case before.Subtree != now.Subtree || before.Mode != now.Mode || before.UID != now.UID || before.GID != now.GID ||
		!before.ModTime.Equal(now.ModTime) || !before.ChangeTime.Equal(now.ChangeTime):
		return isChanged
	}
	return isUnmodified
}

// saveTree stores a tree of these nodes.
func (w *walk) saveTree(nodes []*tree.Node) (repo.ID, error) {
	w.builder.Reset()
	for _, n := range nodes {
		if err := w.builder.Add(n); err != nil {
			return repo.ID{}, err
		}
	}
	return w.storeTree()
}

func (w *walk) storeTree() (repo.ID, error) {
	id, _, err := w.writer.SaveBlob(w.ctx, repo.TreeBlob, w.builder.Bytes())
	if err == nil {
		w.trees.Saved(id)
	}
	return id, err
}

// nodeQueue puts promised nodes into a tree in the order of their names.
type nodeQueue struct {
	w       *walk
	pending []*promise
}

func (q *nodeQueue) push(p *promise) error {
	q.pending = append(q.pending, p)
	return q.drain(maxPending)
}

// drain waits until no more than most promises are left.
func (q *nodeQueue) drain(most int) error {
	for len(q.pending) > 0 {
		p := q.pending[0]
		if p.done != nil && len(q.pending) <= most {
			select {
			case <-p.done:
			default:
				return nil
			}
		}
		node, err := p.wait(q.w.ctx)
		if err != nil {
			return err
		}
		if node != nil {
			if err := q.w.builder.Add(node); err != nil {
				return err
			}
		}
		q.pending[0] = nil
		q.pending = q.pending[1:]
	}
	q.pending = nil
	return nil
}

// abandon waits until nobody works on the directory any more, after the run's context was ended.
func (q *nodeQueue) abandon() {
	for _, p := range q.pending {
		if p.done != nil {
			<-p.done
		}
	}
}
