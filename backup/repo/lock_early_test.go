package repo_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/pvcbackup/backup/repo"
)

func TestAnEarlyLockLetsWorkBeginAndWritesAndDeletesOnlyOnceItIsConfirmed(t *testing.T) {
	locking(t, func(t *lockTest) {
		start := time.Now()
		l := t.lock(repo.LockOptions{Host: "pod-1", Early: true})
		require.Zero(t, time.Since(start))
		require.Len(t, t.store.Keys("locks/"), 1)
		require.NoError(t, t.repo.LoadIndex(l.Context()))
		require.Zero(t, time.Since(start), "reading does not wait")

		w := t.repo.NewWriter(l.Context(), nil)
		defer w.Abort()
		_, _, err := w.SaveBlob(l.Context(), repo.DataBlob, []byte("a blob"))
		require.NoError(t, err)
		require.NoError(t, w.Flush(l.Context()))
		require.Equal(t, 200*time.Millisecond, time.Since(start))
		require.NoError(t, l.Confirmed(t.Context()))
		t.unlock(l)

		start = time.Now()
		l = t.lock(repo.LockOptions{Host: "pod-1", Early: true})
		require.NoError(t, t.repo.RemoveFile(l.Context(), repo.PackFile, repo.ID{1}))
		require.Equal(t, 200*time.Millisecond, time.Since(start))
		t.unlock(l)
		require.Empty(t, t.store.Keys("locks/"))
	})
}

func TestAnEarlyLockThatMeetsAnotherOneWritesNothingAndCanBeTakenAgain(t *testing.T) {
	locking(t, func(t *lockTest) {
		other := t.plant(repo.LockOptions{Host: "pod-2", Exclusive: true})
		data := t.store.Bytes(other)
		t.store.Remove(other)
		l := t.lock(repo.LockOptions{Host: "pod-1", Early: true})
		t.store.Set(other, data) // by somebody who looked before this lock was there
		w := t.repo.NewWriter(l.Context(), nil)
		defer w.Abort()
		_, _, err := w.SaveBlob(l.Context(), repo.DataBlob, []byte("a blob"))
		require.NoError(t, err)
		require.ErrorIs(t, w.Flush(t.Context()), repo.ErrLocked)
		require.ErrorIs(t, l.Confirmed(t.Context()), repo.ErrLocked)
		require.ErrorIs(t, context.Cause(l.Context()), repo.ErrLocked)
		require.Empty(t, t.store.Keys("data/"))
		t.unlock(l)
		require.Equal(t, []string{other}, t.store.Keys("locks/"))

		t.store.Remove(other)
		l = t.lock(repo.LockOptions{Host: "pod-1"})
		_, err = t.repo.AddKey(l.Context(), "another password", cheap)
		require.NoError(t, err)
		t.unlock(l)
	})
}

func TestAnEarlyLockIsConfirmedFirstWhenSomebodyMayHaveComeInBetween(t *testing.T) {
	locking(t, func(t *lockTest) {
		t.before.set(func(op, key string) error {
			if op == "put" && strings.HasPrefix(key, "locks/") {
				time.Sleep(200 * time.Millisecond) // the store is slow
			}
			return nil
		})
		start := time.Now()
		l := t.lock(repo.LockOptions{Host: "pod-1", Early: true})
		require.Equal(t, 400*time.Millisecond, time.Since(start))
		t.unlock(l)
	})
}

func TestAnEarlyLockThatIsGivenUpBeforeItIsConfirmedLeavesNothing(t *testing.T) {
	locking(t, func(t *lockTest) {
		l := t.lock(repo.LockOptions{Host: "pod-1", Early: true})
		t.unlock(l)
		require.Empty(t, t.store.Keys("locks/"))
		require.Error(t, l.Confirmed(t.Context()))
		require.Error(t, l.Context().Err())
	})
}
