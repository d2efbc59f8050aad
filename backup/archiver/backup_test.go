package archiver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/pvcbackup/backup/internal/chunker"
	"example.com/pvcbackup/backup/internal/commit"
	"example.com/pvcbackup/backup/internal/edgetree"
	"example.com/pvcbackup/backup/internal/fsmeta"
	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/backup/repo/repotest"
	"example.com/pvcbackup/backup/repo/tree"
	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const password = "correct horse"

func initRepository(t testing.TB) (*repo.Repository, *repotest.Memory) {
	t.Helper()
	store := repotest.NewMemory()
	r, err := repo.Init(t.Context(), store, password, &repo.InitOptions{KeyOptions: repo.KeyOptions{Scrypt: repo.ScryptParams(repotest.Cheap)}})
	require.NoError(t, err)
	return r, store
}

var slot = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// options are for the n-th backup of a claim.
func options(n int) Options {
	return Options{Host: "cluster", Path: "/ns/claim", Time: slot.Add(time.Duration(n) * time.Hour)}
}

func run(t testing.TB, r *repo.Repository, source string, o Options) *Result {
	t.Helper()
	result, err := Backup(t.Context(), r, source, o)
	require.NoError(t, err)
	return result
}

func write(t testing.TB, text string, path ...string) {
	t.Helper()
	p := filepath.Join(path...)
	require.NoError(t, os.MkdirAll(filepath.Dir(p), 0o755))
	require.NoError(t, os.WriteFile(p, []byte(text), 0o644))
}

// paths lists everything in a snapshot.
func paths(t testing.TB, r *repo.Repository, root repo.ID) map[string]*tree.Node {
	t.Helper()
	all := map[string]*tree.Node{}
	var list func(dir string, id repo.ID)
	list = func(dir string, id repo.ID) {
		text, err := r.LoadBlob(t.Context(), repo.BlobHandle{Type: repo.TreeBlob, ID: id}, nil)
		require.NoError(t, err)
		for n, err := range tree.All(text) {
			require.NoError(t, err)
			all[dir+n.Name] = n
			if n.Type == tree.Dir {
				list(dir+n.Name+"/", n.Subtree)
			}
		}
	}
	list("", root)
	return all
}

