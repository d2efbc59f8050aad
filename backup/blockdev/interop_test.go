package blockdev

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/backup/repo/repotest"
	"github.com/stretchr/testify/require"
)

func TestResticChecksDumpsAndRestoresAVolume(t *testing.T) {
	r, folder := initInFolder(t)
	restic := repotest.NewRestic(t, folder, password)
	d := mixed()
	first := run(t, r, d, options(0, "a"))
	before := bytes.Clone(d.data)
	changed := d.write(7*testChunk+5, []byte("changed"))
	second := run(t, r, d, options(1, "b").since("a", d.Size(), changed))
	require.Equal(t, ReadChanged, second.Read)

	require.Contains(t, restic.Run("check", "--read-data"), "no errors were found")
	for id, want := range map[repo.ID][]byte{first.SnapshotID: before, second.SnapshotID: d.data} {
		out, err := restic.Command(t.Context(), "dump", id.String(), "/data/volume.img").Output()
		require.NoError(t, err)
		require.True(t, bytes.Equal(want, out), "restic dumps something else")
	}
	target := t.TempDir()
	restic.Run("restore", second.SnapshotID.String(), "--target", target)
	requireFile(t, filepath.Join(target, "data", ImageName), d.data)

	restic.Run("forget", first.SnapshotID.String(), "--prune")
	require.Contains(t, restic.Run("check", "--read-data"), "no errors were found")
	again, err := repo.Open(t.Context(), mustDir(t, folder), password, nil)
	require.NoError(t, err)
	changed = d.write(9*testChunk, []byte("changed again"))
	third := run(t, again, d, options(2, "c").since("b", d.Size(), changed))
	require.Equal(t, ReadChanged, third.Read, third.Detail)
	requireStored(t, again, third, d.data)
}

func TestAVolumeThatResticTaggedAnewIsStillAParent(t *testing.T) {
	r, folder := initInFolder(t)
	restic := repotest.NewRestic(t, folder, password)
	d := newDisk(1, 3*testChunk)
	run(t, r, d, options(0, "a"))
	restic.Run("tag", "--add", "kept")
	again, err := repo.Open(t.Context(), mustDir(t, folder), password, nil)
	require.NoError(t, err)
	require.Equal(t, ReadChanged, run(t, again, d, options(1, "b").since("a", d.Size())).Read)
}

func TestAnImageThatResticStoredIsRestored(t *testing.T) {
	r, folder := initInFolder(t)
	restic := repotest.NewRestic(t, folder, password)
	d := mixed()
	image := filepath.Join(t.TempDir(), "disk.raw")
	require.NoError(t, os.WriteFile(image, d.data, 0o600))
	restic.Run("backup", image)
	snapshots, err := r.Snapshots(t.Context())
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "f")
	_, err = RestoreToFile(t.Context(), r, snapshots[0].ID, path, RestoreOptions{Path: "disk.raw"})
	if err != nil { // restic keeps the path, of which the file is the end
		_, err = RestoreToFile(t.Context(), r, snapshots[0].ID, path, RestoreOptions{Path: "."})
	}
	require.NoError(t, err)
	requireFile(t, path, d.data)
}

func mustDir(t *testing.T, folder string) repo.Store {
	t.Helper()
	store, err := repotest.NewDir(folder)
	require.NoError(t, err)
	return store
}
