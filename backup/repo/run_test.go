package repo_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/backup/repo/id"
	"example.com/pvcbackup/backup/repo/repotest"
)

func TestSnapshotsAreReadBackInOrder(t *testing.T) {
	s := repotest.NewMemory()
	r := initRepo(t, s)
	sn := fill(t, r)
	at := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, hours := range []int{3, 1, 2} {
		sn.Time = at.Add(time.Duration(hours) * time.Hour)
		_, err := r.SaveSnapshot(t.Context(), sn)
		require.NoError(t, err)
	}
	infos, err := openRepo(t, s).Snapshots(t.Context())
	require.NoError(t, err)
	require.Len(t, infos, 3)
	for i, info := range infos {
		require.Equal(t, at.Add(time.Duration(i+1)*time.Hour), info.Time.UTC())
		one, err := r.LoadSnapshot(t.Context(), info.ID)
		require.NoError(t, err)
		require.Equal(t, info.Snapshot, *one)
	}
}

func TestASnapshotFileThatCannotBeReadIsAnErrorBesidesTheOthers(t *testing.T) {
	s := repotest.NewMemory()
	r := initRepo(t, s)
	sn := fill(t, r)
	for range 2 {
		_, err := r.SaveSnapshot(t.Context(), sn)
		require.NoError(t, err)
	}
	bad := s.Keys("snapshots/")[0]
	s.Set(bad, []byte("x"))
	infos, err := r.Snapshots(t.Context())
	require.ErrorIs(t, err, repo.ErrDamaged)
	require.ErrorContains(t, err, bad)
	require.Len(t, infos, 1)
}

func TestUnusableSnapshotsAreNeverWritten(t *testing.T) {
	s := repotest.NewMemory()
	r := initRepo(t, s)
	good := fill(t, r)
	for name, change := range map[string]func(*repo.Snapshot){
		"no tree":           func(sn *repo.Snapshot) { sn.Tree = nil },
		"zero tree":         func(sn *repo.Snapshot) { sn.Tree = &id.ID{} },
		"tree not in index": func(sn *repo.Snapshot) { sn.Tree = &id.ID{1} },
		"comma in a tag":    func(sn *repo.Snapshot) { sn.Tags = []string{"a,b"} },
	} {
		t.Run(name, func(t *testing.T) {
			sn := *good
			change(&sn)
			_, err := r.SaveSnapshot(t.Context(), &sn)
			require.Error(t, err)
			_, _, err = r.CommitRun(t.Context(), "run", &sn)
			require.Error(t, err)
			require.Empty(t, s.Keys("snapshots/"))
			require.Empty(t, s.Keys("runs/"))
		})
	}
}

func TestReplaceSnapshotKeepsTheFirstID(t *testing.T) {
	s := repotest.NewMemory()
	r := initRepo(t, s)
	sn := fill(t, r)
	first, err := r.SaveSnapshot(t.Context(), sn)
	require.NoError(t, err)
	sn.Tags = []string{"new"}
	second, err := r.ReplaceSnapshot(t.Context(), first, sn)
	require.NoError(t, err)
	got, err := r.LoadSnapshot(t.Context(), second)
	require.NoError(t, err)
	require.Equal(t, first, *got.Original)
	third, err := r.ReplaceSnapshot(t.Context(), second, got)
	require.NoError(t, err)
	got, err = r.LoadSnapshot(t.Context(), third)
	require.NoError(t, err)
	require.Equal(t, first, *got.Original)
	require.Len(t, s.Keys("snapshots/"), 1)
}

func TestRacingCommitsEndInOneSnapshot(t *testing.T) {
	const n = 4
	s := repotest.NewMemory()
	r := initRepo(t, s)
	sn := fill(t, r)
	s.Before = barrier(n, "put", "runs/uid-slot-full")
	ids, wins, errs := make([]repo.ID, n), make([]bool, n), make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		own := *sn
		own.Hostname = string(rune('a' + i))
		wg.Go(func() { ids[i], wins[i], errs[i] = r.CommitRun(t.Context(), "uid-slot-full", &own) })
	}
	wg.Wait()
	winners := 0
	for i := range n {
		require.NoError(t, errs[i])
		require.Equal(t, ids[0], ids[i])
		if wins[i] {
			winners++
		}
	}
	require.Equal(t, 1, winners)
	require.Equal(t, []string{"snapshots/" + ids[0].String()}, s.Keys("snapshots/"))
	found, got, err := r.FindRun(t.Context(), "uid-slot-full")
	require.NoError(t, err)
	require.Equal(t, ids[0], found)
	require.Equal(t, string(rune('a'+slices.Index(wins, true))), got.Hostname)
}