func TestASecondBackupReadsAndStoresNothingOfWhatIsUnchanged(t *testing.T) {
	source := t.TempDir()
	edgetree.Make(t, source)
	r, store := initRepository(t)
	first := run(t, r, source, options(0))
	require.Zero(t, first.Files.Changed+first.Files.Unmodified)
	require.Equal(t, Gear, first.Chunker)
	store.Before = func(op, key string) error {
		if op == "put" && !strings.HasPrefix(key, "snapshots/") {
			return fmt.Errorf("%s was written", key)
		}
		return nil
	}
	second := run(t, r, source, options(1))
	want := &Result{
		SnapshotID: second.SnapshotID, Parent: first.SnapshotID, Tree: first.Tree, Sockets: 1, Chunker: Gear,
		Files: Counts{Unmodified: first.Files.New}, Dirs: Counts{Unmodified: first.Dirs.New}, Bytes: Counts{Unmodified: first.Bytes.New},
		Duration: second.Duration,
	}
	if diff := cmp.Diff(want, second); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestAChangeIsFoundAndTheRestReused(t *testing.T) {
	source := t.TempDir()
	write(t, "a", source, "a/file")
	write(t, "b", source, "b/file")
	write(t, "c", source, "b/sub/c")
	r, _ := initRepository(t)
	run(t, r, source, options(0))
	write(t, "B", source, "b/file")
	write(t, "new", source, "b/new")
	got := run(t, r, source, options(1))
	if diff := cmp.Diff(Counts{New: 1, Changed: 1, Unmodified: 2}, got.Files); diff != "" {
		t.Errorf("files: -want +got:\n%s", diff)
	}
	if diff := cmp.Diff(Counts{Changed: 2, Unmodified: 2}, got.Dirs); diff != "" {
		t.Errorf("directories: -want +got:\n%s", diff)
	}
	if diff := cmp.Diff(Counts{New: 3, Changed: 1, Unmodified: 2}, got.Bytes); diff != "" {
		t.Errorf("bytes: -want +got:\n%s", diff)
	}
}

func TestAFileWithTheOldSizeAndTimeIsReadAgainWhenItsInodeChanged(t *testing.T) {
	source := t.TempDir()
	write(t, "old", source, "f")
	st, err := os.Stat(filepath.Join(source, "f"))
	require.NoError(t, err)
	r, _ := initRepository(t)
	run(t, r, source, options(0))
	write(t, "new", source, "g")
	require.NoError(t, os.Chtimes(filepath.Join(source, "g"), st.ModTime(), st.ModTime()))
	require.NoError(t, os.Rename(filepath.Join(source, "g"), filepath.Join(source, "f")))
	require.Equal(t, uint64(1), run(t, r, source, options(1)).Files.Changed)
}

func TestAnUnchangedFileWhoseBlobIsLostIsReadAgain(t *testing.T) {
	source := t.TempDir()
	write(t, "precious", source, "f")
	r, store := initRepository(t)
	first := run(t, r, source, options(0))
	for _, f := range []string{"data/", "index/"} {
		for _, key := range store.Keys(f) {
			store.Remove(key)
		}
	}
	second := run(t, r, source, options(1))
	require.Equal(t, uint64(1), second.Files.Total())
	require.Positive(t, second.Added)
	require.Equal(t, first.SnapshotID, second.Parent)
	require.Contains(t, paths(t, r, second.Tree), "data/f")
}

func TestOnlyCompleteSnapshotsOfFoldersAreParents(t *testing.T) {
	for name, c := range map[string]struct {
		tags []string
		want bool
	}{
		"none":    {nil, true},
		"ours":    {[]string{"x", "chunker=gear"}, true},
		"empty":   {[]string{TagEmpty}, false},
		"partial": {[]string{"x", TagPartial}, false},
		"volume":  {[]string{"chunker=fixed", TagBlockPrefix + "size=1"}, false},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, ofFolder(c.tags)) })
	}
}

func TestTheParentCanBeForcedOrRefused(t *testing.T) {
	source := t.TempDir()
	write(t, "f", source, "f")
	r, _ := initRepository(t)
	first := run(t, r, source, options(0))
	run(t, r, source, options(1))
	o := options(2)
	o.Parent = first.SnapshotID
	require.Equal(t, first.SnapshotID, run(t, r, source, o).Parent)
	o = options(3)
	o.NoParent = true
	got := run(t, r, source, o)
	require.True(t, got.Parent.IsZero())
	require.Equal(t, uint64(1), got.Files.New)
	require.Zero(t, got.Added, "what is stored is stored, whether or not it is read again")
}

func TestAnEmptySourceNeverDisplacesAGoodSnapshot(t *testing.T) {
	full, empty := t.TempDir(), t.TempDir()
	write(t, "f", full, "f")
	require.NoError(t, os.Mkdir(filepath.Join(empty, "lost+found"), 0o700))
	r, _ := initRepository(t)
	first := run(t, r, full, options(0))
	got := run(t, r, empty, options(1))
	require.True(t, got.Empty)
	sn, err := r.LoadSnapshot(t.Context(), got.SnapshotID)
	require.NoError(t, err)
	require.Contains(t, sn.Tags, TagEmpty)
	require.False(t, Complete(sn.Tags))
	require.NotContains(t, paths(t, r, got.Tree), "data/lost+found")
	require.Equal(t, first.SnapshotID, run(t, r, full, options(2)).Parent)

	o := options(3)
	o.RefuseEmpty = true
	_, err = Backup(t.Context(), r, empty, o)
	require.ErrorIs(t, err, ErrEmpty)
}

func TestWhatIsFoundInLostAndFoundIsKept(t *testing.T) {
	source := t.TempDir()
	write(t, "#1234", source, "lost+found/#1234")
	r, _ := initRepository(t)
	got := run(t, r, source, options(0))
	require.False(t, got.Empty)
	require.Contains(t, paths(t, r, got.Tree), "data/lost+found/#1234")
}

