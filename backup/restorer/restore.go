package restorer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"example.com/pvcbackup/backup/internal/fsmeta"
	"example.com/pvcbackup/backup/internal/hardlink"
	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/backup/repo/tree"
	"golang.org/x/sys/unix"
)

// restore is one run.
type restore struct {
	repo   *repo.Repository
	o      Options
	target *target // nil in a dry run into nothing
	cancel context.CancelCauseFunc
	tally  tally
	damage damage

	batches chan *batch
	workers sync.WaitGroup
	open    *batch     // being filled
	dirs    []dirEntry // whose metadata is set last
	links   []link     // made when all files are there
	names   hardlink.Names
}

type dirEntry struct {
	rel  string
	node *tree.Node
}

type link struct {
	rel, to string
	node    *tree.Node
}

// Restore writes a snapshot into the directory target, which is made if only it is missing. It returns a result only
// with a nil error. Errors: NotEmptyError, ConflictError, SpaceError, MismatchError, PathError, DamageError, and those of
// the repository, its store, and the filesystem. Only after a DamageError everything else is there; the others end it.
//
// It loads the index.
func Restore(ctx context.Context, r *repo.Repository, snapshot repo.ID, target string, o Options) (*Result, error) {
	began := time.Now()
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	run := &restore{repo: r, o: o, cancel: cancel}
	if err := run.run(ctx, snapshot, target); err != nil {
		if cause := context.Cause(ctx); cause != nil && errors.Is(err, context.Canceled) {
			err = cause
		}
		return nil, fmt.Errorf("restore of %s into %s: %w", snapshot.Short(), target, err)
	}
	result := run.result()
	result.Duration = time.Since(began)
	return result, nil
}

func (r *restore) run(ctx context.Context, snapshot repo.ID, name string) error {
	sn, err := r.repo.LoadSnapshot(ctx, snapshot)
	if err != nil {
		return err
	}
	if err := r.repo.LoadIndex(ctx); err != nil {
		return err
	}
	if s := sn.Summary; s != nil {
		r.tally.totalFiles, r.tally.totalBytes = s.TotalFilesProcessed, s.TotalBytesProcessed
	}
	base, err := r.base(ctx, sn)
	if err != nil {
		return err
	}
	if r.target, err = openTarget(name, r.o.DryRun); err != nil {
		return err
	}
	if r.target != nil {
		defer r.target.close()
		if err := r.checkEmpty(name); err != nil {
			return err
		}
	}
	stop := r.reportProgress()
	defer stop()
	if err := r.fill(ctx, base); err != nil {
		return err
	}
	if r.o.DryRun {
		return r.damage.err()
	}
	if err := r.finish(base); err != nil {
		return err
	}
	return cmp.Or(r.tally.complete(), r.damage.err())
}

func (r *restore) checkEmpty(name string) error {
	if r.o.Overwrite != RefuseNonEmpty {
		return nil
	}
	names, err := r.target.names()
	if err != nil {
		return at(name, err)
	}
	if len(names) > 0 {
		return &NotEmptyError{Target: name, Names: names[:min(len(names), 5)]}
	}
	return nil
}

// fill walks the snapshot and lets workers write the files.
func (r *restore) fill(ctx context.Context, base *tree.Node) error {
	r.batches = make(chan *batch)
	r.open = newBatch(firstBatch)
	for range r.o.Concurrency {
		r.workers.Go(func() {
			w := &worker{restore: r, dirs: dirCache{t: r.target}}
			defer w.dirs.close()
			for b := range r.batches {
				if ctx.Err() == nil {
					if err := w.batch(ctx, b); err != nil {
						r.cancel(err)
					}
				}
				b.close()
			}
		})
	}
	err := r.walk(ctx, base)
	if err == nil {
		err = r.send(ctx)
	}
	if err != nil {
		r.cancel(err)
		r.open.close()
	}
	close(r.batches)
	r.workers.Wait()
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return err
}

func (r *restore) walk(ctx context.Context, base *tree.Node) error {
	if base.Type != tree.Dir {
		return r.entry(ctx, r.rootFd(), ".", base)
	}
	return r.content(ctx, r.rootFd(), ".", base)
}

func (r *restore) rootFd() int {
	if r.target == nil {
		return -1
	}
	return r.target.fd
}

// content restores what is in a directory that is open as fd; -1 in a dry run where there is none.
func (r *restore) content(ctx context.Context, fd int, rel string, dir *tree.Node) error {
	var names map[string]bool
	if r.o.Delete {
		names = map[string]bool{}
	}
	err := r.each(ctx, dir.Subtree, func(n *tree.Node) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if names != nil {
			names[n.Name] = true
		}
		return r.entry(ctx, fd, rel, n)
	})
	if lasting(err) { // only of this listing: those below were dealt with
		r.damage.add(rel, dir, err)
		return nil
	}
	if err == nil && names != nil && fd >= 0 {
		err = r.deleteOthers(fd, rel, names)
	}
	return err
}

func (r *restore) entry(ctx context.Context, fd int, dir string, n *tree.Node) error {
	rel := join(dir, n.Name)
	switch n.Type {
	case tree.Dir:
		return r.subdir(ctx, fd, rel, n)
	case tree.Socket:
		r.tally.sockets.Add(1)
		return nil
	}
	if to, ok := r.names.First(rel, n); ok {
		r.plan(hardLinks)
		r.links = append(r.links, link{rel: rel, to: to, node: n})
		return nil
	}
	switch n.Type {
	case tree.File:
		r.plan(files)
		return r.file(ctx, rel, n)
	case tree.Symlink:
		r.plan(symlinks)
	default:
		r.plan(specials)
	}
	if r.o.DryRun {
		return nil
	}
	return r.special(fd, rel, n)
}

