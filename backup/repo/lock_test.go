package repo_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/backup/repo/repotest"
)

// jumpClock is the bubble's clock with a time of day that can jump, as it does when a machine slept.
type jumpClock struct{ jumped atomic.Int64 }

func (c *jumpClock) Now() time.Time { return time.Now().Add(time.Duration(c.jumped.Load())) }

func (c *jumpClock) After(d time.Duration) <-chan time.Time { return time.After(d) }

func (c *jumpClock) jump(d time.Duration) { c.jumped.Add(int64(d)) }

// hook is a hook of a store that is changed while the store is in use.
type hook struct {
	fn atomic.Pointer[func(op, key string) error]
}

func (h *hook) set(fn func(op, key string) error) { h.fn.Store(&fn) }

func (h *hook) call(op, key string) error {
	if fn := h.fn.Load(); fn != nil && *fn != nil {
		return (*fn)(op, key)
	}
	return nil
}

type lockTest struct {
	*testing.T
	store         *repotest.Memory
	before, after *hook
	clock         *jumpClock // of the repository
	storeClock    *jumpClock
	repo          *repo.Repository
}

// locking runs a test in a bubble whose time passes at once.
func locking(t *testing.T, test func(t *lockTest)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s, clock, storeClock := repotest.NewMemory(), &jumpClock{}, &jumpClock{}
		before, after := &hook{}, &hook{}
		s.Now, s.Before, s.After = storeClock.Now, before.call, after.call
		r, err := repo.Init(t.Context(), s, password, &repo.InitOptions{KeyOptions: cheap, OpenOptions: repo.OpenOptions{Clock: clock}})
		require.NoError(t, err)
		test(&lockTest{t, s, before, after, clock, storeClock, r})
	})
}

func (t *lockTest) lock(o repo.LockOptions) *repo.Lock {
	t.Helper()
	l, err := t.repo.Lock(t.Context(), o)
	require.NoError(t, err)
	return l
}

func (t *lockTest) unlock(l *repo.Lock) {
	t.Helper()
	require.NoError(t, l.Unlock(t.Context()))
}

// plant writes a lock as another process would, and lets it be: its holder is dead, or does not refresh in time.
func (t *lockTest) plant(o repo.LockOptions) string {
	t.Helper()
	before := t.store.Keys("locks/")
	l := t.lock(o)
	for _, key := range t.store.Keys("locks/") {
		if !contains(before, key) {
			data := t.store.Bytes(key)
			t.unlock(l)
			t.store.Set(key, data)
			return key
		}
	}
	t.Fatal("no lock was written")
	return ""
}

func contains(list []string, item string) bool {
	for _, have := range list {
		if have == item {
			return true
		}
	}
	return false
}

func TestSharedLocksGoTogetherAndExclusiveOnesDoNot(t *testing.T) {
	for name, c := range map[string]struct{ held, wanted, ok bool }{
		"shared, shared":       {false, false, true},
		"shared, exclusive":    {false, true, false},
		"exclusive, shared":    {true, false, false},
		"exclusive, exclusive": {true, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			locking(t, func(t *lockTest) {
				held := t.lock(repo.LockOptions{Host: "pod-1", Exclusive: c.held})
				time.Sleep(2 * time.Minute)
				l, err := t.repo.Lock(t.Context(), repo.LockOptions{Host: "pod-2", Exclusive: c.wanted})
				require.Equal(t, c.ok, err == nil)
				if c.ok {
					t.unlock(l)
				} else {
					require.ErrorIs(t, err, repo.ErrLocked)
					var locked *repo.LockedError
					require.ErrorAs(t, err, &locked)
					require.Equal(t, "pod-1", locked.Host)
					require.Equal(t, c.held, locked.Exclusive)
					require.NotZero(t, locked.PID)
					require.InDelta(t, 2*time.Minute, locked.Age, float64(time.Second))
					require.ErrorContains(t, err, `host "pod-1"`)
					require.ErrorContains(t, err, "wait until it is done")
				}
				t.unlock(held)
				require.Empty(t, t.store.Keys("locks/"))
			})
		})
	}
}