func TestARunCommitsOnce(t *testing.T) {
	source := t.TempDir()
	write(t, "one", source, "f")
	r, store := initRepository(t)
	o := options(0)
	o.RunName = "uid-20260102T030405-backup"
	first := run(t, r, source, o)
	require.False(t, first.ReusedRun)
	write(t, "two!", source, "f")
	second := run(t, r, source, o)
	require.True(t, second.ReusedRun)
	require.Equal(t, first.SnapshotID, second.SnapshotID)
	require.Equal(t, first.Tree, second.Tree)
	require.Len(t, store.Keys("snapshots/"), 1)
}

func TestOfTwoAttemptsAtARunBothReportTheOneSnapshot(t *testing.T) {
	source := t.TempDir()
	write(t, "one", source, "f")
	r, store := initRepository(t)
	o := options(0)
	o.RunName = "race"
	results := make([]*Result, 2)
	errs := make([]error, 2)
	var both sync.WaitGroup
	for i := range results {
		both.Go(func() { results[i], errs[i] = Backup(t.Context(), r, source, o) })
	}
	both.Wait()
	require.NoError(t, errors.Join(errs...))
	require.Equal(t, results[0].SnapshotID, results[1].SnapshotID)
	require.Len(t, store.Keys("snapshots/"), 1)
}

func TestUnreadableFilesFailTheRunAndNothingIsCommitted(t *testing.T) {
	if !edgetree.AsNobody(t) {
		return
	}
	source := t.TempDir()
	write(t, "open", source, "open")
	write(t, "closed", source, "closed")
	write(t, "inside", source, "closed dir/f")
	require.NoError(t, os.Chmod(filepath.Join(source, "closed"), 0))
	require.NoError(t, os.Chmod(filepath.Join(source, "closed dir"), 0))
	t.Cleanup(func() { _ = os.Chmod(filepath.Join(source, "closed dir"), 0o700) })
	r, store := initRepository(t)

	_, err := Backup(t.Context(), r, source, options(0))
	var unreadable *UnreadableError
	require.ErrorAs(t, err, &unreadable)
	require.ErrorIs(t, err, unix.EACCES)
	require.Equal(t, 2, unreadable.Count)
	require.Equal(t, "MoverCannotRead", unreadable.Reason())
	require.Empty(t, store.Keys("snapshots/"))

	o := options(1)
	o.Unreadable = KeepPartial
	got := run(t, r, source, o)
	require.True(t, got.Partial)
	require.Equal(t, 2, got.Unreadable.Count)
	sn, err := r.LoadSnapshot(t.Context(), got.SnapshotID)
	require.NoError(t, err)
	require.Contains(t, sn.Tags, TagPartial)
	all := paths(t, r, got.Tree)
	require.Contains(t, all, "data/open")
	require.Contains(t, all, "data/closed dir")
	require.NotContains(t, all, "data/closed")
}

func TestAnUnreadableLostAndFoundFailsNothing(t *testing.T) {
	if !edgetree.AsNobody(t) {
		return
	}
	source := t.TempDir()
	write(t, "f", source, "f")
	require.NoError(t, os.Mkdir(filepath.Join(source, "lost+found"), 0))
	r, _ := initRepository(t)
	require.NotContains(t, paths(t, r, run(t, r, source, options(0)).Tree), "data/lost+found")
}

func TestASourceThatIsNotThereIsUnreadable(t *testing.T) {
	r, _ := initRepository(t)
	_, err := Backup(t.Context(), r, filepath.Join(t.TempDir(), "missing"), options(0))
	var unreadable *UnreadableError
	require.ErrorAs(t, err, &unreadable)
	require.ErrorIs(t, err, unix.ENOENT)
}

// newBackup is a run that is just before its walk.
func newBackup(t *testing.T, r *repo.Repository) *backup {
	t.Helper()
	o, err := options(0).withDefaults()
	require.NoError(t, err)
	ctx, cancel := context.WithCancelCause(t.Context())
	b := &backup{repo: r, o: o, kind: Gear, cancel: cancel, writer: r.NewWriter(ctx, nil), sample: commit.NewSample(0)}
	b.readers = newReaders(ctx, b, 1, func() (chunker.Splitter, error) { return chunker.New(Gear, r.Polynomial(), 0) })
	t.Cleanup(func() {
		b.readers.stop()
		b.writer.Abort()
	})
	return b
}