func TestFindRunFinishesAnInterruptedCommit(t *testing.T) {
	s := repotest.NewMemory()
	r := initRepo(t, s)
	sn := fill(t, r)
	s.Before = failOn("put", "snapshots/")
	_, _, err := r.CommitRun(t.Context(), "run", sn)
	require.ErrorIs(t, err, errStore)
	s.Before = nil
	require.Empty(t, s.Keys("snapshots/"))

	again := openRepo(t, s)
	found, got, err := again.FindRun(t.Context(), "run")
	require.NoError(t, err)
	require.Equal(t, *sn.Tree, *got.Tree)
	require.Equal(t, []string{"snapshots/" + found.String()}, s.Keys("snapshots/"))

	// A later attempt of the run loses to it.
	later := *sn
	later.Hostname = "later"
	second, won, err := again.CommitRun(t.Context(), "run", &later)
	require.NoError(t, err)
	require.False(t, won)
	require.Equal(t, found, second)
	require.Len(t, s.Keys("snapshots/"), 1)
}

func TestFindRunWithoutARunIsNotFoundAndADeniedOneIsNot(t *testing.T) {
	s := repotest.NewMemory()
	r := initRepo(t, s)
	_, _, err := r.FindRun(t.Context(), "none")
	require.ErrorIs(t, err, repo.ErrNotFound)
	s.Before = denied("get")
	_, _, err = r.FindRun(t.Context(), "none")
	require.Error(t, err)
	require.NotErrorIs(t, err, repo.ErrNotFound)
	s.Before = nil
	s.Set("runs/bad", []byte("x"))
	_, _, err = r.FindRun(t.Context(), "bad")
	require.ErrorIs(t, err, repo.ErrDamaged)
}

func TestARemovedSnapshotIsNotBroughtBack(t *testing.T) {
	s := repotest.NewMemory()
	r := initRepo(t, s)
	sn := fill(t, r)
	gone, _, err := r.CommitRun(t.Context(), "gone", sn)
	require.NoError(t, err)
	kept, _, err := r.CommitRun(t.Context(), "kept", sn)
	require.NoError(t, err)
	require.NoError(t, r.RemoveSnapshots(t.Context(), gone))
	require.NoError(t, r.RemoveSnapshots(t.Context(), gone), "gone already")
	require.Equal(t, []string{"runs/kept"}, s.Keys("runs/"))
	require.Equal(t, []string{"snapshots/" + kept.String()}, s.Keys("snapshots/"))
	_, _, err = r.FindRun(t.Context(), "gone")
	require.ErrorIs(t, err, repo.ErrNotFound)
}

func TestFindRunDoesNotFinishWhatTheIndexDoesNotHold(t *testing.T) {
	s := repotest.NewMemory()
	r := initRepo(t, s)
	_, _, err := r.CommitRun(t.Context(), "run", fill(t, r))
	require.NoError(t, err)
	for _, key := range slices.Concat(s.Keys("snapshots/"), s.Keys("index/")) {
		s.Remove(key) // as forget and prune of another program would
	}
	_, _, err = openRepo(t, s).FindRun(t.Context(), "run")
	require.ErrorIs(t, err, repo.ErrNotFound)
	require.Empty(t, s.Keys("snapshots/"))
}

func TestRunNamesArePlain(t *testing.T) {
	r := initRepo(t, repotest.NewMemory())
	sn := fill(t, r)
	for _, name := range []string{"", ".", "..", ".hidden", "a/b", "a b", "ü", strings.Repeat("a", 201)} {
		_, _, err := r.CommitRun(t.Context(), name, sn)
		require.Error(t, err, "%q", name)
		_, _, err = r.FindRun(t.Context(), name)
		require.Error(t, err, "%q", name)
	}
	_, _, err := r.CommitRun(t.Context(), "0c9d-1700000000_x.y-full", sn)
	require.NoError(t, err)
}
