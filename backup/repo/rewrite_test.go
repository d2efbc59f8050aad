package repo_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/backup/repo/repotest"
)

// many makes a repository of n small backups, each with an index of its own.
func many(t testing.TB, s repo.Store, n int) *repo.Repository {
	t.Helper()
	r := initRepo(t, s)
	for i := range n {
		w := r.NewWriter(t.Context(), nil)
		save(t, w, repo.DataBlob, randomBytes(100+i))
		save(t, w, repo.TreeBlob, randomBytes(100+i))
		require.NoError(t, w.Flush(t.Context()))
		w.Abort()
	}
	return openRepo(t, s)
}

func TestRewriteIndexKeepsEverythingButWhatIsDropped(t *testing.T) {
	s := repotest.NewMemory()
	r := many(t, s, 20)
	want := maps.Collect(r.IndexPacks())
	packs := slices.Collect(maps.Keys(want))
	dropped := map[repo.ID]bool{packs[0]: true, packs[7]: true}
	maps.DeleteFunc(want, func(pack repo.ID, _ []repo.PackedBlob) bool { return dropped[pack] })

	rw, err := r.RewriteIndex(t.Context(), func(pack repo.ID) bool { return dropped[pack] })
	require.NoError(t, err)
	require.Len(t, rw.Old, 20)
	require.Len(t, rw.Written, 1)
	require.Len(t, s.Keys("index/"), 21, "nothing is deleted yet")
	require.NoError(t, rw.RemoveOld(t.Context()))
	require.Len(t, s.Keys("index/"), 1)
	if diff := cmp.Diff(want, maps.Collect(openRepo(t, s).IndexPacks())); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestARewriteThatFailsLeavesTheIndexComplete(t *testing.T) {
	for name, fail := range map[string]func(*repotest.Memory){
		"write fails":   func(s *repotest.Memory) { s.Before = failOn("put", "index/") },
		"write dropped": func(s *repotest.Memory) { s.Drop = func(key string) bool { return strings.HasPrefix(key, "index/") } },
		"delete fails":  func(s *repotest.Memory) { s.Before = failOn("delete", "index/") },
	} {
		t.Run(name, func(t *testing.T) {
			s := repotest.NewMemory()
			r := many(t, s, 5)
			want := maps.Collect(r.IndexPacks())
			old := s.Keys("index/")
			fail(s)
			rw, err := r.RewriteIndex(t.Context(), func(repo.ID) bool { return false })
			if err == nil {
				err = rw.RemoveOld(t.Context())
			}
			require.Error(t, err)
			s.Before, s.Drop = nil, nil
			require.Subset(t, s.Keys("index/"), old)
			if diff := cmp.Diff(want, maps.Collect(openRepo(t, s).IndexPacks())); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestRewriteLeavesIndexFilesOfOthersAlone(t *testing.T) {
	s := repotest.NewMemory()
	r := many(t, s, 2)
	other := openRepo(t, s)
	w := other.NewWriter(t.Context(), nil)
	defer w.Abort()
	h := save(t, w, repo.DataBlob, []byte("of a writer without a lock"))
	require.NoError(t, w.Flush(t.Context()))
	rw, err := r.RewriteIndex(t.Context(), func(repo.ID) bool { return false })
	require.NoError(t, err)
	require.NoError(t, rw.RemoveOld(t.Context()))
	require.True(t, openRepo(t, s).Has(h))
}

func TestListFilesPassesOverForeignNames(t *testing.T) {
	s := repotest.NewMemory()
	r := many(t, s, 1)
	name := strings.Repeat("a", 64)
	for _, key := range []string{"data/aa/x.tmp", "data/" + name, "data/bb/" + name, "index/.keep", "index/" + strings.ToUpper(name), "data/aa/" + name + ".tmp"} {
		s.Set(key, []byte("x"))
	}
	var packs, indexes int
	for f, err := range r.ListPacks(t.Context()) {
		require.NoError(t, err)
		require.EqualValues(t, len(s.Bytes(repo.PackFile.Key(f.ID))), f.Size)
		packs++
	}
	for _, err := range r.ListFiles(t.Context(), repo.IndexFile) {
		require.NoError(t, err)
		indexes++
	}
	require.Equal(t, 2, packs)
	require.Equal(t, 1, indexes)
	require.NoError(t, r.LoadIndex(t.Context()))
}

func TestAListingThatFailsIsAnError(t *testing.T) {
	s := repotest.NewMemory()
	r := many(t, s, 1)
	s.Before = failOn("list", "data/")
	for _, err := range r.ListPacks(t.Context()) {
		require.ErrorIs(t, err, errStore)
	}
}
