package restorer

import (
	"errors"
	"os"
	"path"
	"strings"

	"example.com/pvcbackup/backup/internal/fsmeta"
	"example.com/pvcbackup/backup/repo/tree"
	"golang.org/x/sys/unix"
)

const lostAndFound = "lost+found"

// target is the directory that is restored into. Everything is done relative to open directories below it that were
// reached without following a symlink, one name at a time.
type target struct{ fd int }

// openTarget opens the directory, and makes it if it is missing.
func openTarget(name string, dry bool) (*target, error) {
	fd := -1
	open := func() error {
		return fsmeta.Retry(func() (err error) {
			fd, err = unix.Open(name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
			return err
		})
	}
	err := open()
	if errors.Is(err, unix.ENOENT) {
		if dry {
			return nil, nil
		}
		if err = os.Mkdir(name, 0o700); err == nil {
			err = open()
		}
	}
	if err != nil {
		return nil, &os.PathError{Op: "open the target", Path: name, Err: err}
	}
	return &target{fd: fd}, nil
}

func (t *target) close() { unix.Close(t.fd) }

// names lists what is in the target, but for lost+found.
func (t *target) names() ([]string, error) {
	names, err := fsmeta.Names(t.fd)
	var out []string
	for _, n := range names {
		if n == lostAndFound {
			if st, err := fsmeta.Lstat(t.fd, n); err == nil && fsmeta.TypeOf(&st) == tree.Dir {
				continue
			}
		}
		out = append(out, n)
	}
	return out, err
}

// dir opens a directory below the target, for the *at calls only. The caller closes it.
func (t *target) dir(rel string) (int, error) {
	fd := -1
	err := fsmeta.Retry(func() (err error) {
		fd, err = unix.Openat2(t.fd, rel, &unix.OpenHow{
			Flags:   unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC,
			Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
		})
		return err
	})
	switch {
	case err == nil:
		return fd, nil
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.EXDEV):
		return -1, err
	}
	return t.dirStepwise(rel) // an old kernel, a strict sandbox, a very long path
}

func (t *target) dirStepwise(rel string) (int, error) {
	at, err := fsmeta.Open(t.fd, ".", unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return -1, err
	}
	for name := range strings.SplitSeq(rel, "/") {
		next, err := fsmeta.Open(at, name, unix.O_PATH|unix.O_DIRECTORY)
		unix.Close(at)
		if err != nil {
			return -1, err
		}
		at = next
	}
	return at, nil
}

// dirCache keeps the directory that was used last: files come directory by directory.
type dirCache struct {
	t   *target
	rel string
	fd  int
}

func (c *dirCache) get(rel string) (int, error) {
	if c.rel == rel && rel != "" {
		return c.fd, nil
	}
	c.close()
	fd, err := c.t.dir(rel)
	if err == nil {
		c.rel, c.fd = rel, fd
	}
	return fd, err
}

func (c *dirCache) close() {
	if c.rel != "" {
		unix.Close(c.fd)
	}
	c.rel = ""
}

// split returns the directory and the name of a path below the target.
func split(rel string) (dir, name string) { return path.Dir(rel), path.Base(rel) }

func join(dir, name string) string {
	if dir == "." {
		return name
	}
	return dir + "/" + name
}

// removeAll removes an entry and everything below it.
func removeAll(dirfd int, name string) error {
	err := fsmeta.Retry(func() error { return unix.Unlinkat(dirfd, name, 0) })
	if err == nil || errors.Is(err, unix.ENOENT) {
		return nil
	}
	if !errors.Is(err, unix.EISDIR) && !errors.Is(err, unix.EPERM) {
		return err
	}
	fd, openErr := openForUse(dirfd, name)
	if openErr != nil {
		return err
	}
	defer unix.Close(fd)
	names, err := fsmeta.Names(fd)
	for _, n := range names {
		if err := removeAll(fd, n); err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	return fsmeta.Retry(func() error { return unix.Unlinkat(dirfd, name, unix.AT_REMOVEDIR) })
}

// openForUse opens a directory for listing and filling, also one of our own whose mode forbids it. Its mode is set last.
func openForUse(dirfd int, name string) (int, error) {
	path, err := fsmeta.Open(dirfd, name, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return -1, err
	}
	defer unix.Close(path)
	if st, err := fsmeta.Fstat(path); err == nil && st.Mode&0o700 != 0o700 {
		_ = unix.Chmod(fsmeta.FdPath(path), st.Mode&0o7777|0o700) // not ours: what follows tells
	}
	return fsmeta.Open(path, ".", unix.O_RDONLY|unix.O_DIRECTORY)
}

// openAsIs opens a directory for listing and filling, and leaves its mode alone.
func openAsIs(dirfd int, name string) (int, error) {
	return fsmeta.Open(dirfd, name, unix.O_RDONLY|unix.O_DIRECTORY)
}
