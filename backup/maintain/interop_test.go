package maintain

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/pvcbackup/backup/archiver"
	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/backup/repo/repotest"
	"example.com/pvcbackup/schedule/keep"
)

// backups makes n snapshots of a folder that changes, in a repository that restic can open.
func backups(t *testing.T, n int) (*repo.Repository, *repotest.Restic) {
	t.Helper()
	dir, source := t.TempDir(), t.TempDir()
	store, err := repotest.NewDir(dir)
	require.NoError(t, err)
	r := initRepository(t, store)
	rnd := rand.New(rand.NewPCG(1, 1))
	for i := range n {
		for j := range 4 {
			data := make([]byte, 200_000)
			for k := range data {
				data[k] = byte(rnd.Uint32())
			}
			name := filepath.Join(source, fmt.Sprintf("dir%d", j), fmt.Sprintf("file%d", rnd.IntN(3)))
			require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
			require.NoError(t, os.WriteFile(name, data, 0o644))
		}
		_, err := archiver.Backup(t.Context(), r, source, archiver.Options{
			Host: "cluster", Path: "/ns/a", Time: start.Add(time.Duration(i) * 24 * time.Hour), RunName: fmt.Sprintf("run-%d", i),
		})
		require.NoError(t, err)
	}
	return r, repotest.NewRestic(t, dir, password)
}

func TestResticFindsNothingWrongAfterOurForgetAndPrune(t *testing.T) {
	r, restic := backups(t, 5)
	report, err := Forget(t.Context(), r, ForgetOptions{Rules: keep.Rules{Last: 2}})
	require.NoError(t, err)
	require.Equal(t, 3, report.Removed)
	plan := prune(t, r, tidy)
	require.NotEmpty(t, plan.Repack)
	restic.Run("check", "--read-data")
	restic.Run("prune", "--max-unused", "0")
	restic.Run("check", "--read-data")
}

func TestWeFindNothingWrongAfterResticsForgetAndPrune(t *testing.T) {
	r, restic := backups(t, 5)
	restic.Run("forget", "--keep-last", "2", "--prune", "--max-unused", "0")
	report, err := Check(t.Context(), r, CheckOptions{ReadData: true})
	require.NoError(t, err)
	require.NoError(t, report.Err())
	require.Equal(t, 2, report.Snapshots)
	// The runs of what restic removed are still there, and go.
	prune(t, r, tidy)
	report, err = Check(t.Context(), r, CheckOptions{ReadData: true})
	require.NoError(t, err)
	require.NoError(t, report.Err())
	require.Empty(t, report.Notes)
	restic.Run("check", "--read-data")
	restic.Run("restore", "latest", "--target", t.TempDir())
}
