package maintain

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"example.com/pvcbackup/backup/archiver"
	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/blobstore"
	"example.com/pvcbackup/schedule/keep"
)

// tidy prunes everything that is unused.
var tidy = PruneOptions{MaxUnused: -1, Grace: -1}

func prune(t testing.TB, r *repo.Repository, o PruneOptions) *PrunePlan {
	t.Helper()
	plan, err := PlanPrune(t.Context(), r, o)
	require.NoError(t, err)
	_, err = plan.Execute(t.Context())
	require.NoError(t, err)
	return plan
}

// kept is the reference for keep rules of a last and a daily count, written as plainly as possible.
func (m *model) kept(path string, last, daily int) map[repo.ID]bool {
	var series []repo.ID
	for name, s := range m.snapshots {
		if s.Paths[0] == path && archiver.Complete(s.Tags) {
			series = append(series, name)
		}
	}
	keep := map[repo.ID]bool{}
	for _, name := range series {
		newer, days, firstOfDay := 0, map[string]bool{}, true
		day := m.snapshots[name].Time.Format(time.DateOnly)
		for _, other := range series {
			if m.snapshots[other].Time.After(m.snapshots[name].Time) {
				newer++
				days[m.snapshots[other].Time.Format(time.DateOnly)] = true
				firstOfDay = firstOfDay && m.snapshots[other].Time.Format(time.DateOnly) != day
			}
		}
		keep[name] = newer == 0 || newer < last || firstOfDay && len(days) < daily
	}
	return keep
}

func TestForgetAndPruneAgreeWithABruteForceModel(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			rnd := rand.New(rand.NewPCG(seed, 1))
			s, m := newShop(), newModel()
			r := initRepository(t, s)
			for range 3 {
				m.fill(t, r, rnd, 8)
				last, daily := rnd.IntN(3), 1+rnd.IntN(3)
				keep := m.kept("/ns/a", last, daily)
				report, err := Forget(t.Context(), r, ForgetOptions{Rules: rulesOf(last, daily), Match: func(s *repo.Snapshot) bool { return s.Paths[0] == "/ns/a" }})
				require.NoError(t, err)
				for _, v := range report.Verdicts {
					var name repo.ID
					require.NoError(t, name.UnmarshalText([]byte(v.Item.ID)))
					if v.Item.Good {
						require.Equal(t, keep[name], v.Keep, "%s %v", v.Item.Time, v.Reasons)
					}
					if !v.Keep {
						delete(m.snapshots, name)
					}
				}
				if diff := cmp.Diff(ids(m.snapshots), stored(t, r)); diff != "" {
					t.Fatalf("snapshots: -want +got:\n%s", diff)
				}
				m.pruneAndCompare(t, r, s)
			}
		})
	}
}

func rulesOf(last, daily int) keep.Rules { return keep.Rules{Last: last, Daily: daily} }

// pruneAndCompare prunes all that is unused: then exactly what is needed is there, once.
func (m *model) pruneAndCompare(t testing.TB, r *repo.Repository, s *shop) {
	t.Helper()
	before := bytesOf(s)
	plan, err := PlanPrune(t.Context(), r, tidy)
	require.NoError(t, err)
	freed, err := plan.Execute(t.Context())
	require.NoError(t, err)
	if got := before - bytesOf(s); freed != got {
		t.Errorf("Execute says that it freed %d bytes, and the packs are %d bytes less", freed, got)
	}
	report := m.verify(t, s)
	require.Empty(t, report.Notes)
	fresh := reopen(t, s)
	require.NoError(t, fresh.LoadIndex(t.Context()))
	have := map[repo.BlobHandle]bool{}
	for _, blobs := range fresh.IndexPacks() {
		for _, b := range blobs {
			require.False(t, have[b.BlobHandle], "%v is there twice", b.BlobHandle)
			have[b.BlobHandle] = true
		}
	}
	if diff := cmp.Diff(m.needed(), have); diff != "" {
		t.Errorf("blobs after the prune: -want +got:\n%s", diff)
	}
	again, err := PlanPrune(t.Context(), fresh, tidy)
	require.NoError(t, err)
	if len(again.Unused)+len(again.Repack)+len(again.Unindexed) > 0 {
		t.Errorf("a second prune has something to do: %+v", again)
	}
}

