package repo_test

import (
	"crypto/rand"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/backup/repo/id"
	"example.com/pvcbackup/backup/repo/repotest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	password  = "correct horse"
	emptyTree = "{\"nodes\":[]}\n"
)

var cheap = repo.KeyOptions{Scrypt: repotest.Cheap}

func initRepo(t testing.TB, s repo.Store) *repo.Repository {
	t.Helper()
	r, err := repo.Init(t.Context(), s, password, &repo.InitOptions{KeyOptions: cheap})
	require.NoError(t, err)
	return r
}

func openRepo(t testing.TB, s repo.Store) *repo.Repository {
	t.Helper()
	r, err := repo.Open(t.Context(), s, password, nil)
	require.NoError(t, err)
	require.NoError(t, r.LoadIndex(t.Context()))
	return r
}

// randomBytes do not compress.
func randomBytes(n int) []byte {
	data := make([]byte, n)
	_, _ = rand.Read(data)
	return data
}

func save(t testing.TB, w *repo.Writer, kind repo.BlobType, data []byte) repo.BlobHandle {
	t.Helper()
	name, _, err := w.SaveBlob(t.Context(), kind, data)
	require.NoError(t, err)
	return repo.BlobHandle{Type: kind, ID: name}
}

func snapshotOf(tree id.ID) *repo.Snapshot {
	return &repo.Snapshot{Time: time.Now(), Tree: &tree, Paths: []string{"/data"}, Hostname: "cluster", Tags: []string{"a=b"}}
}

// fill stores an empty tree and returns its snapshot, not saved.
func fill(t testing.TB, r *repo.Repository) *repo.Snapshot {
	t.Helper()
	w := r.NewWriter(t.Context(), nil)
	defer w.Abort()
	tree := save(t, w, repo.TreeBlob, []byte(emptyTree))
	require.NoError(t, w.Flush(t.Context()))
	return snapshotOf(tree.ID)
}

func TestWhatIsSavedIsLoadedAfterOpeningAgain(t *testing.T) {
	s := repotest.NewMemory()
	r := initRepo(t, s)
	w := r.NewWriter(t.Context(), &repo.WriterOptions{PackSize: 4 << 20})
	defer w.Abort()
	contents := map[repo.BlobHandle][]byte{}
	for _, data := range [][]byte{nil, []byte("x"), make([]byte, 3<<20), randomBytes(1 << 20), randomBytes(5 << 20)} {
		contents[save(t, w, repo.DataBlob, data)] = data
		contents[save(t, w, repo.TreeBlob, data)] = data
	}
	require.NoError(t, w.Flush(t.Context()))
	require.NoError(t, r.VerifyWritten(t.Context(), w.Written(), 100))

	r = openRepo(t, s)
	var handles []repo.BlobHandle
	for h, want := range contents {
		handles = append(handles, h)
		require.True(t, r.Has(h))
		size, ok := r.BlobSize(h)
		require.True(t, ok)
		require.EqualValues(t, len(want), size)
		got, err := r.LoadBlob(t.Context(), h, nil)
		require.NoError(t, err)
		require.Equal(t, string(want), string(got))
	}
	seen := 0
	err := r.LoadBlobs(t.Context(), append(handles, handles...), func(h repo.BlobHandle, got []byte) error {
		seen++
		require.Equal(t, string(contents[h]), string(got))
		return nil
	})
	require.NoError(t, err)
	require.Equal(t, len(contents), seen)
}
