package browse_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"example.com/pvcbackup/backup/browse"
	"example.com/pvcbackup/backup/internal/edgetree"
	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/backup/repo/repotest"
	"example.com/pvcbackup/backup/repo/tree"
)

func stats(t testing.TB, r *repo.Repository, snapshots ...repo.SnapshotInfo) *browse.Usage {
	t.Helper()
	u, err := browse.Stats(t.Context(), r, snapshots)
	require.NoError(t, err)
	return u
}

func TestStatsAgreesWithRestic(t *testing.T) {
	source := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(source, "a/b"), 0o755))
	for i, name := range []string{"a/same", "a/b/same", "empty", "a/b/other"} {
		require.NoError(t, os.WriteFile(filepath.Join(source, name), edgetree.Random(int64(i/2), 30_000*(i&2)), 0o644))
	}
	require.NoError(t, os.Symlink("a", filepath.Join(source, "link")))
	require.NoError(t, os.Link(filepath.Join(source, "a/b/other"), filepath.Join(source, "other")))
	r, restic := shared(t)
	first := backup(t, r, source)
	require.NoError(t, os.WriteFile(filepath.Join(source, "new"), edgetree.Random(99, 3<<20), 0o644))
	require.NoError(t, os.Link(filepath.Join(source, "new"), filepath.Join(source, "new too")))
	second := backup(t, r, source)
	for _, c := range []struct {
		snapshots []repo.SnapshotInfo
		args      []string
	}{
		{[]repo.SnapshotInfo{first}, []string{first.ID.String()}},
		{[]repo.SnapshotInfo{second}, []string{second.ID.String()}},
		{[]repo.SnapshotInfo{first, second}, nil},
	} {
		type sums struct {
			Size      uint64 `json:"total_size"`
			Plain     uint64 `json:"total_uncompressed_size"`
			Blobs     uint64 `json:"total_blob_count"`
			Files     uint64 `json:"total_file_count"`
			Snapshots int    `json:"snapshots_count"`
		}
		ask := func(mode string) (s sums) {
			out := restic.Output(append([]string{"stats", "--json", "--mode", mode}, c.args...)...)
			require.NoError(t, json.Unmarshal([]byte(out), &s))
			return s
		}
		restore, raw := ask("restore-size"), ask("raw-data")
		u := stats(t, r, c.snapshots...)
		got := []any{u.RestoreBytes, u.Files + u.Dirs + u.Others, u.Snapshots, u.StoredBytes, u.DataBlobs + u.TreeBlobs}
		want := []any{restore.Size, restore.Files, restore.Snapshots, raw.Size, raw.Blobs}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("restore size, entries, snapshots, stored, blobs of %v: -restic +ours:\n%s", c.args, diff)
		}
	}
}

func TestStatsCountsAFileWithSeveralNamesOnceInEachSnapshot(t *testing.T) {
	r := initRepository(t, repotest.NewMemory())
	s := newSaver(t, r)
	linked := func(name string, inode uint64) *tree.Node {
		n := file(name, 5, s.blob(repo.DataBlob, "12345"))
		n.Links, n.Inode, n.DeviceID = 3, inode, 1
		return n
	}
	sub := s.tree(linked("c", 7), linked("d", 8))
	single := file("z", 3, s.blob(repo.DataBlob, "123"))
	root := s.tree(linked("a", 7), linked("b", 7), dir("x", sub), dir("y", sub), single)
	sn := repo.SnapshotInfo{Snapshot: repo.Snapshot{Tree: &root}}
	s.flush()
	want := browse.Usage{
		Snapshots: 2, Files: 14, Dirs: 4, RestoreBytes: 2 * (5 + 5 + 3), DataBlobs: 2, TreeBlobs: 2,
		BlobBytes: stats(t, r, sn).BlobBytes, StoredBytes: stats(t, r, sn).StoredBytes,
	}
	if diff := cmp.Diff(want, *stats(t, r, sn, sn)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestStatsOfASnapshotWithMoreEntriesThanNumbers(t *testing.T) {
	r := initRepository(t, repotest.NewMemory())
	s := newSaver(t, r)
	root := s.tree(file("f", 1, s.blob(repo.DataBlob, "1")))
	for i := range 100 {
		root = s.tree(dir(fmt.Sprint("a", i), root), dir(fmt.Sprint("b", i), root))
	}
	s.flush()
	u := stats(t, r, repo.SnapshotInfo{Snapshot: repo.Snapshot{Tree: &root}})
	require.EqualValues(t, uint64(1<<64-1), u.Files)
	require.EqualValues(t, 101, u.TreeBlobs)
}

func TestStatsRefusesASnapshotThatIsNotWhole(t *testing.T) {
	r := initRepository(t, repotest.NewMemory())
	s := newSaver(t, r)
	root := s.tree(file("f", 1, repo.ID{9}))
	s.flush()
	_, err := browse.Stats(t.Context(), r, []repo.SnapshotInfo{{Snapshot: repo.Snapshot{Tree: &root}}})
	require.ErrorIs(t, err, repo.ErrNotFound)
}
