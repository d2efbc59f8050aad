package restorer_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"example.com/pvcbackup/backup/archiver"
	"example.com/pvcbackup/backup/internal/edgetree"
	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/backup/repo/repotest"
	"example.com/pvcbackup/backup/repo/tree"
	"example.com/pvcbackup/backup/restorer"
	"example.com/pvcbackup/backup/restorer/treecmp"
	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// small is a source that takes no time.
func small(t testing.TB) string {
	t.Helper()
	source := t.TempDir()
	write(t, filepath.Join(source, "a"), "alpha")
	write(t, filepath.Join(source, "d/b"), "beta")
	write(t, filepath.Join(source, "d/e/c"), "gamma")
	require.NoError(t, os.Symlink("a", filepath.Join(source, "link")))
	return source
}

func TestATargetThatIsNotEmptyIsRefusedAndLostAndFoundDoesNotCount(t *testing.T) {
	r, _ := memoryRepository(t)
	source := small(t)
	id := backup(t, r, source).SnapshotID
	target := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(target, "lost+found"), 0o700))
	restore(t, r, id, target, restorer.Options{})
	requireEqual(t, source, target, treecmp.Options{})

	_, err := restorer.Restore(t.Context(), r, id, target, restorer.Options{})
	require.ErrorIs(t, err, restorer.ErrNotEmpty)
	var notEmpty *restorer.NotEmptyError
	require.ErrorAs(t, err, &notEmpty)
	require.Equal(t, "TargetNotEmpty", notEmpty.Reason())
}

func TestAMissingTargetIsMade(t *testing.T) {
	r, _ := memoryRepository(t)
	source := small(t)
	target := filepath.Join(t.TempDir(), "new")
	restore(t, r, backup(t, r, source).SnapshotID, target, restorer.Options{})
	requireEqual(t, source, target, treecmp.Options{})
}

func TestPoliciesForWhatExists(t *testing.T) {
	r, _ := memoryRepository(t)
	source := small(t)
	id := backup(t, r, source).SnapshotID
	for name, want := range map[string]struct {
		policy          restorer.Overwrite
		a, b            string
		kept, skipped   uint64
		equalAfterwards bool
	}{
		"if changed": {restorer.IfChanged, "alpha", "beta", 1, 0, true},
		"always":     {restorer.Always, "alpha", "beta", 0, 0, true},
		"never":      {restorer.Never, "ALPHA", "beta", 0, 3, false},
	} {
		t.Run(name, func(t *testing.T) {
			target := t.TempDir()
			write(t, filepath.Join(target, "a"), "ALPHA") // the same size, and other content
			write(t, filepath.Join(target, "d/b"), "beta")
			require.NoError(t, os.Chmod(filepath.Join(target, "d/b"), 0o600))
			require.NoError(t, os.Symlink("elsewhere", filepath.Join(target, "link")))
			got := restore(t, r, id, target, restorer.Options{Overwrite: want.policy})
			require.Equal(t, want.a, read(t, filepath.Join(target, "a")))
			require.Equal(t, want.b, read(t, filepath.Join(target, "d/b")))
			require.Equal(t, want.kept, got.Kept)
			require.Equal(t, want.skipped, got.Skipped)
			if want.equalAfterwards {
				requireEqual(t, source, target, treecmp.Options{})
			}
		})
	}
}

// requestsOf counts what a restore asks of the store.
func requestsOf(t *testing.T, store *repotest.Memory, r *repo.Repository, id repo.ID) int64 {
	t.Helper()
	var n atomic.Int64
	store.Before = func(string, string) error {
		n.Add(1)
		return nil
	}
	restore(t, r, id, t.TempDir(), restorer.Options{})
	store.Before = nil
	return n.Load()
}

