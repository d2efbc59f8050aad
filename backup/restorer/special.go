package restorer

import (
	"errors"
	"fmt"

	"example.com/pvcbackup/backup/internal/fsmeta"
	"example.com/pvcbackup/backup/repo/tree"
	"golang.org/x/sys/unix"
)

// special restores a symlink, device or FIFO.
func (r *restore) special(dirfd int, rel string, n *tree.Node) error {
	kind := specials
	if n.Type == tree.Symlink {
		kind = symlinks
	}
	give := func() { r.tally.planned[kind].Add(^uint64(0)) } // it is counted elsewhere
	err := r.make(dirfd, n)
	if errors.Is(err, unix.EEXIST) {
		st, statErr := fsmeta.Lstat(dirfd, n.Name)
		if statErr != nil {
			return at(rel, statErr)
		}
		if r.o.Overwrite == IfChanged && equalSpecial(dirfd, n, &st) {
			err = nil
		} else {
			skip, roomErr := r.makeRoom(dirfd, rel, &st)
			if roomErr != nil {
				return roomErr
			}
			if skip {
				r.tally.skipped.Add(1)
				give()
				return nil
			}
			err = r.make(dirfd, n)
		}
	}
	if n.Type != tree.Symlink && (errors.Is(err, unix.EPERM) || errors.Is(err, unix.EOPNOTSUPP)) {
		r.tally.notCreated.add(rel, err)
		give()
		return nil
	}
	if err == nil {
		err = r.metadata(dirfd, n.Name, -1, rel, n)
	}
	if err != nil {
		return at(rel, err)
	}
	r.tally.done[kind].Add(1)
	return nil
}

func (r *restore) make(dirfd int, n *tree.Node) error {
	return fsmeta.Retry(func() error {
		switch n.Type {
		case tree.Symlink:
			return unix.Symlinkat(n.LinkTarget, dirfd, n.Name)
		case tree.Device:
			return unix.Mknodat(dirfd, n.Name, unix.S_IFBLK|0o600, int(n.Device))
		case tree.CharDevice:
			return unix.Mknodat(dirfd, n.Name, unix.S_IFCHR|0o600, int(n.Device))
		}
		return unix.Mknodat(dirfd, n.Name, unix.S_IFIFO|0o600, 0)
	})
}

func equalSpecial(dirfd int, n *tree.Node, st *unix.Stat_t) bool {
	if fsmeta.TypeOf(st) != n.Type || st.Nlink > 1 && n.Links < 2 {
		return false
	}
	switch n.Type {
	case tree.Symlink:
		to, err := fsmeta.Readlink(dirfd, n.Name)
		return err == nil && to == n.LinkTarget
	case tree.FIFO:
		return true
	}
	return st.Rdev == n.Device
}

// link gives an existing file another name.
func (r *restore) link(cache *dirCache, l link) error {
	if r.damage.lacks(l.to) {
		r.damage.add(l.rel, l.node, fmt.Errorf("%.300q is another name of %.300q", l.rel, l.to))
		r.tally.planned[hardLinks].Add(^uint64(0))
		return nil
	}
	toDir, toName := split(l.to)
	from, err := r.target.dir(toDir)
	if err != nil {
		return at(l.to, err)
	}
	defer unix.Close(from)
	original, err := fsmeta.Lstat(from, toName)
	if errors.Is(err, unix.ENOENT) { // a device that could not be made
		r.tally.notCreated.add(l.rel, err)
		r.tally.planned[hardLinks].Add(^uint64(0))
		return nil
	}
	if err != nil {
		return at(l.to, err)
	}
	dir, name := split(l.rel)
	dirfd, err := cache.get(dir)
	if err != nil {
		return at(l.rel, err)
	}
	make := func() error { return fsmeta.Retry(func() error { return unix.Linkat(from, toName, dirfd, name, 0) }) }
	err = make()
	if errors.Is(err, unix.EEXIST) {
		st, statErr := fsmeta.Lstat(dirfd, name)
		if statErr != nil {
			return at(l.rel, statErr)
		}
		if st.Ino == original.Ino && st.Dev == original.Dev {
			err = nil
		} else {
			skip, roomErr := r.makeRoom(dirfd, l.rel, &st)
			if roomErr != nil {
				return roomErr
			}
			if skip {
				r.tally.skipped.Add(1)
				r.tally.planned[hardLinks].Add(^uint64(0))
				return nil
			}
			err = make()
		}
	}
	if err != nil {
		return at(l.rel, err)
	}
	r.tally.done[hardLinks].Add(1)
	return nil
}
