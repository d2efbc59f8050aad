package restorer_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"example.com/pvcbackup/backup/archiver"
	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/backup/repo/repotest"
	"example.com/pvcbackup/backup/restorer"
	"example.com/pvcbackup/backup/restorer/treecmp"
	"example.com/pvcbackup/blobstore"
	"example.com/pvcbackup/blobstore/drivers/file"
	"github.com/stretchr/testify/require"
)

const password = "correct horse"

// repository is one in a local folder, as both programs see it.
type repository struct {
	*repo.Repository
	dir string
}

func initRepository(t testing.TB) *repository {
	t.Helper()
	dir := t.TempDir()
	store, err := blobstore.Open(t.Context(), "file://"+dir, &blobstore.Options{Openers: file.Openers()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	r, err := repo.Init(t.Context(), store, password, &repo.InitOptions{KeyOptions: repo.KeyOptions{Scrypt: repo.ScryptParams(repotest.Cheap)}})
	require.NoError(t, err)
	return &repository{Repository: r, dir: dir}
}

func memoryRepository(t testing.TB) (*repo.Repository, *repotest.Memory) {
	t.Helper()
	store := repotest.NewMemory()
	r, err := repo.Init(t.Context(), store, password, &repo.InitOptions{KeyOptions: repo.KeyOptions{Scrypt: repo.ScryptParams(repotest.Cheap)}})
	require.NoError(t, err)
	return r, store
}

func backup(t testing.TB, r *repo.Repository, source string, change ...func(*archiver.Options)) *archiver.Result {
	t.Helper()
	o := archiver.Options{Host: "cluster", Path: "/ns/claim"}
	for _, f := range change {
		f(&o)
	}
	result, err := archiver.Backup(t.Context(), r, source, o)
	require.NoError(t, err)
	return result
}

func restore(t testing.TB, r *repo.Repository, id repo.ID, target string, o restorer.Options) *restorer.Result {
	t.Helper()
	result, err := restorer.Restore(t.Context(), r, id, target, o)
	require.NoError(t, err)
	return result
}

func requireEqual(t testing.TB, a, b string, o treecmp.Options) {
	t.Helper()
	o.Owners = o.Owners || os.Getuid() == 0
	differences, err := treecmp.Compare(a, b, o)
	require.NoError(t, err)
	for _, d := range differences {
		t.Error(d)
	}
}

// restic runs the stock program, which must be there.
func (r *repository) restic(t testing.TB, dir string, args ...string) string {
	t.Helper()
	tools := os.Getenv("PVCBACKUP_TOOLS")
	if tools == "" {
		_, here, _, _ := runtime.Caller(0)
		tools = filepath.Join(filepath.Dir(here), "..", "..", ".cache", "tools")
	}
	program := filepath.Join(tools, "restic")
	require.FileExists(t, program, "restic is needed to test against: make tools, or set PVCBACKUP_TOOLS")
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "RESTIC_REPOSITORY="+r.dir, "RESTIC_PASSWORD="+password, "RESTIC_CACHE_DIR="+t.TempDir(), "TZ=America/New_York")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, "restic %v: %s%s", args, out, stderr.Bytes())
	return string(out)
}

func write(t testing.TB, path, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
}

func read(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(b)
}
