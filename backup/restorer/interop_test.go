package restorer_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/pvcbackup/backup/archiver"
	"example.com/pvcbackup/backup/internal/edgetree"
	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/backup/restorer"
	"example.com/pvcbackup/backup/restorer/treecmp"
	"github.com/stretchr/testify/require"
)

func TestAnEdgeTreeSurvivesARoundTrip(t *testing.T) {
	for _, chunker := range []archiver.Chunker{archiver.Gear, archiver.Rabin, archiver.Fixed} {
		t.Run(string(chunker), func(t *testing.T) {
			source, target := t.TempDir(), t.TempDir()
			edgetree.Make(t, source)
			r := initRepository(t)
			done := backup(t, r.Repository, source, func(o *archiver.Options) { o.Chunker = chunker })
			require.Equal(t, 1, done.Sockets)
			require.Zero(t, done.Changed.Count)
			result := restore(t, r.Repository, done.SnapshotID, target, restorer.Options{})
			requireEqual(t, source, target, treecmp.Options{Holes: true})
			require.True(t, result.Verified)
			require.True(t, result.OwnersRestored)
			require.Zero(t, result.Xattrs.Count, "%v", result.Xattrs)
			require.Zero(t, result.NotCreated.Count, "%v", result.NotCreated)
			require.EqualValues(t, 4, result.HardLinks)
			require.Equal(t, done.Files.Total(), result.Files+3) // every name of a file counts in a backup
		})
	}
}

func TestResticRestoresWhatWeWrite(t *testing.T) {
	source, target := t.TempDir(), t.TempDir()
	edgetree.Make(t, source)
	r := initRepository(t)
	done := backup(t, r.Repository, source)
	require.Contains(t, r.restic(t, "", "check", "--read-data"), "no errors were found")
	r.restic(t, "", "restore", done.SnapshotID.String()+":/data", "--target", target, "--sparse")
	// The root of the sub-tree is nobody's entry to restic. It restores hard links of files only.
	differences, err := treecmp.Compare(source, target, treecmp.Options{Owners: os.Getuid() == 0, SkipRoot: true})
	require.NoError(t, err)
	for _, d := range differences {
		if d.Field == "hard link" && strings.HasPrefix(d.Path, "links/dangling") {
			continue
		}
		t.Error(d)
	}
}

func TestResticRestoresTheSourcesOwnMetadata(t *testing.T) {
	source, target := t.TempDir(), t.TempDir()
	edgetree.Make(t, source)
	r := initRepository(t)
	done := backup(t, r.Repository, source)
	r.restic(t, "", "restore", done.SnapshotID.String(), "--target", target)
	want, err := os.Stat(source)
	require.NoError(t, err)
	got, err := os.Stat(filepath.Join(target, "data"))
	require.NoError(t, err)
	require.Equal(t, want.Mode(), got.Mode())
	require.Equal(t, want.ModTime(), got.ModTime())
}

func TestWeRestoreWhatResticWrites(t *testing.T) {
	source, target := t.TempDir(), t.TempDir()
	edgetree.Make(t, source)
	r := initRepository(t)
	id := resticBackup(t, r, "", source)
	result := restore(t, r.Repository, id, target, restorer.Options{})
	requireEqual(t, source, target, treecmp.Options{Holes: true})
	require.True(t, result.Verified)
}

// resticBackup returns the snapshot that restic made.
func resticBackup(t *testing.T, r *repository, dir, what string, args ...string) repo.ID {
	t.Helper()
	out := r.restic(t, dir, append([]string{"backup", "--json", "--host", "cluster", what}, args...)...)
	id, _ := resticSummary(t, out)
	return id
}

func resticSummary(t *testing.T, out string) (repo.ID, map[string]any) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(out), "\n")
	var summary map[string]any
	require.NoError(t, json.Unmarshal([]byte(lines[len(lines)-1]), &summary))
	var id repo.ID
	require.NoError(t, id.UnmarshalText([]byte(summary["snapshot_id"].(string))))
	return id, summary
}

func TestResticTakesOurSnapshotAsParentAndFindsAllUnmodified(t *testing.T) {
	parent := t.TempDir()
	source := filepath.Join(parent, "data")
	require.NoError(t, os.Mkdir(source, 0o755))
	edgetree.Make(t, source)
	r := initRepository(t)
	done := backup(t, r.Repository, source, func(o *archiver.Options) { o.NoParent = true })
	out := r.restic(t, parent, "backup", "--json", "--parent", done.SnapshotID.String(), "data")
	id, summary := resticSummary(t, out)
	require.EqualValues(t, 0, summary["files_new"])
	require.EqualValues(t, 0, summary["files_changed"])
	require.EqualValues(t, done.Files.Total(), summary["files_unmodified"])
	require.EqualValues(t, 0, summary["data_blobs"])
	target := t.TempDir()
	restore(t, r.Repository, id, target, restorer.Options{})
	requireEqual(t, source, target, treecmp.Options{})
}

func TestAParentWrittenByResticSelectsRabinAndItsFilesAreUnmodified(t *testing.T) {
	source, target := t.TempDir(), t.TempDir()
	edgetree.Make(t, source)
	r := initRepository(t)
	id := resticBackup(t, r, "", source)
	done := backup(t, r.Repository, source, func(o *archiver.Options) { o.Path = source })
	require.Equal(t, archiver.Rabin, done.Chunker)
	require.Equal(t, id, done.Parent)
	require.Zero(t, done.Files.New+done.Files.Changed)
	restore(t, r.Repository, done.SnapshotID, target, restorer.Options{})
	requireEqual(t, source, target, treecmp.Options{Holes: true})

	again := backup(t, r.Repository, source, func(o *archiver.Options) { o.Path, o.NoParent, o.Chunker = source, true, archiver.Rabin })
	require.Zero(t, again.Added, "restic's chunks are not found again")
}