func TestAnInterruptedRestoreGoesOnAndKeepsWhatIsFinished(t *testing.T) {
	r, store := memoryRepository(t)
	source := t.TempDir()
	edgetree.Make(t, source)
	id := backup(t, r, source, func(o *archiver.Options) { o.PackSize = 4 << 20 }).SnapshotID
	target := t.TempDir()
	lost := errors.New("connection lost")
	needed := requestsOf(t, store, r, id)
	var reads atomic.Int64
	store.Before = func(op, key string) error {
		if reads.Add(1) > needed*3/4 {
			return lost
		}
		return nil
	}
	_, err := restorer.Restore(t.Context(), r, id, target, restorer.Options{})
	require.ErrorIs(t, err, lost)
	store.Before = nil
	got := restore(t, r, id, target, restorer.Options{Overwrite: restorer.IfChanged})
	require.Positive(t, got.Kept)
	requireEqual(t, source, target, treecmp.Options{Holes: true})

	got = restore(t, r, id, target, restorer.Options{Overwrite: restorer.IfChanged})
	require.Equal(t, got.Files, got.Kept)
	require.Zero(t, got.Written)
	requireEqual(t, source, target, treecmp.Options{Holes: true})
}

func TestExtraFilesAreDeletedOnlyWhenAsked(t *testing.T) {
	r, _ := memoryRepository(t)
	source := small(t)
	id := backup(t, r, source).SnapshotID
	target := t.TempDir()
	outside := t.TempDir()
	write(t, filepath.Join(outside, "precious"), "x")
	write(t, filepath.Join(target, "extra/deep/f"), "x")
	write(t, filepath.Join(target, "d/extra"), "x")
	write(t, filepath.Join(target, "lost+found/kept"), "x")
	require.NoError(t, os.Symlink(outside, filepath.Join(target, "extra/out")))

	got := restore(t, r, id, target, restorer.Options{Overwrite: restorer.IfChanged})
	require.Zero(t, got.Deleted)
	require.FileExists(t, filepath.Join(target, "extra/deep/f"))
	got = restore(t, r, id, target, restorer.Options{Overwrite: restorer.IfChanged, Delete: true, DryRun: true})
	require.EqualValues(t, 2, got.Deleted)
	require.FileExists(t, filepath.Join(target, "extra/deep/f"))
	got = restore(t, r, id, target, restorer.Options{Overwrite: restorer.IfChanged, Delete: true})
	require.EqualValues(t, 2, got.Deleted)
	require.NoDirExists(t, filepath.Join(target, "extra"))
	require.FileExists(t, filepath.Join(outside, "precious"))
	require.FileExists(t, filepath.Join(target, "lost+found/kept"))
	require.NoError(t, os.RemoveAll(filepath.Join(target, "lost+found")))
	require.NoError(t, os.Chtimes(target, time.Time{}, modTime(t, source)))
	requireEqual(t, source, target, treecmp.Options{})
}

func modTime(t *testing.T, path string) time.Time {
	t.Helper()
	info, err := os.Stat(path)
	require.NoError(t, err)
	return info.ModTime()
}

func TestWrongTypesInTheTarget(t *testing.T) {
	r, _ := memoryRepository(t)
	source := small(t)
	id := backup(t, r, source).SnapshotID
	t.Run("a file where a directory is to be is replaced", func(t *testing.T) {
		target := t.TempDir()
		write(t, filepath.Join(target, "d"), "a file")
		restore(t, r, id, target, restorer.Options{Overwrite: restorer.Always})
		requireEqual(t, source, target, treecmp.Options{})
	})
	t.Run("an empty directory where a file is to be is replaced", func(t *testing.T) {
		target := t.TempDir()
		require.NoError(t, os.Mkdir(filepath.Join(target, "a"), 0o700))
		restore(t, r, id, target, restorer.Options{Overwrite: restorer.Always})
		requireEqual(t, source, target, treecmp.Options{})
	})
	t.Run("a full one is refused", func(t *testing.T) {
		target := t.TempDir()
		write(t, filepath.Join(target, "a/f"), "x")
		_, err := restorer.Restore(t.Context(), r, id, target, restorer.Options{Overwrite: restorer.Always})
		require.ErrorIs(t, err, restorer.ErrConflict)
		require.FileExists(t, filepath.Join(target, "a/f"))
	})
	t.Run("a full one is replaced when extra files are to be deleted", func(t *testing.T) {
		target := t.TempDir()
		write(t, filepath.Join(target, "a/f"), "x")
		restore(t, r, id, target, restorer.Options{Overwrite: restorer.Always, Delete: true})
		requireEqual(t, source, target, treecmp.Options{})
	})
	t.Run("a file is no target", func(t *testing.T) {
		target := filepath.Join(t.TempDir(), "f")
		write(t, target, "x")
		_, err := restorer.Restore(t.Context(), r, id, target, restorer.Options{})
		require.ErrorIs(t, err, unix.ENOTDIR)
	})
}

