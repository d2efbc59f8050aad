package restorer

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"example.com/pvcbackup/backup/internal/fsmeta"
	"example.com/pvcbackup/backup/repo/tree"
	"golang.org/x/sys/unix"
)

// metadata sets owner, attributes, mode and times of an entry, in this order: a change of owner clears setuid and file
// capabilities, and an ACL is masked by the mode. Then it compares. fd is the entry if it is open, else -1.
func (r *restore) metadata(dirfd int, name string, fd int, rel string, n *tree.Node) error {
	st, err := look(dirfd, name, fd)
	if err != nil {
		return err
	}
	owned := r.owner(dirfd, name, rel, n, &st)
	if err := r.attributes(dirfd, name, fd, rel, n, &st); err != nil {
		return err
	}
	mode := n.Mode
	if n.Type == tree.File && !owned && mode&(fs.ModeSetuid|fs.ModeSetgid) != 0 {
		mode &^= fs.ModeSetuid | fs.ModeSetgid
		r.tally.modes.add(rel, errors.New("no setuid or setgid for another owner"))
	}
	if n.Type != tree.Symlink {
		if fd >= 0 {
			err = fsmeta.Retry(func() error { return unix.Fchmod(fd, fsmeta.UnixMode(mode)) })
		} else {
			err = chmod(dirfd, name, mode)
		}
		if err != nil {
			return fmt.Errorf("set the mode: %w", err)
		}
	}
	if err := setTimes(dirfd, name, n); err != nil {
		return fmt.Errorf("set the times: %w", err)
	}
	return r.compare(dirfd, name, fd, rel, n, mode)
}

// look describes an entry, by its open file if there is one.
func look(dirfd int, name string, fd int) (unix.Stat_t, error) {
	if fd >= 0 {
		return fsmeta.Fstat(fd)
	}
	return fsmeta.Lstat(dirfd, name)
}

// owner reports whether the entry has the owner of the snapshot now.
func (r *restore) owner(dirfd int, name, rel string, n *tree.Node, st *unix.Stat_t) bool {
	if st.Uid == n.UID && st.Gid == n.GID {
		return true
	}
	if r.o.SkipOwners {
		return false
	}
	err := fsmeta.Retry(func() error {
		return unix.Fchownat(dirfd, name, int(n.UID), int(n.GID), unix.AT_SYMLINK_NOFOLLOW)
	})
	if err != nil {
		r.tally.owners.add(rel, err)
	}
	return err == nil
}

func chmod(dirfd int, name string, mode fs.FileMode) error {
	fd, err := fsmeta.Open(dirfd, name, unix.O_PATH)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	st, err := fsmeta.Fstat(fd)
	if err != nil {
		return err
	}
	if fsmeta.TypeOf(&st) == tree.Symlink {
		return unix.ELOOP // it was put there this moment; its target is none of ours
	}
	return fsmeta.Retry(func() error { return unix.Chmod(fsmeta.FdPath(fd), fsmeta.UnixMode(mode)) })
}

func setTimes(dirfd int, name string, n *tree.Node) error {
	times := []unix.Timespec{timespec(n.AccessTime), timespec(n.ModTime)}
	return fsmeta.Retry(func() error { return unix.UtimesNanoAt(dirfd, name, times, unix.AT_SYMLINK_NOFOLLOW) })
}

func timespec(t time.Time) unix.Timespec {
	return unix.Timespec{Sec: t.Unix(), Nsec: int64(t.Nanosecond())}
}

// attributes makes the extended attributes those of the snapshot. What is not permitted is counted. Labels that the
// system gives by itself are not removed.
func (r *restore) attributes(dirfd int, name string, fd int, rel string, n *tree.Node, st *unix.Stat_t) error {
	var have []tree.Xattr
	var err error
	if fd >= 0 {
		have, err = fsmeta.FdXattrs(fd)
	} else {
		have, err = fsmeta.Xattrs(dirfd, name)
	}
	if err != nil {
		return fmt.Errorf("list the attributes: %w", err)
	}
	if len(have)+len(n.Xattrs) == 0 {
		return nil
	}
	want := map[string][]byte{}
	for _, x := range n.Xattrs {
		want[x.Name] = x.Value
	}
	path := fsmeta.ProcPath(dirfd, name)
	for _, x := range have {
		value, wanted := want[x.Name]
		if wanted && bytes.Equal(value, x.Value) {
			delete(want, x.Name)
		}
		if wanted || strings.HasPrefix(x.Name, "security.") {
			continue
		}
		if err := fsmeta.Retry(func() error { return unix.Lremovexattr(path, x.Name) }); err != nil {
			r.tally.xattrs.add(rel, fmt.Errorf("remove %q: %w", x.Name, err))
		}
	}
	if len(want) > 0 && n.Type != tree.Symlink && st.Mode&0o600 != 0o600 {
		_ = chmod(dirfd, name, fsmeta.Mode(st)|0o600) // attributes of users need write permission; the mode comes next
	}
	for _, x := range n.Xattrs {
		value, missing := want[x.Name]
		if !missing {
			continue
		}
		err := fsmeta.Retry(func() error { return unix.Lsetxattr(path, x.Name, value, 0) })
		if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
			return fmt.Errorf("set attribute %q: %w", x.Name, err)
		}
		if err != nil {
			r.tally.xattrs.add(rel, fmt.Errorf("set %q: %w", x.Name, err))
		}
	}
	return nil
}

// compare looks at what has become of an entry.
func (r *restore) compare(dirfd int, name string, fd int, rel string, n *tree.Node, mode fs.FileMode) error {
	st, err := look(dirfd, name, fd)
	if err != nil {
		return err
	}
	differs := func(field string, want, got any) error {
		return &MismatchError{Path: rel, Field: field, Want: fmt.Sprint(want), Got: fmt.Sprint(got)}
	}
	if got := fsmeta.TypeOf(&st); got != n.Type && rel != "." {
		return differs("the type", n.Type, got)
	}
	if n.Type == tree.File && uint64(st.Size) != n.Size {
		return differs("the size", n.Size, st.Size)
	}
	if n.Type == tree.Symlink {
		return nil
	}
	const special = fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky
	got := fsmeta.Mode(&st)
	if got&fs.ModePerm != mode&fs.ModePerm || got&special&^mode != 0 {
		return differs("the mode", mode, got)
	}
	if got&special != mode&special { // the kernel drops bits without an error
		r.tally.modes.add(rel, fmt.Errorf("the mode is %v and not %v", got, mode))
	}
	return nil
}

// rootMetadata gives the target itself the metadata of the source. A volume's root often belongs to somebody else, who
// alone may do that, so what is not permitted is counted.
func (r *restore) rootMetadata(n *tree.Node) error {
	root := *n
	err := r.metadata(r.target.fd, ".", -1, ".", &root)
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EROFS) {
		r.tally.modes.add(".", err)
		return nil
	}
	return at(".", err)
}
