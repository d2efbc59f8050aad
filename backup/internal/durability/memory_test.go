package durability

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/pvcbackup/backup/repo"
)

// envFiles says how many files are backed up.
const envFiles = "DURABILITY_FILES"

// maxResident is what the data tool may take in total, in KiB.
const maxResident = 256 << 10

func TestTheDataToolStaysWithinItsMemoryHoweverManyFilesThereAre(t *testing.T) {
	files := number(t, envFiles, 20_000)
	source, err := os.MkdirTemp("/dev/shm", "durability")
	if err != nil {
		source = t.TempDir()
	}
	defer os.RemoveAll(source)
	half := filepath.Join(source, "half")
	manyFiles(t, half, files/2)
	f := newFolder(t, repo.InitOptions{})
	first := f.resident(t, half, "/ns/half")
	manyFiles(t, filepath.Join(source, "more"), files-files/2)
	whole := f.resident(t, source, "/ns/whole")
	again := f.resident(t, source, "/ns/whole")
	t.Logf("resident: %d MiB with %d files, %d MiB with %d files, %d MiB when nothing has changed", first>>10, files/2, whole>>10, files, again>>10)
	require.LessOrEqual(t, max(first, whole, again), int64(maxResident))
	// What is needed for each file is in no proportion to the number of files, but for the index.
	if grown := (max(whole, again) - first) << 10; grown > int64(files/2)*512+24<<20 {
		t.Errorf("%d more files take %d bytes more", files/2, grown)
	}
	require.NoError(t, check(t, f.store))
}

// manyFiles makes files of a few bytes, all different, a thousand in each folder.
func manyFiles(t *testing.T, dir string, n int) {
	t.Helper()
	for i := range n {
		sub := filepath.Join(dir, fmt.Sprintf("%03d", i/1000%100), fmt.Sprintf("%03d", i/1000))
		if i%1000 == 0 {
			require.NoError(t, os.MkdirAll(sub, 0o755))
		}
		name := filepath.Join(sub, fmt.Sprintf("file%07d", i))
		if err := os.WriteFile(name, fmt.Appendf(nil, "%s %d", filepath.Base(dir), i), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// resident makes a backup in a process of its own, and returns how much of it was resident at the most, in KiB.
func (f *folder) resident(t *testing.T, source, path string) int64 {
	t.Helper()
	cmd := tool(f.env(password), "backup", source, "--host", "cluster", "--path", path)
	began := time.Now()
	require.NoError(t, cmd.Run(), "%s", cmd.Stdout)
	usage := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	t.Logf("%s: %.1f s, %d MiB", path, time.Since(began).Seconds(), usage.Maxrss>>10)
	return usage.Maxrss
}
