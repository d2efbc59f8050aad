package durability

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"example.com/pvcbackup/backup/archiver"
	"example.com/pvcbackup/backup/internal/edgetree"
	"example.com/pvcbackup/backup/maintain"
	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/backup/repo/repotest"
	"example.com/pvcbackup/backup/restorer"
	"example.com/pvcbackup/backup/restorer/treecmp"
	"example.com/pvcbackup/schedule/keep"
)

// resticTools are the versions that we are held against, by the names of the tools.
var resticTools = []struct{ tool, version, repair string }{
	{"restic-0.14", "0.14.0", "rebuild-index"},
	{"restic", "0.18.1", "repair index"},
}

// shared is a repository that both programs see.
type shared struct {
	*folder
	*repotest.Restic
	old bool
}

// byRestic makes a repository with stock restic. Its key is opened once, and then replaced by one that costs less.
func byRestic(t *testing.T, tool, format string) shared {
	t.Helper()
	f := &folder{dir: t.TempDir()}
	restic := repotest.NewResticOf(t, tool, f.dir, password)
	restic.Run("init", "--repository-version", format)
	f.connect(t)
	_, err := f.open(t, password).ChangeKey(t.Context(), password, repo.KeyOptions{Scrypt: repo.ScryptParams(repotest.Cheap)})
	require.NoError(t, err)
	return shared{f, restic, tool == resticTools[0].tool}
}

// byUs makes a repository with the engine.
func byUs(t *testing.T, tool string) shared {
	t.Helper()
	f := newFolder(t, repo.InitOptions{})
	return shared{f, repotest.NewResticOf(t, tool, f.dir, password), tool == resticTools[0].tool}
}

// envEdges makes the matrix use everything that may be in a volume, both versions, and every kind of compression;
// otherwise it is the older one, as other packages use the newer one, and a few files and links.
const envEdges = "DURABILITY_EDGES"

// edges is a tree for the matrix with a file of several chunks.
func edges(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	require.NoError(t, os.Mkdir(dir, 0o755))
	if number(t, envEdges, 0) > 0 {
		edgetree.Make(t, dir)
	} else {
		fillFolder(t, dir, 1, 100<<10)
		require.NoError(t, os.Symlink("large", filepath.Join(dir, "symlink")))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "large"), edgetree.Random(7, 9<<20), 0o640))
	return dir
}

func (s shared) ourBackup(t *testing.T, source string, o archiver.Options) *archiver.Result {
	t.Helper()
	o.Host = "cluster"
	if o.Path == "" {
		o.Path = source
	}
	done, err := archiver.Backup(t.Context(), s.open(t, password), source, o)
	require.NoError(t, err)
	return done
}

// resticBackup makes a snapshot, and returns it and how many data blobs it added.
func (s shared) resticBackup(t *testing.T, source string, args ...string) (repo.ID, int) {
	t.Helper()
	out := s.Output(append([]string{"backup", "--json", "--host", "cluster", source}, args...)...)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	var summary struct {
		DataBlobs  int    `json:"data_blobs"`
		SnapshotID string `json:"snapshot_id"`
	}
	require.NoError(t, json.Unmarshal([]byte(lines[len(lines)-1]), &summary))
	all, err := s.open(t, password).Snapshots(t.Context())
	require.NoError(t, err)
	for _, sn := range all {
		if strings.HasPrefix(sn.ID.String(), summary.SnapshotID) {
			return sn.ID, summary.DataBlobs
		}
	}
	t.Fatalf("restic's snapshot %s is not listed", summary.SnapshotID)
	return repo.ID{}, 0
}

func (s shared) weCheck(t *testing.T) {
	t.Helper()
	require.NoError(t, check(t, s.store))
}

func (s shared) weRestore(t *testing.T, id repo.ID, source string) {
	t.Helper()
	target := t.TempDir()
	_, err := restorer.Restore(t.Context(), s.open(t, password), id, target, restorer.Options{})
	require.NoError(t, err)
	same(t, source, target, s.old, treecmp.Options{Holes: true})
}

// resticRestores lets restic restore one of our snapshots. It makes hard links of files only.
func (s shared) resticRestores(t *testing.T, id repo.ID, source string) {
	t.Helper()
	target := t.TempDir()
	s.Run("restore", id.String(), "--target", target)
	same(t, source, filepath.Join(target, "data"), s.old, treecmp.Options{})
}

// same compares trees. old says that restic 0.14 was between them, which replaces what is not UTF-8 in a link's target.
func same(t *testing.T, a, b string, old bool, o treecmp.Options) {
	t.Helper()
	o.Owners = os.Getuid() == 0
	differences, err := treecmp.Compare(a, b, o)
	require.NoError(t, err)
	for _, d := range differences {
		if d.Path == "links/raw" && d.Field == "target" && old {
			continue
		}
		if d.Field == "hard link" && strings.HasPrefix(d.Path, "links/dangling") && !o.Holes {
			continue
		}
		t.Error(d)
	}
}

