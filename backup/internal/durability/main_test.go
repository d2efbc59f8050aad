package durability

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"runtime/debug"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/pvcbackup/backup/cli"
	"example.com/pvcbackup/backup/contract"
	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/backup/repo/repotest"
	"example.com/pvcbackup/blobstore"
	"example.com/pvcbackup/blobstore/drivers/file"
)

// envTool makes the test program the data tool.
const envTool = "DURABILITY_TOOL"

const password = "correct horse"

func TestMain(m *testing.M) {
	if os.Getenv(envTool) != "" {
		os.Exit(cli.Run(context.Background(), os.Args[1:], cli.Options{
			Openers: file.Openers(), Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv, LimitMemory: limitMemory,
		}))
	}
	os.Exit(m.Run())
}

// limitMemory does what the data tool's own main package does.
func limitMemory(total int64) {
	debug.SetMemoryLimit(max(total-32<<20, total/2))
	debug.SetGCPercent(50)
}

// tool prepares a call of the data tool in a process of its own.
func tool(env map[string]string, args ...string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Env = append(os.Environ(), envTool+"=1")
	for name, value := range env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	return cmd
}

// folder is a repository in a folder, which every program can open.
type folder struct {
	dir   string
	store *blobstore.Store
}

func newFolder(t testing.TB, o repo.InitOptions) *folder {
	t.Helper()
	f := &folder{dir: t.TempDir()}
	f.connect(t)
	o.Scrypt = repo.ScryptParams(repotest.Cheap)
	_, err := repo.Init(t.Context(), f.store, password, &o)
	require.NoError(t, err)
	return f
}

func (f *folder) connect(t testing.TB) {
	t.Helper()
	store, err := blobstore.Open(t.Context(), f.url(), &blobstore.Options{Openers: file.Openers()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	f.store = store
}

func (f *folder) url() string { return "file://" + f.dir }

func (f *folder) open(t testing.TB, password string) *repo.Repository {
	t.Helper()
	r, err := repo.Open(t.Context(), f.store, password, nil)
	require.NoError(t, err)
	return r
}

func (f *folder) env(password string) map[string]string {
	return map[string]string{contract.EnvRepository: f.url(), contract.EnvPassword: password}
}

// number reads how much of something is wanted.
func number(t testing.TB, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	require.NoError(t, err, "%s is %q", name, text)
	return n
}
