package browse_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"example.com/pvcbackup/backup/archiver"
	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/backup/repo/repotest"
	"example.com/pvcbackup/backup/repo/tree"
	"example.com/pvcbackup/backup/restorer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const password = "correct horse"

func initRepository(t testing.TB, s repo.Store) *repo.Repository {
	t.Helper()
	r, err := repo.Init(t.Context(), s, password, &repo.InitOptions{
		KeyOptions: repo.KeyOptions{Scrypt: repo.ScryptParams(repotest.Cheap)},
	})
	require.NoError(t, err)
	return r
}

// shared is a repository that both programs see.
func shared(t testing.TB) (*repo.Repository, *repotest.Restic) {
	t.Helper()
	dir := t.TempDir()
	store, err := repotest.NewDir(dir)
	require.NoError(t, err)
	return initRepository(t, store), repotest.NewRestic(t, dir, password)
}

func backup(t testing.TB, r *repo.Repository, source string) repo.SnapshotInfo {
	t.Helper()
	done, err := archiver.Backup(t.Context(), r, source, archiver.Options{Host: "cluster", Path: "/ns/claim"})
	require.NoError(t, err)
	sn, err := r.LoadSnapshot(t.Context(), done.SnapshotID)
	require.NoError(t, err)
	require.NoError(t, r.LoadIndex(t.Context()))
	return repo.SnapshotInfo{ID: done.SnapshotID, Snapshot: *sn}
}

func base(t testing.TB, r *repo.Repository, sn repo.SnapshotInfo, below string) *tree.Node {
	t.Helper()
	node, err := restorer.Base(t.Context(), r, &sn.Snapshot, below)
	require.NoError(t, err)
	return node
}

func write(t testing.TB, path, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
}

// saver stores blobs and trees that are made by hand.
type saver struct {
	t testing.TB
	w *repo.Writer
}

func newSaver(t testing.TB, r *repo.Repository) saver {
	w := r.NewWriter(t.Context(), nil)
	t.Cleanup(w.Abort)
	return saver{t, w}
}

func (s saver) blob(kind repo.BlobType, text string) repo.ID {
	s.t.Helper()
	id, _, err := s.w.SaveBlob(s.t.Context(), kind, []byte(text))
	require.NoError(s.t, err)
	return id
}

func (s saver) tree(nodes ...*tree.Node) repo.ID {
	s.t.Helper()
	var b tree.Builder
	for _, n := range nodes {
		require.NoError(s.t, b.Add(n))
	}
	return s.blob(repo.TreeBlob, string(b.Bytes()))
}

func (s saver) flush() {
	s.t.Helper()
	require.NoError(s.t, s.w.Flush(s.t.Context()))
}

func file(name string, size int, content ...repo.ID) *tree.Node {
	return &tree.Node{Name: name, Type: tree.File, Size: uint64(size), Content: append([]repo.ID{}, content...)}
}

func dir(name string, subtree repo.ID) *tree.Node {
	return &tree.Node{Name: name, Type: tree.Dir, Subtree: subtree}
}
