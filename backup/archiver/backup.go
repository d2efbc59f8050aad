package archiver

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"example.com/pvcbackup/backup/internal/chunker"
	"example.com/pvcbackup/backup/internal/commit"
	"example.com/pvcbackup/backup/internal/fsmeta"
	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/backup/repo/tree"
	"golang.org/x/sys/unix"
)

// backup is one run.
type backup struct {
	repo   *repo.Repository
	writer *repo.Writer
	o      Options
	source string
	kind   Chunker
	parent *parent
	device uint64 // of the source
	cancel context.CancelCauseFunc

	readers *readers
	walkers chan struct{} // a token for each additional walker
	tally   tally
	trees   commit.Trees
	sample  *commit.Sample
}

// Backup stores the directory source and commits its snapshot. It returns a result only with a nil error. Errors:
// UnreadableError, ErrEmpty, and those of the repository and its store.
//
// It loads the index. The caller holds a lock and passes its context.
func Backup(ctx context.Context, r *repo.Repository, source string, o Options) (*Result, error) {
	began := time.Now()
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	b := &backup{repo: r, o: o, source: source, cancel: cancel, sample: commit.NewSample(o.Verify.SampleBlobs)}
	result, err := b.run(ctx)
	if err != nil {
		// What ended the context is the first error; what followed from it says less.
		if cause := context.Cause(ctx); cause != nil && errors.Is(err, context.Canceled) {
			err = cause
		}
		return nil, fmt.Errorf("backup of %s: %w", source, err)
	}
	result.Duration = time.Since(began)
	return result, nil
}

func (b *backup) run(ctx context.Context) (*Result, error) {
	parent, err := b.findParent(ctx)
	if err != nil {
		return nil, err
	}
	if b.o.RunName != "" {
		switch found, sn, err := b.repo.FindRun(ctx, b.o.RunName); {
		case err == nil:
			return reused(found, sn), nil
		case !errors.Is(err, repo.ErrNotFound):
			return nil, fmt.Errorf("run %s: %w", b.o.RunName, err)
		}
	}
	if b.parent = parent; parent == nil {
		b.kind = Gear
	} else {
		b.kind = ChunkerOf(parent.tags)
	}
	if b.o.Chunker != "" {
		b.kind = b.o.Chunker
	}
	root, err := openSource(b.source)
	if err != nil {
		return nil, err
	}
	defer unix.Close(root)
	return b.store(ctx, root)
}

// store walks, verifies and commits.
func (b *backup) store(ctx context.Context, root int) (*Result, error) {
	empty, err := isEmpty(root)
	if err != nil {
		return nil, err
	}
	if empty && b.o.RefuseEmpty {
		return nil, ErrEmpty
	}
	tree, stats, err := b.walkAll(ctx, root)
	if err != nil {
		return nil, err
	}
	unreadable := b.tally.unreadables.get()
	if unreadable.Count > 0 && b.o.Unreadable == FailOnUnreadable {
		return nil, &UnreadableError{Paths: unreadable.First, Count: unreadable.Count, Err: b.tally.firstCause}
	}
	if err := commit.Verify(ctx, b.repo, tree, b.writer.Written(), &b.trees, b.sample); err != nil {
		return nil, fmt.Errorf("verify before the commit: %w", err)
	}
	result := &Result{
		Tree: tree, Files: counts(&b.tally.files), Dirs: counts(&b.tally.dirs), Bytes: counts(&b.tally.bytes),
		Added: uint64(stats.Bytes), AddedPacked: uint64(stats.PackedBytes), Sockets: int(b.tally.sockets.Load()),
		Changed: b.tally.changed.get(), Lossy: b.tally.lossy.get(), Unreadable: unreadable,
		Empty: empty, Partial: unreadable.Count > 0, Chunker: b.kind,
	}
	if b.parent != nil {
		result.Parent = b.parent.id
	}
	return result, b.commit(ctx, result, stats)
}

// walkAll stores everything but the snapshot and returns the root tree.
func (b *backup) walkAll(ctx context.Context, root int) (repo.ID, repo.WriterStats, error) {
	none := repo.WriterStats{}
	split := func() (chunker.Splitter, error) { return chunker.New(b.kind, b.repo.Polynomial(), b.o.FixedSize) }
	splitter, err := split()
	if err != nil {
		return repo.ID{}, none, err
	}
	large, writer := b.o.share(int64(2 * (splitter.Window() + slack)))
	b.writer = b.repo.NewWriter(ctx, &repo.WriterOptions{PackSize: b.o.PackSize, MemoryBudget: writer, Compression: b.o.Compression})
	defer b.writer.Abort()
	b.readers = newReaders(ctx, b, large, split)
	defer b.readers.stop()
	b.walkers = make(chan struct{}, max(0, runtime.GOMAXPROCS(0)-1))
	stopProgress := b.reportProgress(ctx, root)
	defer stopProgress()

	id, err := b.saveRoot(ctx, root)
	if err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return repo.ID{}, none, err
	}
	b.readers.stop()
	if err := b.writer.Flush(ctx); err != nil {
		return repo.ID{}, none, err
	}
	return id, b.writer.Stats(), nil
}

