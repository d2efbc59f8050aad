package maintain

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/pvcbackup/backup/archiver"
	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/schedule/keep"
)

type counter struct {
	mu sync.Mutex
	n  int
}

func (c *counter) next() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
	return c.n
}

func TestTheNewestGoodSnapshotIsNeverForgottenAndPartialAndEmptyOnesDisplaceNothing(t *testing.T) {
	s, m := newShop(), newModel()
	r := initRepository(t, s)
	rnd := rand.New(rand.NewPCG(1, 1))
	at := func(hours int, tags ...string) repo.ID {
		return m.backup(t, r, rnd, repo.Snapshot{Time: start.Add(time.Duration(hours) * time.Hour), Hostname: "h", Paths: []string{"/p"}, Tags: tags})
	}
	at(0)
	good := at(1)
	at(2, archiver.TagPartial)
	at(3, archiver.TagEmpty)
	report, err := Forget(t.Context(), r, ForgetOptions{Rules: keep.Rules{Last: 1, Hourly: 1}})
	require.NoError(t, err)
	require.Positive(t, report.Removed)
	require.Contains(t, stored(t, r), good.String())
	for _, v := range report.Verdicts {
		if v.Item.ID == good.String() && !v.Keep {
			t.Error("the newest good snapshot is to go")
		}
	}
}

func TestForgetKeepsEverythingWithoutRulesAndOnADryRun(t *testing.T) {
	s, m := newShop(), newModel()
	r := initRepository(t, s)
	m.fill(t, r, rand.New(rand.NewPCG(5, 1)), 6)
	report, err := Forget(t.Context(), r, ForgetOptions{})
	require.NoError(t, err)
	require.Equal(t, 6, report.Kept)
	report, err = Forget(t.Context(), r, ForgetOptions{Rules: keep.Rules{Last: 1}, DryRun: true})
	require.NoError(t, err)
	require.Positive(t, report.Removed)
	require.Equal(t, ids(m.snapshots), stored(t, r))
	require.Zero(t, s.Count("delete"))
}

func TestNothingIsForgottenWhenASnapshotCannotBeRead(t *testing.T) {
	s, m := newShop(), newModel()
	r := initRepository(t, s)
	m.fill(t, r, rand.New(rand.NewPCG(5, 2)), 4)
	key := s.Keys("snapshots/")[0]
	data := s.Bytes(key)
	data[3] ^= 1
	s.Set(key, data)
	_, err := Forget(t.Context(), r, ForgetOptions{Rules: keep.Rules{Last: 1}})
	require.ErrorIs(t, err, repo.ErrDamaged)
	_, _, err = ForgetAll(t.Context(), r, func(*repo.Snapshot) bool { return true })
	require.ErrorIs(t, err, repo.ErrDamaged)
	require.Zero(t, s.Count("delete"))
}