func bytesOf(s *shop) (n int64) {
	for _, key := range s.Keys("data/") {
		n += int64(len(s.Bytes(key)))
	}
	return n
}

func TestPruneLeavesAShareOfUnusedDataToSaveWork(t *testing.T) {
	s, m := newShop(), newModel()
	r := initRepository(t, s)
	m.fill(t, r, rand.New(rand.NewPCG(1, 2)), 12)
	m.forgetHalf(t, r)
	all, err := PlanPrune(t.Context(), r, tidy)
	require.NoError(t, err)
	some, err := PlanPrune(t.Context(), r, PruneOptions{MaxUnused: 0.3})
	require.NoError(t, err)
	require.Greater(t, len(all.Repack), len(some.Repack))
	require.LessOrEqual(t, float64(some.UnusedBytes), 0.3*float64(some.UsedBytes))
	bounded, err := PlanPrune(t.Context(), r, PruneOptions{MaxUnused: -1, MaxRepack: 1})
	require.NoError(t, err)
	require.Empty(t, bounded.Repack)
	prune(t, r, PruneOptions{MaxUnused: 0.3})
	m.verify(t, s)
}

// forgetHalf removes every other snapshot.
func (m *model) forgetHalf(t testing.TB, r *repo.Repository) {
	t.Helper()
	all, err := r.Snapshots(t.Context())
	require.NoError(t, err)
	for i, sn := range all {
		if i%2 == 0 {
			require.NoError(t, r.RemoveSnapshots(t.Context(), sn.ID))
			delete(m.snapshots, sn.ID)
		}
	}
}

func TestACrashAtAnyOperationOfForgetAndPruneLosesNothing(t *testing.T) {
	s, m := newShop(), newModel()
	r := initRepository(t, s)
	m.fill(t, r, rand.New(rand.NewPCG(7, 7)), 7)
	run := func(s *shop) error {
		r, err := repo.Open(t.Context(), s, password, nil)
		if err != nil {
			return err
		}
		for _, path := range []string{"/ns/a", "/ns/b"} {
			_, err := Forget(t.Context(), r, ForgetOptions{Rules: rulesOf(1, 2), Match: func(s *repo.Snapshot) bool { return s.Paths[0] == path }})
			if err != nil {
				return err
			}
		}
		plan, err := PlanPrune(t.Context(), r, tidy)
		if err != nil {
			return err
		}
		_, err = plan.Execute(t.Context())
		return err
	}
	done := s.clone()
	require.NoError(t, run(done))
	// What is left is known from the run that nothing disturbed.
	left := map[string]bool{}
	for _, name := range stored(t, reopen(t, done)) {
		left[name] = true
	}
	for name := range m.snapshots {
		if !left[name.String()] {
			delete(m.snapshots, name)
		}
	}
	if n := crashEverywhere(t, s, run, func(t *testing.T, s *shop) {
		m.verify(t, s)
		require.NoError(t, run(s))
		require.Empty(t, m.verify(t, s).Notes)
		if diff := cmp.Diff(ids(m.snapshots), stored(t, reopen(t, s))); diff != "" {
			t.Errorf("snapshots: -want +got:\n%s", diff)
		}
	}); n < 40 {
		t.Errorf("only %d operations were found", n)
	}
}

var errCrash = fmt.Errorf("crash: %w", blobstore.ErrUnavailable)