func openSource(path string) (int, error) {
	fd := -1
	err := fsmeta.Retry(func() (err error) {
		fd, err = unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return -1, &UnreadableError{Paths: []string{fmt.Sprintf("%q (%v)", path, err)}, Count: 1, Err: err}
	}
	return fd, nil
}

const lostAndFound = "lost+found"

// isEmpty reports whether there is nothing but lost+found, with which every new ext filesystem begins.
func isEmpty(root int) (bool, error) {
	names, err := fsmeta.Names(root)
	if err != nil {
		return false, &UnreadableError{Paths: []string{fmt.Sprintf("%q (%v)", ".", err)}, Count: 1, Err: err}
	}
	switch {
	case len(names) == 0:
		return true, nil
	case len(names) == 1 && names[0] == lostAndFound:
		return leaveOut(root), nil
	}
	return false, nil
}

// leaveOut reports whether the source's lost+found is a directory that has nothing in it, or that only root may look
// into. It then belongs to the filesystem, and every other one brings its own.
func leaveOut(root int) bool {
	fd, err := fsmeta.OpenQuiet(root, lostAndFound, unix.O_DIRECTORY)
	if err != nil {
		return errors.Is(err, unix.EACCES)
	}
	defer unix.Close(fd)
	names, err := fsmeta.Names(fd)
	return err == nil && len(names) == 0
}

func (b *backup) commit(ctx context.Context, result *Result, stats repo.WriterStats) error {
	id, other, err := commit.Snapshot(ctx, b.repo, b.o.RunName, b.snapshot(result, stats))
	if err != nil {
		return err
	}
	if other != nil {
		*result = *reused(id, other)
	}
	result.SnapshotID = id
	return nil
}

func (b *backup) snapshot(result *Result, stats repo.WriterStats) *repo.Snapshot {
	tags := append([]string(nil), b.o.Tags...)
	tags = append(tags, ChunkerTag(b.kind))
	if result.Empty {
		tags = append(tags, TagEmpty)
	}
	if result.Partial {
		tags = append(tags, TagPartial)
	}
	sn := &repo.Snapshot{
		Time: b.o.Time.UTC(), Tree: &result.Tree, Paths: []string{b.o.Path}, Hostname: b.o.Host,
		Excludes: b.o.Excludes, Tags: tags, ProgramVersion: b.o.ProgramVersion,
		Summary: &repo.SnapshotSummary{
			BackupStart: b.o.Time.UTC(), BackupEnd: time.Now().UTC(),
			FilesNew: result.Files.New, FilesChanged: result.Files.Changed, FilesUnmodified: result.Files.Unmodified,
			DirsNew: result.Dirs.New, DirsChanged: result.Dirs.Changed, DirsUnmodified: result.Dirs.Unmodified,
			DataBlobs: stats.DataBlobs, TreeBlobs: stats.TreeBlobs,
			DataAdded: result.Added, DataAddedPacked: result.AddedPacked,
			TotalFilesProcessed: result.Files.Total(), TotalBytesProcessed: result.Bytes.Total(),
		},
	}
	if !result.Parent.IsZero() {
		sn.Parent = &result.Parent
	}
	return sn
}

// reused tells of an earlier commit what its snapshot tells.
func reused(id repo.ID, sn *repo.Snapshot) *Result {
	result := &Result{SnapshotID: id, Tree: *sn.Tree, ReusedRun: true, Chunker: ChunkerOf(sn.Tags)}
	for _, t := range sn.Tags {
		result.Empty = result.Empty || t == TagEmpty
		result.Partial = result.Partial || t == TagPartial
	}
	if sn.Parent != nil {
		result.Parent = *sn.Parent
	}
	if s := sn.Summary; s != nil {
		result.Files = Counts{New: s.FilesNew, Changed: s.FilesChanged, Unmodified: s.FilesUnmodified}
		result.Dirs = Counts{New: s.DirsNew, Changed: s.DirsChanged, Unmodified: s.DirsUnmodified}
		result.Bytes = Counts{New: s.TotalBytesProcessed} // the format keeps no more than the sum
		result.Added, result.AddedPacked = s.DataAdded, s.DataAddedPacked
	}
	return result
}

// saveRoot stores the source and the tree that has nothing but it.
func (b *backup) saveRoot(ctx context.Context, root int) (repo.ID, error) {
	st, err := fsmeta.Fstat(root)
	if err != nil {
		return repo.ID{}, err
	}
	b.device = st.Dev
	w := &walk{backup: b, ctx: ctx}
	var previous *tree.Node
	if b.parent != nil {
		previous = b.parent.root
	}
	e := &entry{path: ".", name: b.o.Wrapper, st: st, previous: previous}
	node, err := w.dir(root, e)
	if err != nil || node == nil {
		return repo.ID{}, err
	}
	return w.saveTree([]*tree.Node{node})
}
