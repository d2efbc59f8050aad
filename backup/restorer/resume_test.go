package restorer_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"example.com/pvcbackup/backup/internal/edgetree"
	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/backup/repo/tree"
	"example.com/pvcbackup/backup/restorer"
	"example.com/pvcbackup/backup/restorer/treecmp"
)

// missing returns how many bytes of a snapshot's files a target does not have where they belong.
func missing(t *testing.T, r *repo.Repository, sn *repo.Snapshot, target string) (bytes int64) {
	t.Helper()
	root, err := restorer.Base(t.Context(), r, sn, "/")
	require.NoError(t, err)
	text, err := r.LoadBlob(t.Context(), repo.BlobHandle{Type: repo.TreeBlob, ID: root.Subtree}, nil)
	require.NoError(t, err)
	for n, err := range tree.All(text) {
		require.NoError(t, err)
		have, err := os.ReadFile(filepath.Join(target, n.Name))
		if !errors.Is(err, fs.ErrNotExist) {
			require.NoError(t, err)
		}
		offset := 0
		for _, c := range n.Content {
			size, _ := r.BlobSize(repo.BlobHandle{Type: repo.DataBlob, ID: c})
			end := offset + int(size)
			if end > len(have) || sha256.Sum256(have[offset:end]) != c {
				bytes += int64(size)
			}
			offset = end
		}
	}
	return bytes
}

func TestARestoreThatWasKilledFetchesOnlyWhatIsMissing(t *testing.T) {
	source, target := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(source, "a"), edgetree.Random(1, 3<<20), 0o644))
	require.NoError(t, os.WriteFile(filepath.Join(source, "large"), edgetree.Random(2, 90<<20), 0o640))
	require.NoError(t, os.WriteFile(filepath.Join(source, "z"), edgetree.Random(3, 3<<20), 0o644))
	r, store := memoryRepository(t)
	done := backup(t, r, source)
	sn, err := r.LoadSnapshot(t.Context(), done.SnapshotID)
	require.NoError(t, err)

	var fetched atomic.Int64
	ctx, kill := context.WithCancel(t.Context())
	store.Change = func(key string, _ int64, data []byte) []byte {
		if strings.HasPrefix(key, "data/") && fetched.Add(int64(len(data))) > 60<<20 {
			kill()
		}
		return data
	}
	_, err = restorer.Restore(ctx, r, done.SnapshotID, target, restorer.Options{Concurrency: 1})
	require.ErrorIs(t, err, context.Canceled)
	store.Change = nil
	want := missing(t, r, sn, target)
	require.Greater(t, want, int64(20<<20))
	require.Less(t, want, int64(76<<20), "the first attempt has written nothing")

	fetched.Store(0)
	store.Change = func(key string, _ int64, data []byte) []byte {
		if strings.HasPrefix(key, "data/") {
			fetched.Add(int64(len(data)))
		}
		return data
	}
	result := restore(t, r, done.SnapshotID, target, restorer.Options{Overwrite: restorer.IfChanged})
	requireEqual(t, source, target, treecmp.Options{})
	require.EqualValues(t, want, result.Written)
	if got := fetched.Load(); got > want+want/50+(1<<20) {
		t.Errorf("%d bytes were fetched, and %d were missing", got, want)
	}
}

// chunked is a repository with one file, of data, zeros and data.
func chunked(t *testing.T) (r *repo.Repository, id repo.ID, source string) {
	source = t.TempDir()
	f, err := os.Create(filepath.Join(source, "f"))
	require.NoError(t, err)
	defer f.Close()
	_, err = f.Write(edgetree.Random(4, 3<<20))
	require.NoError(t, err)
	_, err = f.WriteAt(edgetree.Random(5, 3<<20), 8<<20)
	require.NoError(t, err)
	require.NoError(t, f.Truncate(12<<20))
	r, _ = memoryRepository(t)
	return r, backup(t, r, source).SnapshotID, source
}

func TestHolesOfAFileThatIsCompletedAreHoles(t *testing.T) {
	r, id, source := chunked(t)
	target := t.TempDir()
	junk := edgetree.Random(6, 12<<20)
	whole, err := os.ReadFile(filepath.Join(source, "f"))
	require.NoError(t, err)
	copy(junk[8<<20:], whole[8<<20:11<<20])
	require.NoError(t, os.WriteFile(filepath.Join(target, "f"), junk, 0o600))
	before, err := os.Stat(filepath.Join(target, "f"))
	require.NoError(t, err)
	result := restore(t, r, id, target, restorer.Options{Overwrite: restorer.IfChanged})
	after, err := os.Stat(filepath.Join(target, "f"))
	require.NoError(t, err)
	require.True(t, os.SameFile(before, after), "it was replaced, not completed")
	require.Less(t, result.Written, uint64(11<<20))
	requireEqual(t, source, target, treecmp.Options{Holes: true})
}

func TestOnlyWhatAnInterruptedRestoreLeftIsWrittenInPlace(t *testing.T) {
	r, id, source := chunked(t)
	whole, err := os.ReadFile(filepath.Join(source, "f"))
	require.NoError(t, err)
	half := append(append([]byte{}, whole[:6<<20]...), make([]byte, 6<<20)...)
	cases := map[string]func(t *testing.T, path string){
		"it has another name outside": func(t *testing.T, path string) {
			require.NoError(t, os.Link(path, filepath.Join(t.TempDir(), "outside")))
		},
		"others may have it open": func(t *testing.T, path string) { require.NoError(t, os.Chmod(path, 0o644)) },
	}
	if os.Getuid() == 0 {
		cases["it is somebody else's"] = func(t *testing.T, path string) { require.NoError(t, os.Chown(path, 1234, 0)) }
	}
	for name, prepare := range cases {
		t.Run(name, func(t *testing.T) {
			target := t.TempDir()
			path := filepath.Join(target, "f")
			require.NoError(t, os.WriteFile(path, half, 0o600))
			open, err := os.Open(path)
			require.NoError(t, err)
			defer open.Close()
			prepare(t, path)
			restore(t, r, id, target, restorer.Options{Overwrite: restorer.IfChanged})
			requireEqual(t, source, target, treecmp.Options{})
			var was, is unix.Stat_t
			require.NoError(t, unix.Fstat(int(open.Fd()), &was))
			require.NoError(t, unix.Stat(path, &is))
			require.NotEqual(t, was.Ino, is.Ino)
			got := make([]byte, len(half))
			_, err = open.ReadAt(got, 0)
			require.NoError(t, err)
			require.True(t, string(half) == string(got), "the file that was there was changed")
		})
	}
}