// crashEverywhere calls run on copies of a store that fails from the n-th operation on, before or after it was done, for
// every n, and then calls verify with the store healed. It returns how many operations there are.
func crashEverywhere(t *testing.T, s *shop, run func(*shop) error, verify func(*testing.T, *shop)) (operations int) {
	for n := 1; ; n++ {
		crashed := false
		for _, done := range []bool{false, true} {
			at := s.clone()
			var count counter
			hook := func(string, string) error {
				if count.next() >= n {
					return errCrash
				}
				return nil
			}
			if done {
				at.After = hook
			} else {
				at.Before = hook
			}
			if err := run(at); err == nil {
				continue
			} else if !errors.Is(err, errCrash) {
				t.Fatalf("operation %d: %v", n, err)
			}
			crashed = true
			at.Before, at.After = nil, nil
			if !t.Run(fmt.Sprintf("%d done=%v", n, done), func(t *testing.T) { verify(t, at) }) {
				t.FailNow()
			}
		}
		if !crashed {
			return n - 1
		}
	}
}

func TestPruneDeletesNothingOnDoubt(t *testing.T) {
	s, m := newShop(), newModel()
	r := initRepository(t, s)
	rnd := rand.New(rand.NewPCG(3, 3))
	m.fill(t, r, rnd, 6)
	m.forgetHalf(t, r)
	var run repo.ID // a snapshot that was committed by a run
	for _, sn := range m.snapshots {
		committed := sn.Snapshot
		committed.Time = committed.Time.Add(time.Minute)
		name, _, err := r.CommitRun(t.Context(), "run-1", &committed)
		require.NoError(t, err)
		run = name
		break
	}
	flip := func(s *shop, key string) {
		data := s.Bytes(key)
		data[len(data)/2] ^= 1
		s.Set(key, data)
	}
	usedPack := func(t *testing.T, s *shop, kind repo.BlobType) string {
		r := reopen(t, s)
		require.NoError(t, r.LoadIndex(t.Context()))
		for h := range m.needed() {
			if places := r.Locations(h); h.Type == kind && len(places) == 1 {
				return repo.PackFile.Key(places[0].Pack)
			}
		}
		t.Fatal("no such pack")
		return ""
	}
	for name, tc := range map[string]struct {
		harm  func(*testing.T, *shop)
		doubt bool
	}{
		"a tree in use is damaged": {func(t *testing.T, s *shop) {
			data := s.Bytes(usedPack(t, s, repo.TreeBlob))
			clear(data)
			s.Set(usedPack(t, s, repo.TreeBlob), data)
		}, true},
		"a pack of trees is gone":        {func(t *testing.T, s *shop) { s.Remove(usedPack(t, s, repo.TreeBlob)) }, true},
		"a pack of data in use is gone":  {func(t *testing.T, s *shop) { s.Remove(usedPack(t, s, repo.DataBlob)) }, true},
		"a pack in use has another size": {func(t *testing.T, s *shop) { k := usedPack(t, s, repo.DataBlob); s.Set(k, append(s.Bytes(k), 0)) }, true},
		"the packs are listed short": {func(t *testing.T, s *shop) {
			k := usedPack(t, s, repo.DataBlob)
			s.hide = func(key string) bool { return key == k }
		}, true},
		"an index file is damaged": {func(t *testing.T, s *shop) { flip(s, s.Keys("index/")[0]) }, true},
		"all index files are unlisted": {func(t *testing.T, s *shop) {
			s.hide = func(key string) bool { return strings.HasPrefix(key, "index/") }
		}, true},
		"a snapshot is damaged": {func(t *testing.T, s *shop) { flip(s, s.Keys("snapshots/")[0]) }, true},
		"a snapshot of a run is unlisted": {func(t *testing.T, s *shop) {
			s.hide = func(key string) bool { return key == repo.SnapshotFile.Key(run) }
		}, true},
		"the second listing is longer": {func(t *testing.T, s *shop) {
			first, hidden := true, s.Keys("snapshots/")[0]
			s.hide = func(key string) bool {
				if key == hidden && first {
					first = false
					return true
				}
				return false
			}
		}, true},
		"the store refuses to give a tree": {func(t *testing.T, s *shop) {
			k := usedPack(t, s, repo.TreeBlob)
			s.Before = func(op, key string) error {
				if op == "get" && key == k {
					return blobstore.ErrPermission
				}
				return nil
			}
		}, false},
		"the store does not list packs": {func(t *testing.T, s *shop) {
			s.Before = func(op, key string) error {
				if op == "list" && strings.HasPrefix(key, "data") {
					return blobstore.ErrUnavailable
				}
				return nil
			}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := s.clone()
			tc.harm(t, s)
			plan, err := PlanPrune(t.Context(), reopen(t, s), tidy)
			require.Error(t, err)
			require.Nil(t, plan)
			require.Equal(t, tc.doubt, errors.Is(err, ErrDoubt), "%v", err)
			require.Zero(t, s.Count("delete"))
		})
	}
}

