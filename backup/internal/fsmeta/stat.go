package fsmeta

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"time"

	"example.com/pvcbackup/backup/repo/tree"
	"golang.org/x/sys/unix"
)

// Retry calls f until it is not interrupted by a signal.
func Retry(f func() error) error {
	for {
		if err := f(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// Open opens an entry of a directory, never following it if it is a symlink.
func Open(dirfd int, name string, flags int) (fd int, err error) {
	err = Retry(func() error {
		fd, err = unix.Openat(dirfd, name, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		return err
	})
	return fd, err
}

// OpenQuiet opens an entry for reading, without changing its access time where the caller may ask for that. It does
// not wait for the other end of a FIFO.
func OpenQuiet(dirfd int, name string, flags int) (int, error) {
	flags |= unix.O_RDONLY | unix.O_NONBLOCK
	fd, err := Open(dirfd, name, flags|unix.O_NOATIME)
	if errors.Is(err, unix.EPERM) {
		fd, err = Open(dirfd, name, flags)
	}
	return fd, err
}

// Lstat describes an entry of a directory.
func Lstat(dirfd int, name string) (st unix.Stat_t, err error) {
	err = Retry(func() error { return unix.Fstatat(dirfd, name, &st, unix.AT_SYMLINK_NOFOLLOW) })
	return st, err
}

// Fstat describes an open file.
func Fstat(fd int) (st unix.Stat_t, err error) {
	err = Retry(func() error { return unix.Fstat(fd, &st) })
	return st, err
}

// Entry is what a directory says of one of its entries.
type Entry struct {
	Name string
	// Regular says that it is a file. Filesystems may leave it open, and the entry may be replaced at any time.
	Regular bool
}

// Names lists a directory, sorted by raw bytes, from its beginning.
func Names(dirfd int) ([]string, error) {
	entries, err := Entries(dirfd)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name
	}
	return names, nil
}

// Entries lists a directory, sorted by raw names, from its beginning.
func Entries(dirfd int) ([]Entry, error) {
	if _, err := unix.Seek(dirfd, 0, unix.SEEK_SET); err != nil {
		return nil, err
	}
	var entries []Entry
	buf := make([]byte, 64<<10)
	for {
		var n int
		err := Retry(func() (err error) {
			n, err = unix.ReadDirent(dirfd, buf)
			return err
		})
		if err != nil {
			return nil, err
		}
		if n <= 0 {
			slices.SortFunc(entries, func(a, b Entry) int { return strings.Compare(a.Name, b.Name) })
			return entries, nil
		}
		entries = appendEntries(entries, buf[:n])
	}
}

// direntHead is what comes before the name in the kernel's struct linux_dirent64: inode, offset, record length, type.
const direntHead = 8 + 8 + 2 + 1

func appendEntries(entries []Entry, buf []byte) []Entry {
	for len(buf) > direntHead {
		length := int(binary.NativeEndian.Uint16(buf[16:]))
		if length <= direntHead || length > len(buf) {
			break
		}
		name, _, _ := bytes.Cut(buf[direntHead:length], []byte{0})
		if s := string(name); s != "." && s != ".." {
			entries = append(entries, Entry{Name: s, Regular: buf[18] == unix.DT_REG})
		}
		buf = buf[length:]
	}
	return entries
}

// TypeOf returns the type of a node, or "" for what no tree can hold.
func TypeOf(st *unix.Stat_t) tree.Type {
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		return tree.File
	case unix.S_IFDIR:
		return tree.Dir
	case unix.S_IFLNK:
		return tree.Symlink
	case unix.S_IFBLK:
		return tree.Device
	case unix.S_IFCHR:
		return tree.CharDevice
	case unix.S_IFIFO:
		return tree.FIFO
	case unix.S_IFSOCK:
		return tree.Socket
	}
	return ""
}

var (
	typeBits = map[tree.Type]fs.FileMode{
		tree.Dir: fs.ModeDir, tree.Symlink: fs.ModeSymlink, tree.Device: fs.ModeDevice,
		tree.CharDevice: fs.ModeDevice | fs.ModeCharDevice, tree.FIFO: fs.ModeNamedPipe, tree.Socket: fs.ModeSocket,
	}
	specialBits = []struct {
		unix uint32
		mode fs.FileMode
	}{{unix.S_ISUID, fs.ModeSetuid}, {unix.S_ISGID, fs.ModeSetgid}, {unix.S_ISVTX, fs.ModeSticky}}
)

// Mode returns Go's mode bits.
func Mode(st *unix.Stat_t) fs.FileMode {
	mode := fs.FileMode(st.Mode&0o777) | typeBits[TypeOf(st)]
	for _, b := range specialBits {
		if st.Mode&b.unix != 0 {
			mode |= b.mode
		}
	}
	return mode
}

// UnixMode returns the permission and special bits as chmod takes them.
func UnixMode(mode fs.FileMode) uint32 {
	m := uint32(mode.Perm())
	for _, b := range specialBits {
		if mode&b.mode != 0 {
			m |= b.unix
		}
	}
	return m
}

func toTime(t unix.Timespec) time.Time { return time.Unix(t.Unix()).UTC() }

// Node returns what st says as a node, without link target, attributes, content and subtree. The access time is that
// of modification and the device is left out, so that two looks at an unchanged file are equal.
func Node(name string, st *unix.Stat_t) *tree.Node {
	n := &tree.Node{
		Name: name, Type: TypeOf(st), Mode: Mode(st), ModTime: toTime(st.Mtim), ChangeTime: toTime(st.Ctim),
		UID: st.Uid, GID: st.Gid, Inode: st.Ino,
	}
	n.AccessTime = n.ModTime
	switch n.Type {
	case tree.File:
		n.Size = uint64(st.Size)
	case tree.Device, tree.CharDevice:
		n.Device = st.Rdev
	}
	if links := uint64(st.Nlink); n.Type != tree.Dir && (n.Type != tree.FIFO || links > 1) {
		n.Links = links
	}
	return n
}

// AccessTime returns the time of the last access.
func AccessTime(st *unix.Stat_t) time.Time { return toTime(st.Atim) }

// Readlink returns the target of a symlink.
func Readlink(dirfd int, name string) (string, error) {
	for size := 256; ; size *= 4 {
		buf := make([]byte, size)
		var n int
		err := Retry(func() (err error) {
			n, err = unix.Readlinkat(dirfd, name, buf)
			return err
		})
		if err != nil {
			return "", err
		}
		if n < size {
			return string(buf[:n]), nil
		}
	}
}