func TestAVanishedOrReplacedFileIsUnreadable(t *testing.T) {
	source := t.TempDir()
	write(t, "f", source, "f")
	require.NoError(t, unix.Mkfifo(filepath.Join(source, "fifo"), 0o600))
	dirfd, err := openSource(source)
	require.NoError(t, err)
	defer unix.Close(dirfd)
	st, err := fsmeta.Lstat(dirfd, "f")
	require.NoError(t, err)
	r, _ := initRepository(t)
	b := newBackup(t, r)
	for i, name := range []string{"gone", "fifo"} {
		p, err := b.readers.submit(dirfd, &entry{path: name, name: name, st: st})
		require.NoError(t, err)
		node, err := p.wait(t.Context())
		require.NoError(t, err)
		require.Nil(t, node)
		require.Equal(t, i+1, b.tally.unreadables.get().Count)
	}
}

func TestAFileThatChangesWhileItIsReadIsCountedAndItsSizeIsWhatWasRead(t *testing.T) {
	source := t.TempDir()
	path := filepath.Join(source, "growing")
	require.NoError(t, os.WriteFile(path, edgetree.Random(1, 64<<20), 0o600))
	r, store := initRepository(t)
	var once sync.Once
	store.Before = func(op, key string) error {
		if op == "put" && strings.HasPrefix(key, "data/") {
			once.Do(func() { // a part has been read and a part has not
				f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
				if err == nil {
					_, err = f.Write(edgetree.Random(2, 1<<20))
					err = errors.Join(err, f.Close())
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		return nil
	}
	o := options(0)
	o.PackSize = 4 << 20
	got := run(t, r, source, o)
	if diff := cmp.Diff(Paths{First: []string{"growing"}, Count: 1}, got.Changed); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	node := paths(t, r, got.Tree)["data/growing"]
	require.EqualValues(t, 65<<20, node.Size)
	sum := uint64(0)
	for _, c := range node.Content {
		n, ok := r.BlobSize(repo.BlobHandle{Type: repo.DataBlob, ID: c})
		require.True(t, ok)
		sum += uint64(n)
	}
	require.Equal(t, node.Size, sum)
	require.Equal(t, uint64(1), run(t, r, source, options(1)).Files.Total())
}

func TestHolesAreNotRead(t *testing.T) {
	source := t.TempDir()
	const size = 32 << 30
	f, err := os.Create(filepath.Join(source, "huge"))
	require.NoError(t, err)
	require.NoError(t, f.Truncate(size))
	_, err = f.WriteAt([]byte("in the middle"), size/2+100)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	r, _ := initRepository(t)
	got := run(t, r, source, options(0))
	require.EqualValues(t, size, got.Bytes.New)
	require.Less(t, got.Added, uint64(8<<20))
	require.InDelta(t, size/chunker.ZeroSize, len(paths(t, r, got.Tree)["data/huge"].Content), 3)
}

func TestExcludesMatchNamesAnywhereAndPathsWhole(t *testing.T) {
	source := t.TempDir()
	for _, p := range []string{"keep", "a.tmp", "d/b.tmp", "d/cache/x", "cache/x", "e/cache", "top"} {
		write(t, p, source, p)
	}
	r, _ := initRepository(t)
	o := options(0)
	o.Excludes = []string{"*.tmp", "d/cache", "/top"}
	got := paths(t, r, run(t, r, source, o).Tree)
	var names []string
	for p := range got {
		if got[p].Type == tree.File {
			names = append(names, p)
		}
	}
	require.ElementsMatch(t, []string{"data/keep", "data/cache/x", "data/e/cache"}, names)
}

func TestHardLinksAreTheSameAtEveryMount(t *testing.T) {
	source := t.TempDir()
	write(t, "f", source, "f")
	write(t, "g", source, "g")
	require.NoError(t, os.Link(filepath.Join(source, "f"), filepath.Join(source, "h")))
	r, _ := initRepository(t)
	got := paths(t, r, run(t, r, source, options(0)).Tree)
	require.EqualValues(t, sourceDevice, got["data/f"].DeviceID)
	require.Equal(t, got["data/f"].Inode, got["data/h"].Inode)
	require.Zero(t, got["data/g"].DeviceID)
	require.Zero(t, got["data"].DeviceID)
}

func TestProgressReachesTheTotals(t *testing.T) {
	source := t.TempDir()
	edgetree.Make(t, source)
	r, _ := initRepository(t)
	var last Progress
	o := options(0)
	o.CountTotals = true
	o.ProgressInterval = time.Millisecond
	o.Progress = func(p Progress) { last = p }
	got := run(t, r, source, o)
	want := Progress{
		Files: got.Files.New, Dirs: got.Dirs.New, Bytes: got.Bytes.New, TotalFiles: got.Files.New, TotalBytes: got.Bytes.New, Stored: last.Stored,
	}
	if diff := cmp.Diff(want, last); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestEmptyOptionsAndBadOnesAreRefused(t *testing.T) {
	r, _ := initRepository(t)
	for name, change := range map[string]func(*Options){
		"no host":         func(o *Options) { o.Host = "" },
		"relative path":   func(o *Options) { o.Path = "ns/claim" },
		"unclean path":    func(o *Options) { o.Path = "/ns/../claim" },
		"wrapper":         func(o *Options) { o.Wrapper = "a/b" },
		"comma":           func(o *Options) { o.Tags = []string{"a,b"} },
		"reserved tag":    func(o *Options) { o.Tags = []string{TagEmpty} },
		"chunker tag":     func(o *Options) { o.Tags = []string{"chunker=spoon"} },
		"volume tag":      func(o *Options) { o.Tags = []string{"block-handle=1"} },
		"exclude":         func(o *Options) { o.Excludes = []string{"["} },
		"two parents":     func(o *Options) { o.NoParent, o.Parent = true, repo.ID{1} },
		"unknown chunker": func(o *Options) { o.Chunker = "spoon" },
		"fixed size":      func(o *Options) { o.Chunker, o.FixedSize = Fixed, 1000 },
		"unknown parent":  func(o *Options) { o.Parent = repo.ID{1} },
	} {
		t.Run(name, func(t *testing.T) {
			o := options(0)
			change(&o)
			_, err := Backup(t.Context(), r, t.TempDir(), o)
			require.Error(t, err)
		})
	}
}

// TestNoLostWriteIsEverASuccess drops, and then fails, every single write of a run.
func TestNoLostWriteIsEverASuccess(t *testing.T) {
	source := t.TempDir()
	write(t, "a", source, "a")
	write(t, "b", source, "d/b")
	require.NoError(t, os.WriteFile(filepath.Join(source, "large"), edgetree.Random(3, 5<<20), 0o600))
	o := options(0)
	o.RunName, o.PackSize = "run", 4<<20
	r, store := initRepository(t)
	before := store.Count("put")
	run(t, r, source, o)
	writes := store.Count("put") - before
	require.Greater(t, writes, 4)
	lost := errors.New("the store failed")
	for n := range writes {
		for _, way := range []string{"drop", "fail"} {
			t.Run(fmt.Sprintf("%s %d", way, n), func(t *testing.T) {
				r, store := initRepository(t)
				var puts atomic.Int64
				switch way {
				case "drop":
					store.Drop = func(string) bool { return puts.Add(1)-1 == int64(n) }
				case "fail":
					store.Before = func(op, _ string) error {
						if op == "put" && puts.Add(1)-1 == int64(n) {
							return lost
						}
						return nil
					}
				}
				_, err := Backup(t.Context(), r, source, o)
				store.Drop, store.Before = nil, nil
				if puts.Load() <= int64(n) {
					// Blobs are spread over packs at random, and this run needed a pack less.
					require.GreaterOrEqual(t, n, 4)
					require.NoError(t, err)
					return
				}
				require.Error(t, err)

				again, err := repo.Open(t.Context(), store, password, nil)
				require.NoError(t, err)
				got, err := Backup(t.Context(), again, source, o)
				if way == "fail" {
					require.NoError(t, err, "the next attempt makes it good")
				}
				if err != nil { // the index lists a pack that the store confirmed and lost
					require.ErrorIs(t, err, repo.ErrDamaged)
					return
				}
				for _, n := range paths(t, again, got.Tree) {
					for _, c := range n.Content {
						_, err := again.LoadBlob(t.Context(), repo.BlobHandle{Type: repo.DataBlob, ID: c}, nil)
						require.NoError(t, err)
					}
				}
				require.Len(t, store.Keys("snapshots/"), 1)
			})
		}
	}
}

func TestACancelledRunEndsAndCommitsNothing(t *testing.T) {
	source := t.TempDir()
	edgetree.Make(t, source)
	r, store := initRepository(t)
	stop := errors.New("the lock was lost")
	ctx, cancel := context.WithCancelCause(t.Context())
	store.Before = func(op, _ string) error {
		if op == "put" {
			cancel(stop)
		}
		return nil
	}
	_, err := Backup(ctx, r, source, options(0))
	require.ErrorIs(t, err, stop)
	require.Empty(t, store.Keys("snapshots/"))
}

func TestADamagedParentTreeOnlyMeansReadingMore(t *testing.T) {
	source := t.TempDir()
	write(t, "f", source, "f")
	r, store := initRepository(t)
	run(t, r, source, options(0))
	var damaged atomic.Bool
	store.Change = func(key string, _ int64, data []byte) []byte {
		if strings.HasPrefix(key, "data/") && damaged.CompareAndSwap(false, true) {
			data[0] ^= 1
		}
		return data
	}
	got := run(t, r, source, options(1))
	require.True(t, damaged.Load())
	require.Equal(t, uint64(1), got.Files.Total())
}

func TestSnapshotsSayHowTheyWereMade(t *testing.T) {
	source := t.TempDir()
	write(t, "12345", source, "f")
	r, _ := initRepository(t)
	o := options(0)
	o.Tags, o.ProgramVersion, o.Excludes, o.Chunker, o.Wrapper = []string{"pvc-uid=1"}, "pvcbackup 1", []string{"*.tmp"}, Fixed, "pvc"
	got := run(t, r, source, o)
	sn, err := r.LoadSnapshot(t.Context(), got.SnapshotID)
	require.NoError(t, err)
	sn.Summary.BackupEnd = time.Time{}
	want := &repo.Snapshot{
		Time: slot, Tree: &got.Tree, Paths: []string{"/ns/claim"}, Hostname: "cluster", Excludes: []string{"*.tmp"},
		Tags: []string{"pvc-uid=1", "chunker=fixed"}, ProgramVersion: "pvcbackup 1",
		Summary: &repo.SnapshotSummary{
			BackupStart: slot, FilesNew: 1, DirsNew: 1, DataBlobs: 1, TreeBlobs: 2, DataAdded: got.Added, DataAddedPacked: got.AddedPacked,
			TotalFilesProcessed: 1, TotalBytesProcessed: 5,
		},
	}
	if diff := cmp.Diff(want, sn); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	require.Contains(t, paths(t, r, got.Tree), "pvc/f")
	o.Chunker, o.Time = "", slot.Add(time.Hour)
	require.Equal(t, Fixed, run(t, r, source, o).Chunker, "what the parent used is used again")
}

func TestAFileThatSaysThatItIsEmptyIsReadAllTheSame(t *testing.T) {
	r, _ := initRepository(t)
	b := newBackup(t, r)
	dirfd, err := openSource("/proc/self")
	require.NoError(t, err)
	defer unix.Close(dirfd)
	st, err := fsmeta.Lstat(dirfd, "limits")
	require.NoError(t, err)
	require.Zero(t, st.Size)
	p, err := b.readers.submit(dirfd, &entry{path: "limits", name: "limits", st: st})
	require.NoError(t, err)
	node, err := p.wait(t.Context())
	require.NoError(t, err)
	require.NotEmpty(t, node.Content)
	require.NotZero(t, node.Size)
}