func TestNothingOutsideTheTargetIsTouchedThroughItsSymlinks(t *testing.T) {
	r, _ := memoryRepository(t)
	source := small(t)
	id := backup(t, r, source).SnapshotID
	outside := t.TempDir()
	write(t, filepath.Join(outside, "b"), "untouched")
	write(t, filepath.Join(outside, "a"), "untouched")
	for name, policy := range map[string]restorer.Overwrite{"always": restorer.Always, "if changed": restorer.IfChanged, "never": restorer.Never} {
		t.Run(name, func(t *testing.T) {
			target := t.TempDir()
			require.NoError(t, os.Symlink(outside, filepath.Join(target, "d")))
			require.NoError(t, os.Symlink(filepath.Join(outside, "a"), filepath.Join(target, "a")))
			restore(t, r, id, target, restorer.Options{Overwrite: policy})
			require.Equal(t, "untouched", read(t, filepath.Join(outside, "a")))
			require.Equal(t, "untouched", read(t, filepath.Join(outside, "b")))
			entries, err := os.ReadDir(outside)
			require.NoError(t, err)
			require.Len(t, entries, 2)
			if policy != restorer.Never {
				requireEqual(t, source, target, treecmp.Options{})
			}
		})
	}
}

func TestOverwritingOneNameOfAFileLeavesItsOtherNamesAlone(t *testing.T) {
	r, _ := memoryRepository(t)
	id := backup(t, r, small(t)).SnapshotID
	target, elsewhere := t.TempDir(), filepath.Join(t.TempDir(), "other name")
	write(t, elsewhere, "alpha")
	require.NoError(t, os.Chmod(elsewhere, 0o600))
	require.NoError(t, os.Link(elsewhere, filepath.Join(target, "a")))
	restore(t, r, id, target, restorer.Options{Overwrite: restorer.IfChanged})
	info, err := os.Stat(elsewhere)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o600), info.Mode())
}

// commit stores a snapshot of exactly these tree bytes below the wrapper.
func commit(t *testing.T, r *repo.Repository, encoded string) repo.ID {
	t.Helper()
	w := r.NewWriter(t.Context(), nil)
	defer w.Abort()
	inner, _, err := w.SaveBlob(t.Context(), repo.TreeBlob, []byte(encoded))
	require.NoError(t, err)
	_, _, err = w.SaveBlob(t.Context(), repo.DataBlob, []byte("hostile"))
	require.NoError(t, err)
	var b tree.Builder
	require.NoError(t, b.Add(&tree.Node{Name: "data", Type: tree.Dir, Mode: fs.ModeDir | 0o755, Subtree: inner}))
	root, _, err := w.SaveBlob(t.Context(), repo.TreeBlob, b.Bytes())
	require.NoError(t, err)
	require.NoError(t, w.Flush(t.Context()))
	id, err := r.SaveSnapshot(t.Context(), &repo.Snapshot{Time: time.Now(), Tree: &root, Paths: []string{"/x"}, Tags: []string{"chunker=gear"}})
	require.NoError(t, err)
	return id
}

