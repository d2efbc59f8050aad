package treecmp

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"example.com/pvcbackup/backup/internal/fsmeta"
	"example.com/pvcbackup/backup/repo/tree"
	"golang.org/x/sys/unix"
)

// Options refines Compare. The zero value compares all that an unprivileged restore can restore.
type Options struct {
	// Owners compares numeric users and groups.
	Owners bool
	// Holes reports files that take up more space in b than in a, by over 64 KiB and a tenth.
	Holes bool
	// SkipXattrs leaves out attributes whose names begin with one of these, for example "security.".
	SkipXattrs []string
	// SkipRoot leaves out the metadata of the two directories themselves.
	SkipRoot bool
	// Max ends the comparison after so many differences. 0: 100.
	Max int
}

// Difference is one thing that is not equal.
type Difference struct {
	// Path is relative to both directories.
	Path string
	// Field says what differs: "presence", "type", "mode", "size", …
	Field string
	// A and B are what the two directories have.
	A, B string
}

// String puts a difference on one line.
func (d Difference) String() string {
	return fmt.Sprintf("%q: %s: %s != %s", d.Path, d.Field, d.A, d.B)
}

// Compare returns how the directories a and b differ, in the order of paths. An error means that it could not be found
// out.
func Compare(a, b string, o Options) ([]Difference, error) {
	if o.Max <= 0 {
		o.Max = 100
	}
	c := &comparison{o: o}
	var err error
	if c.a, err = look(a); err != nil {
		return nil, err
	}
	if c.b, err = look(b); err != nil {
		return nil, err
	}
	c.paths()
	for _, path := range c.common {
		if len(c.out) >= o.Max {
			break
		}
		if err := c.entry(path); err != nil {
			return nil, fmt.Errorf("compare %q: %w", path, err)
		}
	}
	slices.SortStableFunc(c.out, func(x, y Difference) int { return strings.Compare(x.Path, y.Path) })
	return c.out[:min(len(c.out), o.Max)], nil
}

type comparison struct {
	o      Options
	a, b   *side
	common []string
	out    []Difference
}

// side is one directory with all that is below it.
type side struct {
	root  string
	nodes map[string]*tree.Node
	stats map[string]unix.Stat_t
	// twins maps every path with hard links to the first of them.
	twins map[string]string
}

func look(root string) (*side, error) {
	s := &side{root: root, nodes: map[string]*tree.Node{}, stats: map[string]unix.Stat_t{}, twins: map[string]string{}}
	type inode struct{ dev, ino uint64 }
	first := map[inode]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		var st unix.Stat_t
		stat := unix.Lstat
		if rel == "." {
			stat = unix.Stat // the directory itself may be given through a symlink
		}
		if err := fsmeta.Retry(func() error { return stat(path, &st) }); err != nil {
			return &fs.PathError{Op: "stat", Path: path, Err: err}
		}
		n := fsmeta.Node(filepath.Base(path), &st)
		if n.Type == tree.Socket {
			return nil
		}
		if rel == "lost+found" && n.Type == tree.Dir {
			if entries, err := os.ReadDir(path); err != nil || len(entries) == 0 {
				return fs.SkipDir
			}
		}
		s.nodes[rel], s.stats[rel] = n, st
		if st.Nlink > 1 && n.Type != tree.Dir {
			id := inode{st.Dev, st.Ino}
			if _, ok := first[id]; !ok {
				first[id] = rel
			}
			s.twins[rel] = first[id]
		}
		return nil
	})
	return s, err
}

func (c *comparison) differ(path, field string, a, b any) {
	c.out = append(c.out, Difference{Path: path, Field: field, A: fmt.Sprint(a), B: fmt.Sprint(b)})
}

func (c *comparison) paths() {
	for path := range c.a.nodes {
		if c.b.nodes[path] != nil {
			c.common = append(c.common, path)
		} else {
			c.differ(path, "presence", "there", "missing")
		}
	}
	for path := range c.b.nodes {
		if c.a.nodes[path] == nil {
			c.differ(path, "presence", "missing", "there")
		}
	}
	slices.Sort(c.common)
}

