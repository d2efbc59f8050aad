package browse

import (
	"archive/tar"
	"context"
	"fmt"
	"io"
	"strings"

	"golang.org/x/sys/unix"

	"example.com/pvcbackup/backup/internal/fsmeta"
	"example.com/pvcbackup/backup/internal/hardlink"
	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/backup/repo/tree"
)

// TarResult counts what a tar stream holds.
type TarResult struct {
	// HardLinks are further names of a file, Specials devices and FIFOs.
	Files, Dirs, Symlinks, HardLinks, Specials uint64
	// Bytes of all files.
	Bytes uint64
	// Sockets are left out.
	Sockets uint64
}

// xattrRecord begins the key of the PAX record of an attribute, as star, GNU tar and bsdtar write it.
const xattrRecord = "SCHILY.xattr."

// xattrEscape is GNU tar's: a PAX key ends at the first equals sign.
var xattrEscape = strings.NewReplacer("%", "%25", "=", "%3D")

// DumpTar writes root and everything below it as a tar stream in the PAX format: numeric owners, and names where the
// snapshot has them, modes, modification times to the nanosecond, symlinks, hard links, devices, FIFOs and extended
// attributes, access lists among them. Names are below root, which is "./" if it is a folder; the root of a snapshot is
// left out, as nobody's entry. Holes are written as zeros. It returns a result only with a nil error.
// Errors: those of the repository and its store, and those of w.
func DumpTar(ctx context.Context, r *repo.Repository, root *tree.Node, w io.Writer) (*TarResult, error) {
	out := tar.NewWriter(w)
	t := tarDump{out: out, result: &TarResult{}}
	err := (&flow{repo: r, out: out}).run(ctx, func(ctx context.Context, f *flow) error {
		t.flow = f
		return Walk(ctx, r, "/", root, func(at string, n *tree.Node) error { return t.entry(ctx, at, n) })
	})
	if err != nil {
		return nil, err // without the mark of the end
	}
	return t.result, out.Close()
}

// tarDump is one stream in the making.
type tarDump struct {
	out    *tar.Writer
	flow   *flow
	result *TarResult
	names  hardlink.Names
}

// entry asks for one entry to be written.
func (t *tarDump) entry(ctx context.Context, at string, n *tree.Node) error {
	name := strings.TrimPrefix(at, "/")
	switch {
	case n.Type == tree.Socket:
		t.result.Sockets++
		return nil
	case n.Type == tree.Dir && at == "/" && n.Name == "/":
		return nil // the root of the snapshot: there is no such entry
	case n.Type == tree.Dir && at == "/":
		name = "./"
	case n.Type == tree.Dir:
		name += "/"
	case at == "/":
		name = n.Name
	}
	h := header(name, n)
	if first, found := t.names.First(name, n); found {
		t.result.HardLinks++
		h.Typeflag, h.Linkname = tar.TypeLink, first
		return t.flow.entry(ctx, t.begin(h))
	}
	if n.Type == tree.File {
		t.result.Files++
		t.result.Bytes += n.Size
		h.Typeflag, h.Size = tar.TypeReg, int64(n.Size)
		return t.flow.file(ctx, at, n, t.begin(h))
	}
	t.special(h, n)
	return t.flow.entry(ctx, t.begin(h))
}

// special completes the header of what has no content.
func (t *tarDump) special(h *tar.Header, n *tree.Node) {
	switch n.Type {
	case tree.Dir:
		t.result.Dirs++
		h.Typeflag = tar.TypeDir
	case tree.Symlink:
		t.result.Symlinks++
		h.Typeflag, h.Linkname = tar.TypeSymlink, n.LinkTarget
	case tree.FIFO:
		t.result.Specials++
		h.Typeflag = tar.TypeFifo
	default:
		t.result.Specials++
		h.Typeflag = tar.TypeBlock
		if n.Type == tree.CharDevice {
			h.Typeflag = tar.TypeChar
		}
		h.Devmajor, h.Devminor = int64(unix.Major(n.Device)), int64(unix.Minor(n.Device))
	}
}

// begin writes a header when its turn comes.
func (t *tarDump) begin(h *tar.Header) func() error {
	return func() error {
		if err := t.out.WriteHeader(h); err != nil {
			return fmt.Errorf("write the header of %.200q: %w", h.Name, err)
		}
		return nil
	}
}

// header describes a node, but for its type.
func header(name string, n *tree.Node) *tar.Header {
	h := &tar.Header{
		Format: tar.FormatPAX, Name: name, Mode: int64(fsmeta.UnixMode(n.Mode)), ModTime: n.ModTime,
		Uid: int(n.UID), Gid: int(n.GID), Uname: n.User, Gname: n.Group,
	}
	for _, x := range n.Xattrs {
		if h.PAXRecords == nil {
			h.PAXRecords = map[string]string{}
		}
		h.PAXRecords[xattrRecord+xattrEscape.Replace(x.Name)] = string(x.Value)
	}
	return h
}
