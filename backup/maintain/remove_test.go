package maintain

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/pvcbackup/backup/repo"
)

func TestARepositoryThatHoldsSnapshotsIsNotRemoved(t *testing.T) {
	s, m := newShop(), newModel()
	r := initRepository(t, s)
	m.fill(t, r, rand.New(rand.NewPCG(1, 1)), 1)
	require.ErrorIs(t, RemoveRepository(t.Context(), r, s), ErrInUse)
	var sn repo.Snapshot
	for _, saved := range m.snapshots {
		sn = saved.Snapshot
	}
	require.NoError(t, r.RemoveSnapshots(t.Context(), idOf(m)))
	sn.Time = sn.Time.Add(time.Hour)
	run, _, err := r.CommitRun(t.Context(), "run", &sn)
	require.NoError(t, err)
	s.hide = func(key string) bool { return key == repo.SnapshotFile.Key(run) }
	require.ErrorIs(t, RemoveRepository(t.Context(), r, s), ErrDoubt)
	s.Remove("config")
	s.hide = nil
	require.ErrorIs(t, RemoveRest(t.Context(), s, time.Now().Add(time.Hour)), ErrInUse)
	require.NotEmpty(t, s.Keys("snapshots/"))
	require.NotEmpty(t, s.Keys("keys/"))
}

func idOf(m *model) repo.ID {
	for name := range m.snapshots {
		return name
	}
	return repo.ID{}
}

func TestACrashAtAnyOperationOfARemovalConvergesToNothing(t *testing.T) {
	s, m := newShop(), newModel()
	r := initRepository(t, s)
	require.NoError(t, r.EnsureOwner(t.Context(), "me"))
	m.fill(t, r, rand.New(rand.NewPCG(1, 1)), 3)
	remove := func(s *shop) error {
		switch state, err := repo.Probe(t.Context(), s); {
		case err != nil:
			return err
		case state != repo.StateRepository:
			return RemoveRest(t.Context(), s, time.Now().Add(time.Hour))
		}
		r, err := repo.Open(t.Context(), s, password, nil)
		if err != nil {
			return err
		}
		if _, _, err := ForgetAll(t.Context(), r, func(*repo.Snapshot) bool { return true }); err != nil {
			return err
		}
		return RemoveRepository(t.Context(), r, s)
	}
	n := crashEverywhere(t, s, remove, func(t *testing.T, s *shop) {
		require.NoError(t, remove(s))
		require.Empty(t, s.Keys(""))
	})
	if n < 20 {
		t.Errorf("only %d operations were found", n)
	}
}

func TestWhatMayBeARepositoryThatIsJustBeingCreatedIsLeftAlone(t *testing.T) {
	s := newShop()
	initRepository(t, s)
	s.Remove("config")
	require.ErrorIs(t, RemoveRest(t.Context(), s, time.Now()), ErrYoung)
	require.Len(t, s.Keys("keys/"), 1)
	require.NoError(t, RemoveRest(t.Context(), s, time.Now().Add(16*time.Minute)))
	require.Empty(t, s.Keys(""))
}