func TestPruneStopsWhenWhatIsInUseCannotBeMoved(t *testing.T) {
	s, m := newShop(), newModel()
	r := initRepository(t, s)
	m.fill(t, r, rand.New(rand.NewPCG(3, 5)), 10)
	m.forgetHalf(t, r)
	plan, err := PlanPrune(t.Context(), r, tidy)
	require.NoError(t, err)
	require.NotEmpty(t, plan.Repack)
	damaged := repo.PackFile.Key(plan.Repack[0].ID)
	data := s.Bytes(damaged)
	clear(data[:len(data)-20])
	s.Set(damaged, data)
	before := s.Keys("")
	_, err = plan.Execute(t.Context())
	require.ErrorIs(t, err, repo.ErrDamaged)
	require.Subset(t, s.Keys(""), before)
}

func TestYoungPacksThatNoIndexListsAreSpared(t *testing.T) {
	now := start
	s, m := newShop(), newModel()
	s.Now = func() time.Time { return now }
	r := initRepository(t, s)
	m.fill(t, r, rand.New(rand.NewPCG(1, 1)), 2)
	for _, key := range s.Keys("index/") {
		s.Remove(key) // as if a writer without locks had not come so far
	}
	for name := range m.snapshots {
		require.NoError(t, r.RemoveSnapshots(t.Context(), name))
	}
	packs := len(s.Keys("data/"))
	plan := prune(t, r, PruneOptions{Now: now.Add(23 * time.Hour)})
	require.Equal(t, packs, plan.Spared)
	require.Len(t, s.Keys("data/"), packs)
	plan = prune(t, r, PruneOptions{Now: now.Add(25 * time.Hour)})
	require.Len(t, plan.Unindexed, packs)
	require.Empty(t, s.Keys("data/"))
}

// An interrupted commit leaves a run without a snapshot. Once a prune may have taken its data, no later attempt may bring
// the snapshot back.
func TestPruneRemovesRunsWithoutASnapshot(t *testing.T) {
	s, m := newShop(), newModel()
	r := initRepository(t, s)
	rnd := rand.New(rand.NewPCG(1, 9))
	name := m.backup(t, r, rnd, repo.Snapshot{Time: start, Hostname: "cluster", Paths: []string{"/ns/a"}})
	committed := m.snapshots[name].Snapshot
	committed.Time = committed.Time.Add(time.Minute)
	lost, _, err := r.CommitRun(t.Context(), "run-1", &committed)
	require.NoError(t, err)
	s.Remove(repo.SnapshotFile.Key(lost))
	report, err := Check(t.Context(), r, CheckOptions{})
	require.NoError(t, err)
	require.Contains(t, strings.Join(report.Notes, "\n"), "1 runs have no snapshot")
	prune(t, r, tidy)
	require.Empty(t, s.Keys("runs/"))
	_, _, err = r.FindRun(t.Context(), "run-1")
	require.ErrorIs(t, err, repo.ErrNotFound)
	m.verify(t, s)
}