func TestHostileTreesAreRefusedAndWriteNothingOutside(t *testing.T) {
	r, _ := memoryRepository(t)
	const times = `"mtime":"2024-01-01T00:00:00Z","atime":"2024-01-01T00:00:00Z","ctime":"2024-01-01T00:00:00Z"`
	hash := "d9b2fc1e2bd4b4a8b6ce7b2e1ba8a2b4e8d1d9b5a1a6e4b0a2d3f6a7b8c9d0e1"
	node := func(name, more string) string {
		return `{"nodes":[{"name":"` + name + `","mode":420,` + times + `,"uid":0,"gid":0,` + more + `}]}`
	}
	for name, encoded := range map[string]string{
		"climbing":        node("../evil", `"type":"file","content":[]`),
		"parent":          node("..", `"type":"file","content":[]`),
		"absolute":        node("/tmp/evil", `"type":"file","content":[]`),
		"escaped slash":   node(`..\\x2fevil`, `"type":"file","content":[]`),
		"missing content": node("f", `"type":"file","size":7,"content":["`+hash+`"]`),
		"missing tree":    node("d", `"type":"dir","subtree":"`+hash+`"`),
		"link and dir": `{"nodes":[{"name":"x","type":"symlink","mode":134218239,` + times + `,"uid":0,"gid":0,"linktarget":"/tmp","content":null},` +
			`{"name":"x","type":"file",` + times + `,"uid":0,"gid":0,"content":[]}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			around := t.TempDir()
			target := filepath.Join(around, "target")
			_, err := restorer.Restore(t.Context(), r, commit(t, r, encoded), target, restorer.Options{})
			require.Error(t, err)
			entries, err := os.ReadDir(around)
			require.NoError(t, err)
			require.Len(t, entries, 1)
		})
	}
}

func TestAFileWhoseChunksDoNotAddUpIsRefused(t *testing.T) {
	r, _ := memoryRepository(t)
	w := r.NewWriter(t.Context(), nil)
	c, _, err := w.SaveBlob(t.Context(), repo.DataBlob, []byte("seven b"))
	require.NoError(t, err)
	require.NoError(t, w.Flush(t.Context()))
	w.Abort()
	var b tree.Builder
	require.NoError(t, b.Add(&tree.Node{Name: "f", Type: tree.File, Size: 8, Content: []repo.ID{c}}))
	_, err = restorer.Restore(t.Context(), r, commit(t, r, string(b.Bytes())), t.TempDir(), restorer.Options{})
	require.ErrorIs(t, err, tree.ErrMalformed)
}

func TestForgedInodeNumbersDoNotMergeDifferentFiles(t *testing.T) {
	r, _ := memoryRepository(t)
	w := r.NewWriter(t.Context(), nil)
	var b tree.Builder
	for _, name := range []string{"a", "b"} {
		c, _, err := w.SaveBlob(t.Context(), repo.DataBlob, []byte(name))
		require.NoError(t, err)
		require.NoError(t, b.Add(&tree.Node{Name: name, Type: tree.File, Mode: 0o644, UID: uint32(os.Getuid()), GID: uint32(os.Getgid()), Inode: 5, Links: 2, Size: 1, Content: []repo.ID{c}}))
	}
	require.NoError(t, w.Flush(t.Context()))
	w.Abort()
	target := t.TempDir()
	restore(t, r, commit(t, r, string(b.Bytes())), target, restorer.Options{})
	require.Equal(t, "a", read(t, filepath.Join(target, "a")))
	require.Equal(t, "b", read(t, filepath.Join(target, "b")))
}

func TestAPathRestoresADirectorysContentOrOneFile(t *testing.T) {
	r, _ := memoryRepository(t)
	source := small(t)
	id := backup(t, r, source).SnapshotID
	for path, want := range map[string][]string{"d": {"b", "e"}, "/d/e/": {"c"}, "d/e/c": {"c"}, "link": {"link"}} {
		t.Run(path, func(t *testing.T) {
			target := t.TempDir()
			restore(t, r, id, target, restorer.Options{Path: path})
			entries, err := os.ReadDir(target)
			require.NoError(t, err)
			var got []string
			for _, e := range entries {
				got = append(got, e.Name())
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	for _, path := range []string{"missing", "d/missing", "a/b"} {
		_, err := restorer.Restore(t.Context(), r, id, t.TempDir(), restorer.Options{Path: path})
		require.ErrorIs(t, err, restorer.ErrNoPath, path)
	}
	_, err := restorer.Restore(t.Context(), r, id, t.TempDir(), restorer.Options{Path: "../x"})
	require.Error(t, err)
}

func TestADryRunCountsAndChangesNothing(t *testing.T) {
	r, _ := memoryRepository(t)
	source := small(t)
	id := backup(t, r, source).SnapshotID
	target := filepath.Join(t.TempDir(), "never made")
	got := restore(t, r, id, target, restorer.Options{DryRun: true})
	require.NoDirExists(t, target)
	want := &restorer.Result{Files: 3, Dirs: 2, Symlinks: 1, Bytes: 14, DryRun: true, Duration: got.Duration}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestRestoringAsNobodyReportsWhatIsNotPermittedAndNeverMakesSetuidFiles(t *testing.T) {
	if !edgetree.AsNobody(t) {
		return
	}
	r, _ := memoryRepository(t)
	w := r.NewWriter(t.Context(), nil)
	_, _, err := w.SaveBlob(t.Context(), repo.DataBlob, []byte("x"))
	require.NoError(t, err)
	require.NoError(t, w.Flush(t.Context()))
	w.Abort()
	var b tree.Builder
	for _, n := range []*tree.Node{
		{Name: "device", Type: tree.CharDevice, Mode: fs.ModeDevice | fs.ModeCharDevice | 0o666, Device: 259},
		{Name: "root's setuid", Type: tree.File, Mode: fs.ModeSetuid | 0o755, Content: []repo.ID{}},
		{Name: "trusted", Type: tree.File, Mode: 0o644, UID: uint32(os.Getuid()), GID: uint32(os.Getgid()), Content: []repo.ID{}, Xattrs: []tree.Xattr{{Name: "trusted.x", Value: []byte("y")}}},
	} {
		require.NoError(t, b.Add(n))
	}
	target := t.TempDir()
	got := restore(t, r, commit(t, r, string(b.Bytes())), target, restorer.Options{})
	require.False(t, got.OwnersRestored)
	require.Equal(t, 2, got.Owners.Count, "the file and the target: %v", got.Owners) // the device does not exist
	require.Equal(t, 1, got.NotCreated.Count)
	require.Equal(t, 1, got.Xattrs.Count)
	require.Equal(t, 1, got.Modes.Count)
	require.EqualValues(t, 2, got.Files)
	info, err := os.Stat(filepath.Join(target, "root's setuid"))
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o755), info.Mode())
}

func TestAnEdgeTreeSurvivesARoundTripAsNobody(t *testing.T) {
	if !edgetree.AsNobody(t) {
		return
	}
	source, target := t.TempDir(), t.TempDir()
	edgetree.Make(t, source)
	r, _ := memoryRepository(t)
	got := restore(t, r, backup(t, r, source).SnapshotID, target, restorer.Options{})
	t.Cleanup(func() { unlock(target) })
	require.True(t, got.OwnersRestored)
	requireEqual(t, source, target, treecmp.Options{Owners: true, Holes: true})
	got = restore(t, r, backup(t, r, source).SnapshotID, target, restorer.Options{Overwrite: restorer.IfChanged})
	require.Equal(t, got.Files, got.Kept)
	requireEqual(t, source, target, treecmp.Options{Owners: true, Holes: true})
}

// unlock lets the test's clean-up into read-only directories.
func unlock(dir string) {
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
}

// TestAFullTargetIsATypedError runs on a small filesystem as root, and under a limit of file sizes otherwise.
func TestAFullTargetIsATypedError(t *testing.T) {
	source := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(source, "large"), edgetree.Random(1, 8<<20), 0o600))
	r, _ := memoryRepository(t)
	id := backup(t, r, source).SnapshotID
	target := t.TempDir()
	if os.Getuid() == 0 {
		require.NoError(t, unix.Mount("tmpfs", target, "tmpfs", 0, "size=4m"))
		t.Cleanup(func() { require.NoError(t, unix.Unmount(target, 0)) })
	} else {
		signal.Ignore(syscall.SIGXFSZ)
		var old unix.Rlimit
		require.NoError(t, unix.Getrlimit(unix.RLIMIT_FSIZE, &old))
		require.NoError(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 4 << 20, Max: old.Max}))
		t.Cleanup(func() { require.NoError(t, unix.Setrlimit(unix.RLIMIT_FSIZE, &old)) })
	}
	_, err := restorer.Restore(t.Context(), r, id, target, restorer.Options{})
	require.ErrorIs(t, err, restorer.ErrNoSpace)
	var space *restorer.SpaceError
	require.ErrorAs(t, err, &space)
	require.Equal(t, "large", space.Path)
	require.Equal(t, "TargetFull", space.Reason())
}

func TestAFileSizeLimitIsATypedErrorForNobody(t *testing.T) {
	if os.Getuid() != 0 {
		return // the test above is this one
	}
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^TestAFullTargetIsATypedError$", "-test.v")
	cmd.Dir = "/"
	tmp, err := os.MkdirTemp("", "limit")
	require.NoError(t, err)
	defer func() { _ = os.RemoveAll(tmp) }()
	require.NoError(t, os.Chown(tmp, 65534, 65534))
	cmd.Env = append(os.Environ(), "TMPDIR="+tmp)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "--- PASS: TestAFullTargetIsATypedError")
}

func TestDamagedDataIsNeverASuccess(t *testing.T) {
	r, store := memoryRepository(t)
	source := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(source, "f"), edgetree.Random(1, 5<<20), 0o600))
	id := backup(t, r, source).SnapshotID
	store.Change = func(key string, _ int64, data []byte) []byte {
		if strings.HasPrefix(key, "data/") && len(data) > 64<<10 {
			data[len(data)/2] ^= 1
		}
		return data
	}
	_, err := restorer.Restore(t.Context(), r, id, t.TempDir(), restorer.Options{})
	require.ErrorIs(t, err, repo.ErrDamaged)
}

func TestOnlySetHolesAreLeftWhereNoHolesIsAsked(t *testing.T) {
	r, _ := memoryRepository(t)
	source := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(source, "zeros"), make([]byte, 4<<20), 0o600))
	id := backup(t, r, source).SnapshotID
	for name, o := range map[string]restorer.Options{"holes": {}, "no holes": {NoHoles: true}} {
		target := t.TempDir()
		restore(t, r, id, target, o)
		requireEqual(t, source, target, treecmp.Options{Holes: true})
		var st unix.Stat_t
		require.NoError(t, unix.Stat(filepath.Join(target, "zeros"), &st))
		if dense := st.Blocks*512 >= 4<<20; dense != o.NoHoles {
			t.Errorf("%s: %d blocks", name, st.Blocks)
		}
	}
}

func TestACancelledRestoreReturnsItsCause(t *testing.T) {
	r, store := memoryRepository(t)
	source := t.TempDir()
	edgetree.Make(t, source)
	id := backup(t, r, source).SnapshotID
	stop := errors.New("the lock was lost")
	ctx, cancel := context.WithCancelCause(t.Context())
	needed := requestsOf(t, store, r, id)
	var reads atomic.Int64
	store.Before = func(op, key string) error {
		if reads.Add(1) > needed/2 {
			cancel(stop)
		}
		return nil
	}
	_, err := restorer.Restore(ctx, r, id, t.TempDir(), restorer.Options{})
	require.ErrorIs(t, err, stop)
}

func TestProgressReachesTheTotals(t *testing.T) {
	r, _ := memoryRepository(t)
	source := small(t)
	done := backup(t, r, source)
	var last restorer.Progress
	restore(t, r, done.SnapshotID, t.TempDir(), restorer.Options{Progress: func(p restorer.Progress) { last = p }})
	if diff := cmp.Diff(restorer.Progress{Files: 3, Bytes: 14, TotalFiles: 3, TotalBytes: 14}, last); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestARestoreWritesNothingToTheStore(t *testing.T) {
	r, store := memoryRepository(t)
	id := backup(t, r, small(t)).SnapshotID
	store.Before = func(op, key string) error {
		if op == "put" || op == "delete" {
			return errors.New(op + " " + key)
		}
		return nil
	}
	restore(t, r, id, t.TempDir(), restorer.Options{})
}

func TestBadOptionsAreRefused(t *testing.T) {
	r, _ := memoryRepository(t)
	id := backup(t, r, small(t)).SnapshotID
	for name, o := range map[string]restorer.Options{
		"policy": {Overwrite: 99}, "delete and never": {Delete: true, Overwrite: restorer.Never}, "delete and path": {Delete: true, Path: "d", Overwrite: restorer.Always},
	} {
		_, err := restorer.Restore(t.Context(), r, id, t.TempDir(), o)
		require.Error(t, err, name)
	}
	_, err := restorer.Restore(t.Context(), r, repo.ID{1}, t.TempDir(), restorer.Options{})
	require.ErrorIs(t, err, repo.ErrNotFound)
}