func TestLockIsThereForAWhileBeforeItCounts(t *testing.T) {
	locking(t, func(t *lockTest) {
		start := time.Now()
		l := t.lock(repo.LockOptions{Host: "pod-1"})
		require.Equal(t, 200*time.Millisecond, time.Since(start))
		t.unlock(l)
	})
}

func TestOfRacingExclusiveLocksAtMostOneIsTaken(t *testing.T) {
	locking(t, func(t *lockTest) {
		var held, most atomic.Int64
		var wg sync.WaitGroup
		for _, host := range []string{"a", "b", "c"} {
			wg.Go(func() {
				l, err := t.repo.Lock(t.Context(), repo.LockOptions{Host: host, Exclusive: true, Wait: time.Hour})
				if err != nil {
					t.Error(err)
					return
				}
				if n := held.Add(1); n > most.Load() {
					most.Store(n)
				}
				time.Sleep(time.Minute)
				held.Add(-1)
				if err := l.Unlock(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		require.EqualValues(t, 1, most.Load())
	})
}

func TestLockWaitsForTheHolderUntilWaitIsOver(t *testing.T) {
	locking(t, func(t *lockTest) {
		held := t.lock(repo.LockOptions{Host: "pod-1", Exclusive: true})
		start := time.Now()
		_, err := t.repo.Lock(t.Context(), repo.LockOptions{Host: "pod-2", Wait: 10 * time.Minute})
		require.ErrorIs(t, err, repo.ErrLocked)
		require.InDelta(t, 10*time.Minute, time.Since(start), float64(time.Second))
		time.AfterFunc(3*time.Minute, func() { _ = held.Unlock(context.Background()) })
		l := t.lock(repo.LockOptions{Host: "pod-2", Wait: 10 * time.Minute})
		t.unlock(l)
	})
}

func TestLockIsRefreshedByANewFileAndThereIsAlwaysOne(t *testing.T) {
	locking(t, func(t *lockTest) {
		l := t.lock(repo.LockOptions{Host: "pod-1"})
		seen := map[string]bool{}
		t.after.set(func(op, key string) error {
			if strings.HasPrefix(key, "locks/") && len(t.store.Keys("locks/")) == 0 {
				t.Errorf("after %s %s there is no lock", op, key)
			}
			return nil
		})
		start := t.clock.Now()
		for range 12 {
			time.Sleep(5*time.Minute + time.Second)
			locks, err := t.repo.Locks(t.Context())
			require.NoError(t, err)
			require.Len(t, locks, 1)
			seen[locks[0].ID.String()] = true
			require.Less(t, t.clock.Now().Sub(locks[0].Time), 6*time.Minute, "the refreshed lock has a new time")
		}
		require.Greater(t, t.clock.Now().Sub(start), time.Hour)
		require.GreaterOrEqual(t, len(seen), 10)
		require.NoError(t, l.Context().Err())
		t.after.set(nil)
		t.unlock(l)
		require.Empty(t, t.store.Keys("locks/"))
	})
}

func TestALockThatCannotBeRefreshedIsLostIn30Minutes(t *testing.T) {
	locking(t, func(t *lockTest) {
		l := t.lock(repo.LockOptions{Host: "pod-1"})
		t.before.set(failOn("put", "locks/"))
		start := time.Now()
		<-l.Context().Done()
		require.ErrorIs(t, context.Cause(l.Context()), repo.ErrLockLost)
		require.InDelta(t, 23*time.Minute, time.Since(start), float64(time.Minute))
		t.unlock(l)
	})
}

func TestAStoreThatFailsForAWhileLosesNoLock(t *testing.T) {
	locking(t, func(t *lockTest) {
		l := t.lock(repo.LockOptions{Host: "pod-1"})
		t.before.set(failOn("put", "locks/"))
		time.Sleep(20 * time.Minute)
		t.before.set(nil)
		time.Sleep(time.Hour)
		require.NoError(t, l.Context().Err())
		t.unlock(l)
	})
}

func TestAfterASleepTheLockIsKeptOnlyIfItIsStillThere(t *testing.T) {
	for name, removed := range map[string]bool{"still there": false, "removed": true} {
		t.Run(name, func(t *testing.T) {
			locking(t, func(t *lockTest) {
				l := t.lock(repo.LockOptions{Host: "pod-1"})
				old := t.store.Keys("locks/")[0]
				t.clock.jump(40 * time.Minute)
				t.storeClock.jump(40 * time.Minute)
				if removed {
					t.store.Remove(old)
				}
				time.Sleep(2 * time.Minute)
				synctest.Wait()
				if removed {
					require.ErrorIs(t, context.Cause(l.Context()), repo.ErrLockLost)
				} else {
					require.NoError(t, l.Context().Err())
					require.NotContains(t, t.store.Keys("locks/"), old)
					require.Len(t, t.store.Keys("locks/"), 1)
				}
				t.unlock(l)
				require.Empty(t, t.store.Keys("locks/"))
			})
		})
	}
}

func TestALockThatSomebodyRemovedAndReplacedIsLost(t *testing.T) {
	locking(t, func(t *lockTest) {
		l := t.lock(repo.LockOptions{Host: "pod-1"})
		t.store.Remove(t.store.Keys("locks/")[0]) // restic unlock --remove-all
		t.plant(repo.LockOptions{Host: "pod-2", Exclusive: true})
		time.Sleep(7 * time.Minute)
		require.ErrorIs(t, context.Cause(l.Context()), repo.ErrLockLost)
		t.unlock(l)
	})
}

func TestLocksOfDeadHostsAreRemoved(t *testing.T) {
	locking(t, func(t *lockTest) {
		dead := t.plant(repo.LockOptions{Host: "dead"})
		alive := t.plant(repo.LockOptions{Host: "alive"})
		o := repo.LockOptions{Host: "pod-1", Exclusive: true, DeadHosts: func(host string) bool { return host == "dead" }}
		_, err := t.repo.Lock(t.Context(), o)
		require.ErrorIs(t, err, repo.ErrLocked)
		require.Equal(t, []string{alive}, t.store.Keys("locks/"))
		require.NotEqual(t, dead, alive)
		t.store.Remove(alive)
		t.plant(repo.LockOptions{Host: "dead"})
		t.unlock(t.lock(o))
	})
}

func TestAnOldLockIsRemovedOnlyAfterTwoLooksFiveMinutesApart(t *testing.T) {
	locking(t, func(t *lockTest) {
		key := t.plant(repo.LockOptions{Host: "gone", Exclusive: true})
		time.Sleep(31 * time.Minute)
		_, err := t.repo.Lock(t.Context(), repo.LockOptions{Host: "pod-1", Wait: 4 * time.Minute})
		require.ErrorIs(t, err, repo.ErrLocked, "watched for too short a time")
		require.ErrorContains(t, err, "restic unlock")
		require.Equal(t, []string{key}, t.store.Keys("locks/"))
		start := time.Now()
		l := t.lock(repo.LockOptions{Host: "pod-1", Wait: 10 * time.Minute})
		require.GreaterOrEqual(t, time.Since(start), 5*time.Minute)
		require.NotContains(t, t.store.Keys("locks/"), key)
		t.unlock(l)
	})
}

func TestAYoungOrRefreshedLockIsNeverRemoved(t *testing.T) {
	locking(t, func(t *lockTest) {
		held := t.lock(repo.LockOptions{Host: "slow clock", Exclusive: true})
		// Its holder's clock is behind by 35 minutes, but it refreshes.
		other := &jumpClock{}
		other.jump(35 * time.Minute)
		t.storeClock.jump(35 * time.Minute)
		r, err := repo.Open(t.Context(), t.store, password, &repo.OpenOptions{Clock: other})
		require.NoError(t, err)
		_, err = r.Lock(t.Context(), repo.LockOptions{Host: "pod-1", Wait: time.Hour})
		require.ErrorIs(t, err, repo.ErrLocked)
		require.NoError(t, held.Context().Err())
		t.unlock(held)
	})
}

func TestAReadOnlyStoreIsReadWithoutALockIfAllowed(t *testing.T) {
	locking(t, func(t *lockTest) {
		t.before.set(denied("put", "delete"))
		_, err := t.repo.Lock(t.Context(), repo.LockOptions{Host: "pod-1"})
		require.Error(t, err)
		l := t.lock(repo.LockOptions{Host: "pod-1", ReadOnlyOK: true})
		require.True(t, l.Missing())
		require.NoError(t, l.Context().Err())
		t.unlock(l)
		require.Error(t, l.Context().Err())
		t.before.set(nil)
		l = t.lock(repo.LockOptions{Host: "pod-1", ReadOnlyOK: true})
		require.False(t, l.Missing())
		t.unlock(l)
	})
}

func TestUnlockOutlivesCancellationByAtMostAMinute(t *testing.T) {
	locking(t, func(t *lockTest) {
		ctx, cancel := context.WithCancel(t.Context())
		l, err := t.repo.Lock(ctx, repo.LockOptions{Host: "pod-1"})
		require.NoError(t, err)
		cancel()
		<-l.Context().Done()
		require.NoError(t, l.Unlock(ctx))
		require.NoError(t, l.Unlock(ctx), "again")
		require.Empty(t, t.store.Keys("locks/"))

		slow := &hanging{Memory: t.store}
		r, err := repo.Open(t.Context(), slow, password, &repo.OpenOptions{Clock: t.clock})
		require.NoError(t, err)
		l, err = r.Lock(t.Context(), repo.LockOptions{Host: "pod-1"})
		require.NoError(t, err)
		start := time.Now()
		require.ErrorIs(t, l.Unlock(t.Context()), context.DeadlineExceeded)
		require.Equal(t, time.Minute, time.Since(start))
	})
}

// hanging never answers a delete.
type hanging struct{ *repotest.Memory }

func (hanging) Delete(ctx context.Context, _ string) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestALockThatCannotBeReadCountsAsHeld(t *testing.T) {
	locking(t, func(t *lockTest) {
		key := t.plant(repo.LockOptions{Host: "pod-2"})
		t.store.Set(key, []byte("damaged"))
		start := time.Now()
		_, err := t.repo.Lock(t.Context(), repo.LockOptions{Host: "pod-1"})
		require.ErrorIs(t, err, repo.ErrDamaged)
		require.ErrorContains(t, err, key)
		require.Equal(t, 35*time.Second, time.Since(start))
		t.store.Set(key, nil)
		t.unlock(t.lock(repo.LockOptions{Host: "pod-1", Exclusive: true})) // an empty one is a store's leftover
	})
}

func TestALockThatCouldNotBeCheckedIsTakenBack(t *testing.T) {
	locking(t, func(t *lockTest) {
		lists := 0
		t.before.set(func(op, key string) error {
			if op == "list" && key == "locks/" {
				if lists++; lists == 2 {
					return errStore
				}
			}
			return nil
		})
		_, err := t.repo.Lock(t.Context(), repo.LockOptions{Host: "pod-1"})
		require.ErrorIs(t, err, errStore)
		require.Empty(t, t.store.Keys("locks/"))
	})
}

func TestClocksThatDifferTooMuchAreRefused(t *testing.T) {
	locking(t, func(t *lockTest) {
		t.storeClock.jump(6 * time.Minute)
		_, err := t.repo.Lock(t.Context(), repo.LockOptions{Host: "pod-1"})
		require.ErrorIs(t, err, repo.ErrClockSkew)
		require.Empty(t, t.store.Keys("locks/"))
	})
}

func TestALockNeedsAHost(t *testing.T) {
	r := initRepo(t, repotest.NewMemory())
	_, err := r.Lock(t.Context(), repo.LockOptions{})
	require.Error(t, err)
}

func TestLockFileHasResticsFields(t *testing.T) {
	locking(t, func(t *lockTest) {
		l := t.lock(repo.LockOptions{Host: "pod-1", Username: "mover", Exclusive: true})
		locks, err := t.repo.Locks(t.Context())
		require.NoError(t, err)
		text, err := t.repo.LoadUnpacked(t.Context(), repo.LockFile, locks[0].ID)
		require.NoError(t, err)
		var fields map[string]any
		require.NoError(t, json.Unmarshal(text, &fields))
		require.Equal(t, "pod-1", fields["hostname"])
		require.Equal(t, "mover", fields["username"])
		require.Equal(t, true, fields["exclusive"])
		require.Contains(t, fields, "time")
		require.Contains(t, fields, "pid")
		t.unlock(l)
		require.True(t, errors.Is(l.Context().Err(), context.Canceled))
	})
}
