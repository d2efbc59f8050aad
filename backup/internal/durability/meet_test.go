package durability

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/pvcbackup/backup/archiver"
	"example.com/pvcbackup/backup/maintain"
	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/backup/repo/repotest"
	"example.com/pvcbackup/blobstore"
)

func TestWritersOfBothProgramsAndAPrunerMeet(t *testing.T) {
	s := byUs(t, "restic")
	var sources []string
	for i := range int64(4) {
		dir := filepath.Join(t.TempDir(), "data")
		fillFolder(t, dir, 10*i, 200<<10) // they overlap, so that writers store the same at once
		sources = append(sources, dir)
	}
	ours := func(args ...string) *exec.Cmd { return tool(s.env(password), args...) }
	require.NoError(t, ours("backup", sources[0], "--host", "old", "--path", "/gone").Run())
	all, err := s.open(t, password).Snapshots(t.Context())
	require.NoError(t, err)
	require.NoError(t, s.open(t, password).RemoveSnapshots(t.Context(), all[0].ID)) // there is something to prune
	atOnce := []*exec.Cmd{
		ours("backup", sources[0], "--host", "a", "--path", "/0"),
		ours("backup", sources[1], "--host", "a", "--path", "/1"),
		ours("prune", "--max-unused", "0"),
		s.Command(t.Context(), "backup", "--host", "a", "--retry-lock", "1m", sources[2]),
		s.Command(t.Context(), "backup", "--host", "a", "--retry-lock", "1m", sources[3]),
	}
	for _, cmd := range atOnce {
		require.NoError(t, cmd.Start())
	}
	for _, cmd := range atOnce {
		require.NoError(t, cmd.Wait(), "%v: %v", cmd.Args, cmd.Stdout)
	}
	s.bothFindItSound(t)
	all, err = s.open(t, password).Snapshots(t.Context())
	require.NoError(t, err)
	require.Len(t, all, 4)
	for _, sn := range all {
		source := sn.Paths[0]
		if i, found := strings.CutPrefix(source, "/"); found && len(i) == 1 {
			var n int
			require.NoError(t, json.Unmarshal([]byte(i), &n))
			source = sources[n]
		}
		require.NoError(t, restores(t, s.store, sn.ID, contents(t, source)))
	}
}

func TestAWriterThatTakesNoLocksLosesNothingToAPruneThatBeginsBeforeItsIndexIsWritten(t *testing.T) {
	tr := newTreasure(t)
	source := t.TempDir()
	fillFolder(t, source, 900, 200<<10)
	pruned := false
	prune := func() {
		r, err := repo.Open(t.Context(), tr.store, password, nil)
		require.NoError(t, err)
		plan, err := maintain.PlanPrune(t.Context(), r, maintain.PruneOptions{MaxUnused: -1})
		require.NoError(t, err)
		require.NotZero(t, plan.Spared)
		_, err = plan.Execute(t.Context())
		require.NoError(t, err)
	}
	writer := &beforeIndex{Memory: tr.store, hook: func() {
		if !pruned {
			pruned = true
			prune()
		}
	}}
	r, err := repo.Open(t.Context(), writer, password, nil)
	require.NoError(t, err)
	done, err := archiver.Backup(t.Context(), r, source, archiver.Options{Host: "foreign", Path: "/ns/9"})
	require.NoError(t, err)
	require.True(t, pruned)
	require.NoError(t, check(t, tr.store))
	tr.snapshots[done.SnapshotID] = contents(t, source)
	for id, want := range tr.snapshots {
		require.NoError(t, restores(t, tr.store, id, want), fmt.Sprint(id.Short()))
	}
}

// beforeIndex calls a hook before an index file is written.
type beforeIndex struct {
	*repotest.Memory
	hook func()
}

// PutBytes implements repo.Store.
func (b *beforeIndex) PutBytes(ctx context.Context, key string, data []byte, o *blobstore.PutOptions) error {
	if strings.HasPrefix(key, "index/") {
		b.hook()
	}
	return b.Memory.PutBytes(ctx, key, data, o)
}
