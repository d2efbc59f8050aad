package main

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// copyTree copies a directory to dst, which does not exist: contents, holes, modes, times, owners, links, hard links
// inside the tree, extended attributes and special files. Owners, and attributes in the name spaces of the system,
// are copied as far as the process may: without privileges the copy belongs to whoever makes it. What vanishes from
// src meanwhile is left out.
func copyTree(src, dst string) error {
	c := copier{links: map[inode]string{}}
	return c.copy(src, dst)
}

type inode struct{ dev, ino uint64 }

type copier struct {
	links map[inode]string // where the first of several hard links to a file was copied to
}

// copy copies whatever is at src.
func (c *copier) copy(src, dst string) error {
	var st unix.Stat_t
	if err := unix.Lstat(src, &st); err != nil {
		return pathError("lstat", src, err)
	}
	id := inode{st.Dev, st.Ino}
	if first, again := c.links[id]; again {
		return os.Link(first, dst)
	}
	defer lend(src, &st)()
	if err := c.create(src, dst, &st); err != nil {
		return err
	}
	if err := copyMetadata(src, dst, &st); err != nil {
		return err
	}
	if st.Nlink > 1 && st.Mode&unix.S_IFMT != unix.S_IFDIR {
		c.links[id] = dst
	}
	return nil
}

// create makes dst with the contents of src, without its metadata.
func (c *copier) create(src, dst string, st *unix.Stat_t) error {
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return c.copyDir(src, dst, st)
	case unix.S_IFREG:
		return copyFile(src, dst, st)
	case unix.S_IFLNK:
		to, err := os.Readlink(src)
		if err != nil {
			return err
		}
		return os.Symlink(to, dst)
	default: // pipe, socket or device
		return pathError("mknod", dst, unix.Mknod(dst, st.Mode&unix.S_IFMT|0o600, int(st.Rdev)))
	}
}

func (c *copier) copyDir(src, dst string, st *unix.Stat_t) error {
	entries, err := os.ReadDir(src)
	if err != nil {
		return err
	}
	if err := os.Mkdir(dst, 0o700); err != nil {
		return err
	}
	for _, e := range entries {
		to := filepath.Join(dst, e.Name())
		err := c.copy(filepath.Join(src, e.Name()), to)
		if errors.Is(err, fs.ErrNotExist) { // it went away; what there is of it goes, too
			err = copyBackend{}.Remove(to)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func copyFile(src, dst string, st *unix.Stat_t) error {
	in, err := openWithoutTrace(src)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(dst, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(copyExtents(in, out, st.Size), out.Close())
}

// openWithoutTrace opens a regular file without changing its access time, where that may be asked for.
func openWithoutTrace(path string) (*os.File, error) {
	const flags = os.O_RDONLY | unix.O_NOFOLLOW | unix.O_NONBLOCK
	f, err := os.OpenFile(path, flags|unix.O_NOATIME, 0)
	if errors.Is(err, unix.EPERM) { // somebody else's file
		return os.OpenFile(path, flags, 0)
	}
	return f, err
}

// copyExtents copies the parts of a file that hold data, so that holes stay holes. The kernel copies, and shares
// blocks where the file system can.
func copyExtents(in, out *os.File, size int64) error {
	for at := int64(0); at < size; {
		start, err := unix.Seek(int(in.Fd()), at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			break // nothing but a hole to the end
		}
		if err != nil {
			return pathError("seek", in.Name(), err)
		}
		end, err := unix.Seek(int(in.Fd()), start, unix.SEEK_HOLE)
		if err != nil {
			return pathError("seek", in.Name(), err)
		}
		end = min(end, size)
		if start >= end {
			break
		}
		if err := copyRange(in, out, start, end); err != nil {
			return err
		}
		at = end
	}
	return out.Truncate(size)
}

func copyRange(in, out *os.File, start, end int64) error {
	for _, f := range []*os.File{in, out} {
		if _, err := f.Seek(start, io.SeekStart); err != nil {
			return err
		}
	}
	if _, err := io.CopyN(out, in, end-start); err != nil && !errors.Is(err, io.EOF) { // EOF: cut meanwhile
		return err
	}
	return nil
}

// lend gives the owner of a file or directory the right to read it where it took that from itself, for as long as it
// is being copied, and returns what takes it back. Who may read everything, or does not own it, needs or gets nothing.
func lend(path string, st *unix.Stat_t) (takeBack func()) {
	rights := map[uint32]uint32{unix.S_IFREG: unix.S_IRUSR, unix.S_IFDIR: unix.S_IRUSR | unix.S_IXUSR}[st.Mode&unix.S_IFMT]
	if st.Mode&rights == rights || os.Geteuid() == 0 || int(st.Uid) != os.Geteuid() {
		return func() {}
	}
	if unix.Chmod(path, st.Mode&0o7777|rights) != nil {
		return func() {} // opening it tells why
	}
	return func() { _ = unix.Chmod(path, st.Mode&0o7777) }
}

// copyMetadata comes last, children first: creating things inside a directory changes its times.
func copyMetadata(src, dst string, st *unix.Stat_t) error {
	if err := os.Lchown(dst, int(st.Uid), int(st.Gid)); err != nil && !errors.Is(err, unix.EPERM) {
		return err
	}
	if err := copyAttributes(src, dst); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFLNK { // after chown, which takes the set-id bits away
		if err := unix.Chmod(dst, st.Mode&0o7777); err != nil {
			return pathError("chmod", dst, err)
		}
	}
	times := []unix.Timespec{st.Atim, st.Mtim}
	return pathError("utimensat", dst, unix.UtimesNanoAt(unix.AT_FDCWD, dst, times, unix.AT_SYMLINK_NOFOLLOW))
}

func copyAttributes(src, dst string) error {
	names := make([]byte, 64<<10) // the most the kernel returns
	n, err := unix.Llistxattr(src, names)
	if err != nil {
		return ignorable("llistxattr", src, err)
	}
	value := make([]byte, 64<<10)
	for name := range bytes.SplitSeq(names[:n], []byte{0}) {
		if len(name) == 0 {
			continue
		}
		size, err := unix.Lgetxattr(src, string(name), value)
		if err == nil {
			err = unix.Lsetxattr(dst, string(name), value[:size], 0)
		}
		if err := ignorable("copying the attribute "+string(name), src, err); err != nil {
			return err
		}
	}
	return nil
}

// ignorable drops the errors that mean "not here, or not for you".
func ignorable(op, path string, err error) error {
	for _, e := range []error{unix.ENOTSUP, unix.EPERM, unix.EACCES, unix.ENODATA} {
		if errors.Is(err, e) {
			return nil
		}
	}
	return pathError(op, path, err)
}

func pathError(op, path string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: path, Err: err}
}