// matrix is what is tried with each version of restic.
func matrix() (rows []row) {
	add := func(what string, try func(*testing.T, string, string)) {
		rows = append(rows, row{what: what, try: try})
	}
	deep := func(yes bool) { rows[len(rows)-1].deep = yes }
	for _, format := range []string{"1", "2"} {
		for _, compression := range []string{"off", "auto", "max"} {
			if format == "1" && compression != "auto" {
				continue // it is never compressed
			}
			add(fmt.Sprintf("restic wrote format %s, compression %s: we check it and restore it", format, compression),
				func(t *testing.T, tool, _ string) {
					s, source := byRestic(t, tool, format), edges(t)
					id, _ := s.resticBackup(t, source, "--compression", compression)
					s.weCheck(t)
					s.weRestore(t, id, source)
				})
			deep(compression != "auto")
		}
	}
	for _, compression := range []string{"off", "fastest", "better"} {
		level := map[string]repo.Compression{"off": repo.CompressOff, "fastest": repo.CompressFastest, "better": repo.CompressBetter}[compression]
		add(fmt.Sprintf("we wrote, compression %s: restic checks it and restores it", compression), func(t *testing.T, tool, _ string) {
			s, source := byUs(t, tool), edges(t)
			done := s.ourBackup(t, source, archiver.Options{Compression: level})
			s.Run("check", "--read-data")
			s.resticRestores(t, done.SnapshotID, source)
		})
		deep(compression != "fastest")
	}
	add("restic wrote, then we: the chunker is taken over, and nothing unchanged is stored again", func(t *testing.T, tool, _ string) {
		s, source := byRestic(t, tool, "2"), edges(t)
		s.resticBackup(t, source)
		done := s.ourBackup(t, source, archiver.Options{})
		require.Equal(t, archiver.Rabin, done.Chunker)
		again := s.ourBackup(t, source, archiver.Options{NoParent: true, Chunker: archiver.Rabin, Path: "/ns/other"})
		require.Zero(t, again.Added, "restic's chunks are not found again")
	})
	add("we wrote with the rabin chunker, then restic: no data is stored again", func(t *testing.T, tool, _ string) {
		s, source := byUs(t, tool), edges(t)
		s.ourBackup(t, source, archiver.Options{Chunker: archiver.Rabin})
		id, blobs := s.resticBackup(t, source, "--force")
		require.Zero(t, blobs)
		s.weRestore(t, id, source)
	})
	add("restic forgets, prunes and rebuilds the index of ours: both find it sound", func(t *testing.T, tool, repair string) {
		s, source := byUs(t, tool), edges(t)
		last := s.several(t, source, func() repo.ID { return s.ourBackup(t, source, archiver.Options{}).SnapshotID })
		s.Run("forget", "--keep-last", "1", "--prune", "--max-unused", "0")
		s.Run(strings.Fields(repair)...)
		s.bothFindItSound(t)
		s.weRestore(t, last, source)
		s.resticRestores(t, last, source)
	})
	add("we forget, prune and rebuild the index of restic's: both find it sound", func(t *testing.T, tool, _ string) {
		s, source := byRestic(t, tool, "2"), edges(t)
		last := s.several(t, source, func() repo.ID { id, _ := s.resticBackup(t, source); return id })
		r := s.open(t, password)
		report, err := maintain.Forget(t.Context(), r, maintain.ForgetOptions{Rules: keep.Rules{Last: 1}})
		require.NoError(t, err)
		require.Equal(t, 2, report.Removed)
		plan, err := maintain.PlanPrune(t.Context(), r, maintain.PruneOptions{MaxUnused: -1, Grace: -1})
		require.NoError(t, err)
		_, err = plan.Execute(t.Context())
		require.NoError(t, err)
		repair, err := maintain.PlanIndexRepair(t.Context(), s.open(t, password), maintain.RepairOptions{})
		require.NoError(t, err)
		require.NoError(t, repair.Execute(t.Context()))
		s.bothFindItSound(t)
		s.weRestore(t, last, source)
	})
	return rows
}

// several makes three snapshots of a folder that changes, and returns the last.
func (s shared) several(t *testing.T, source string, backup func() repo.ID) (last repo.ID) {
	t.Helper()
	for i := range int64(3) {
		require.NoError(t, os.WriteFile(filepath.Join(source, "changing"), edgetree.Random(i, 700<<10), 0o600))
		last = backup()
	}
	return last
}

func (s shared) bothFindItSound(t *testing.T) {
	t.Helper()
	s.weCheck(t)
	s.Run("check", "--read-data")
}

// row is one line of the matrix.
type row struct {
	what string
	deep bool // it is left out of the short version
	try  func(t *testing.T, tool, repair string)
}

func TestInteroperabilityIsAsTheMatrixSays(t *testing.T) {
	rows := matrix()
	var table strings.Builder
	table.WriteString("| what |")
	for _, r := range resticTools {
		fmt.Fprintf(&table, " restic %s |", r.version)
	}
	table.WriteString("\n| --- |" + strings.Repeat(" --- |", len(resticTools)) + "\n")
	for _, row := range rows {
		table.WriteString("| " + row.what + " |" + strings.Repeat(" yes |", len(resticTools)) + "\n")
		for i, r := range resticTools {
			if (i > 0 || row.deep) && number(t, envEdges, 0) == 0 {
				break
			}
			t.Run(row.what+"/"+r.version, func(t *testing.T) {
				t.Parallel()
				row.try(t, r.tool, r.repair)
			})
		}
	}
	text, err := os.ReadFile("../../../docs/interoperability.md")
	require.NoError(t, err)
	_, matrix, found := strings.Cut(string(text), "<!-- the matrix, held by backup/internal/durability -->\n\n")
	require.True(t, found)
	matrix, _, _ = strings.Cut(matrix, "\n\n")
	if diff := cmp.Diff(table.String(), matrix+"\n"); diff != "" {
		t.Errorf("docs/interoperability.md (-want +got):\n%s", diff)
	}
}
