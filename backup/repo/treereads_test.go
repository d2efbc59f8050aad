package repo_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/backup/repo/repotest"
)

// storedTrees returns trees that do not compress, in the order in which they are stored, each of 10 KiB.
func storedTrees(t *testing.T, s *repotest.Memory, n int) (*repo.Repository, []repo.BlobHandle) {
	t.Helper()
	r := initRepo(t, s)
	w := r.NewWriter(t.Context(), nil)
	defer w.Abort()
	trees := make([]repo.BlobHandle, n)
	for i := range trees {
		trees[i] = save(t, w, repo.TreeBlob, randomBytes(10<<10))
	}
	require.NoError(t, w.Flush(t.Context()))
	again, err := repo.Open(t.Context(), s, password, nil)
	require.NoError(t, err)
	require.NoError(t, again.LoadIndex(t.Context()))
	return again, trees
}

func TestTreesThatAreReadInOrderTakeFewRequests(t *testing.T) {
	s := repotest.NewMemory()
	r, trees := storedTrees(t, s, 500) // 5 MB
	before := s.Count("get")
	var readers sync.WaitGroup
	for from := range 2 { // as two walkers do
		readers.Go(func() {
			for _, h := range trees[from*250:][:250] {
				if _, err := r.LoadBlob(t.Context(), h, nil); err != nil {
					t.Error(err)
				}
			}
		})
	}
	readers.Wait()
	require.LessOrEqual(t, s.Count("get")-before, 12)
}

func TestATreeIsReadOnItsOwnWhenTheStretchIsBad(t *testing.T) {
	s := repotest.NewMemory()
	r, trees := storedTrees(t, s, 20)
	reads := 0
	s.Change = func(key string, _ int64, data []byte) []byte {
		if reads++; strings.HasPrefix(key, "data/") && reads == 1 {
			for i := 0; i < len(data); i += 100 {
				data[i] ^= 1 // on the way, once
			}
		}
		return data
	}
	for _, h := range trees {
		_, err := r.LoadBlob(t.Context(), h, nil)
		require.NoError(t, err)
	}
	s.Change = nil

	pack := s.Keys("data/")[0]
	s.Set(pack, s.Bytes(pack)[:15<<10]) // what is left is one tree and a half
	r, err := repo.Open(t.Context(), s, password, nil)
	require.NoError(t, err)
	require.NoError(t, r.LoadIndex(t.Context()))
	_, err = r.LoadBlob(t.Context(), trees[0], nil)
	require.NoError(t, err)
	_, err = r.LoadBlob(t.Context(), trees[1], nil)
	require.Error(t, err)
}