// plan counts an entry; a dry run is done with that.
func (r *restore) plan(kind int) {
	r.tally.planned[kind].Add(1)
	if r.o.DryRun {
		r.tally.done[kind].Add(1)
	}
}

func (r *restore) subdir(ctx context.Context, parent int, rel string, n *tree.Node) error {
	r.plan(dirs)
	if r.o.DryRun {
		fd := -1
		if parent >= 0 {
			if sub, err := openAsIs(parent, n.Name); err == nil {
				defer unix.Close(sub)
				fd = sub
			}
		}
		return r.content(ctx, fd, rel, n)
	}
	made, skip, err := r.mkdir(parent, rel, n)
	if err != nil {
		return err
	}
	if skip {
		r.tally.skipped.Add(1)
		r.tally.planned[dirs].Add(^uint64(0))
		return nil
	}
	open := openForUse
	if made || r.o.Overwrite != Never {
		r.dirs = append(r.dirs, dirEntry{rel: rel, node: n})
	} else {
		r.tally.done[dirs].Add(1)
		open = openAsIs
	}
	fd, err := open(parent, n.Name)
	if err != nil {
		return at(rel, err)
	}
	defer unix.Close(fd)
	return r.content(ctx, fd, rel, n)
}

// mkdir makes a directory, or finds one. skip says that something else is there and stays.
func (r *restore) mkdir(parent int, rel string, n *tree.Node) (made, skip bool, err error) {
	make := func() error { return fsmeta.Retry(func() error { return unix.Mkdirat(parent, n.Name, 0o700) }) }
	err = make()
	if !errors.Is(err, unix.EEXIST) {
		return err == nil, false, at(rel, err)
	}
	st, err := fsmeta.Lstat(parent, n.Name)
	if err != nil {
		return false, false, at(rel, err)
	}
	if fsmeta.TypeOf(&st) == tree.Dir {
		return false, false, nil
	}
	if skip, err := r.makeRoom(parent, rel, &st); skip || err != nil {
		return false, skip, err
	}
	return true, false, at(rel, make())
}

// makeRoom removes what exists where an entry is to be, if the policy allows; skip says that it stays and nothing is
// to be restored.
func (r *restore) makeRoom(dirfd int, rel string, st *unix.Stat_t) (skip bool, err error) {
	_, name := split(rel)
	switch r.o.Overwrite {
	case Never:
		return true, nil
	case RefuseNonEmpty:
		return false, &ConflictError{Path: rel, Problem: "it appeared in the target during the restore, or the filesystem does not tell its name from another one"}
	}
	flags := 0
	if fsmeta.TypeOf(st) == tree.Dir {
		if r.o.Delete {
			return false, at(rel, removeAll(dirfd, name))
		}
		flags = unix.AT_REMOVEDIR
	}
	err = fsmeta.Retry(func() error { return unix.Unlinkat(dirfd, name, flags) })
	if errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.EEXIST) {
		return false, &ConflictError{Path: rel, Problem: "there is a directory with something in it, and the snapshot has something else here"}
	}
	return false, at(rel, err)
}

func (r *restore) deleteOthers(fd int, rel string, keep map[string]bool) error {
	names, err := fsmeta.Names(fd)
	if err != nil {
		return at(rel, err)
	}
	for _, n := range names {
		if keep[n] || rel == "." && n == lostAndFound {
			continue
		}
		r.tally.deleted.Add(1)
		if r.o.DryRun {
			continue
		}
		if err := removeAll(fd, n); err != nil {
			return at(join(rel, n), err)
		}
	}
	return nil
}

// finish makes the hard links and then sets the metadata of directories, the innermost first.
func (r *restore) finish(base *tree.Node) error {
	cache := dirCache{t: r.target}
	defer cache.close()
	for _, l := range r.links {
		if err := r.link(&cache, l); err != nil {
			return err
		}
	}
	for i := len(r.dirs) - 1; i >= 0; i-- {
		d := r.dirs[i]
		parent, name := split(d.rel)
		fd, err := cache.get(parent)
		if err == nil {
			err = r.metadata(fd, name, -1, d.rel, d.node)
		}
		if err != nil {
			return at(d.rel, err)
		}
		r.tally.done[dirs].Add(1)
	}
	if base.Type == tree.Dir && r.o.Path == "" && base.Name != "/" && r.o.Overwrite != Never {
		if err := r.rootMetadata(base); err != nil {
			return err
		}
	}
	return at(".", fsmeta.Retry(func() error { return unix.Syncfs(r.target.fd) }))
}

func (r *restore) reportProgress() (stop func()) {
	if r.o.Progress == nil {
		return func() {}
	}
	report := func() {
		r.o.Progress(Progress{
			Files: r.tally.done[files].Load(), Bytes: r.tally.bytes.Load(),
			TotalFiles: r.tally.totalFiles, TotalBytes: r.tally.totalBytes,
		})
	}
	done := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		ticker := time.NewTicker(r.o.ProgressInterval)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				report()
			case <-done:
				report()
				return
			}
		}
	})
	return func() {
		close(done)
		running.Wait()
	}
}
