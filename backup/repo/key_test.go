package repo_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/backup/repo/repotest"
	"example.com/pvcbackup/blobstore"
)

func TestChangeKeyPutsOnePasswordInThePlaceOfAnother(t *testing.T) {
	s := repotest.NewMemory()
	r, err := repo.Init(t.Context(), s, password, &repo.InitOptions{KeyOptions: cheap})
	require.NoError(t, err)
	backup(t, r, "run", []byte("content"))
	data := append(s.Keys("data/"), s.Keys("index/")...)
	added, err := r.ChangeKey(t.Context(), "new", cheap)
	require.NoError(t, err)
	if diff := cmp.Diff([]string{repo.KeyFile.Key(added)}, s.Keys("keys/")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	require.Equal(t, data, append(s.Keys("data/"), s.Keys("index/")...), "data was written anew")
	_, err = repo.Open(t.Context(), s, password, nil)
	require.ErrorIs(t, err, repo.ErrWrongPassword)
	again, err := repo.Open(t.Context(), s, "new", nil)
	require.NoError(t, err)
	require.Equal(t, added, again.KeyID())
	require.NoError(t, again.LoadIndex(t.Context()))
	require.ErrorIs(t, r.RemoveKey(t.Context(), added), repo.ErrKeyInUse, "the last one")
}

func TestTheKeyInUseAndTheLastOneAreNeverRemoved(t *testing.T) {
	s := repotest.NewMemory()
	first, err := repo.Init(t.Context(), s, password, &repo.InitOptions{KeyOptions: cheap})
	require.NoError(t, err)
	added, err := first.AddKey(t.Context(), "second", cheap)
	require.NoError(t, err)
	second, err := repo.Open(t.Context(), s, "second", nil)
	require.NoError(t, err)
	require.ErrorIs(t, second.RemoveKey(t.Context(), added), repo.ErrKeyInUse)
	require.NoError(t, second.RemoveKey(t.Context(), first.KeyID()))
	require.ErrorIs(t, first.RemoveKey(t.Context(), added), repo.ErrKeyInUse)
	require.Len(t, s.Keys("keys/"), 1)
}

func TestAKeyChangeThatIsInterruptedLeavesAPasswordThatWorks(t *testing.T) {
	crashed := fmt.Errorf("crash: %w", blobstore.ErrUnavailable)
	for n := int64(1); ; n++ {
		ended := true
		for _, done := range []bool{false, true} {
			s := repotest.NewMemory()
			r, err := repo.Init(t.Context(), s, password, &repo.InitOptions{KeyOptions: cheap})
			require.NoError(t, err)
			var count atomic.Int64
			hook := func(string, string) error {
				if count.Add(1) >= n {
					return crashed
				}
				return nil
			}
			if done {
				s.After = hook
			} else {
				s.Before = hook
			}
			if _, err = r.ChangeKey(t.Context(), "new", cheap); err == nil {
				continue
			}
			ended = false
			require.ErrorIs(t, err, crashed)
			s.Before, s.After = nil, nil
			_, old := repo.Open(t.Context(), s, password, nil)
			_, fresh := repo.Open(t.Context(), s, "new", nil)
			require.True(t, old == nil || fresh == nil, "no password works after operation %d: %v, %v", n, old, fresh)
		}
		if ended {
			require.Greater(t, n, int64(3))
			return
		}
	}
}