func (c *comparison) entry(path string) error {
	a, b := c.a.nodes[path], c.b.nodes[path]
	if a.Type != b.Type {
		c.differ(path, "type", a.Type, b.Type)
		return nil
	}
	if path != "." || !c.o.SkipRoot {
		if err := c.metadata(path, a, b); err != nil {
			return err
		}
	}
	switch a.Type {
	case tree.Device, tree.CharDevice:
		if a.Device != b.Device {
			c.differ(path, "device", a.Device, b.Device)
		}
	case tree.Symlink:
		return c.targets(path)
	case tree.File:
		return c.contents(path, a, b)
	}
	return nil
}

func (c *comparison) metadata(path string, a, b *tree.Node) error {
	if a.Mode != b.Mode {
		c.differ(path, "mode", a.Mode, b.Mode)
	}
	if !a.ModTime.Equal(b.ModTime) {
		c.differ(path, "mtime", a.ModTime.Format(time.RFC3339Nano), b.ModTime.Format(time.RFC3339Nano))
	}
	if c.a.twins[path] != c.b.twins[path] {
		c.differ(path, "hard link", c.a.twins[path], c.b.twins[path])
	}
	if c.o.Owners && (a.UID != b.UID || a.GID != b.GID) {
		c.differ(path, "owner", fmt.Sprintf("%d:%d", a.UID, a.GID), fmt.Sprintf("%d:%d", b.UID, b.GID))
	}
	x, err := c.xattrs(c.a, path)
	if err != nil {
		return err
	}
	y, err := c.xattrs(c.b, path)
	if err == nil && x != y {
		c.differ(path, "xattrs", x, y)
	}
	return err
}

func (c *comparison) xattrs(s *side, path string) (string, error) {
	fd, err := unix.Open(filepath.Join(s.root, filepath.Dir(path)), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", err
	}
	defer unix.Close(fd)
	list, err := fsmeta.Xattrs(fd, filepath.Base(path))
	var text []string
	for _, x := range list {
		if !slices.ContainsFunc(c.o.SkipXattrs, func(p string) bool { return strings.HasPrefix(x.Name, p) }) {
			text = append(text, fmt.Sprintf("%q=%s", x.Name, hex.EncodeToString(x.Value)))
		}
	}
	return strings.Join(text, " "), err
}

func (c *comparison) targets(path string) error {
	a, err := os.Readlink(filepath.Join(c.a.root, path))
	if err != nil {
		return err
	}
	b, err := os.Readlink(filepath.Join(c.b.root, path))
	if err == nil && a != b {
		c.differ(path, "target", a, b)
	}
	return err
}

func (c *comparison) contents(path string, a, b *tree.Node) error {
	if a.Size != b.Size {
		c.differ(path, "size", a.Size, b.Size)
		return nil
	}
	if c.o.Holes {
		x, y := c.a.stats[path].Blocks*512, c.b.stats[path].Blocks*512
		if y-x > 64<<10+x/10 {
			c.differ(path, "space", x, y)
		}
	}
	f, err := open(filepath.Join(c.a.root, path))
	if err != nil {
		return err
	}
	defer f.Close()
	g, err := open(filepath.Join(c.b.root, path))
	if err != nil {
		return err
	}
	defer g.Close()
	at, err := firstDifference(f, g)
	if err == nil && at >= 0 {
		c.differ(path, "content", "one thing", fmt.Sprintf("another at byte %d", at))
	}
	return err
}

func open(path string) (*os.File, error) { return os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW, 0) }

// firstDifference returns the offset of the block with the first byte that differs, or -1.
func firstDifference(a, b io.Reader) (int64, error) {
	x, y := make([]byte, 256<<10), make([]byte, 256<<10)
	for at := int64(0); ; {
		n, err := io.ReadFull(a, x)
		if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
			return 0, err
		}
		m, err := io.ReadFull(b, y)
		if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
			return 0, err
		}
		if !bytes.Equal(x[:n], y[:m]) {
			return at, nil
		}
		if n < len(x) {
			return -1, nil
		}
		at += int64(n)
	}
}
