package fsmeta

import (
	"bytes"
	"errors"
	"slices"
	"strconv"
	"strings"

	"example.com/pvcbackup/backup/repo/tree"
	"golang.org/x/sys/unix"
)

// ProcPath names an entry by a path that passes through the open directory. The l-variants of the attribute calls do
// not follow it if it is a symlink.
func ProcPath(dirfd int, name string) string { return FdPath(dirfd) + "/" + name }

// FdPath names an open file, also one opened with O_PATH.
func FdPath(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// Xattrs returns the extended attributes of an entry, sorted by name.
func Xattrs(dirfd int, name string) ([]tree.Xattr, error) {
	path := ProcPath(dirfd, name)
	return xattrs(
		func(buf []byte) (int, error) { return unix.Llistxattr(path, buf) },
		func(attr string, buf []byte) (int, error) { return unix.Lgetxattr(path, attr, buf) })
}

// FdXattrs returns the extended attributes of an open file, sorted by name.
func FdXattrs(fd int) ([]tree.Xattr, error) {
	return xattrs(
		func(buf []byte) (int, error) { return unix.Flistxattr(fd, buf) },
		func(attr string, buf []byte) (int, error) { return unix.Fgetxattr(fd, attr, buf) })
}

func xattrs(list func([]byte) (int, error), get func(string, []byte) (int, error)) ([]tree.Xattr, error) {
	names, err := grow(list)
	if errors.Is(err, unix.ENOTSUP) {
		return nil, nil // a filesystem without attributes has lost none
	}
	if err != nil || len(names) == 0 {
		return nil, err
	}
	var out []tree.Xattr
	for name := range bytes.SplitSeq(bytes.TrimSuffix(names, []byte{0}), []byte{0}) {
		value, err := grow(func(buf []byte) (int, error) { return get(string(name), buf) })
		if errors.Is(err, unix.ENODATA) || errors.Is(err, unix.ENOTSUP) {
			continue // gone since it was listed, or listed by a filesystem that does not keep it
		}
		if err != nil {
			return nil, err
		}
		out = append(out, tree.Xattr{Name: string(name), Value: value})
	}
	slices.SortFunc(out, func(a, b tree.Xattr) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// grow calls a function that fills a buffer until the buffer is large enough. Most files have no attributes, which
// one call finds out.
func grow(call func([]byte) (int, error)) ([]byte, error) {
	var buf []byte
	for {
		var n int
		err := Retry(func() (err error) {
			n, err = call(buf)
			return err
		})
		switch {
		case errors.Is(err, unix.ERANGE):
			buf = nil // it grew; ask for its size again
		case err != nil:
			return nil, err
		case n == 0:
			return []byte{}, nil
		case buf != nil:
			return buf[:n], nil
		default:
			buf = make([]byte, n)
		}
	}
}
