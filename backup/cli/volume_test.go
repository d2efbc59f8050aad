package cli

import (
	"bytes"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/pvcbackup/backup/contract"
	"example.com/pvcbackup/backup/internal/edgetree"
	"example.com/pvcbackup/backup/internal/loopdev"
)

// image writes a file with data and holes.
func (s *shell) image(name string, size int64, offsets ...int64) {
	s.t.Helper()
	f, err := os.OpenFile(s.dir+"/"+name, os.O_CREATE|os.O_WRONLY, 0o600)
	require.NoError(s.t, err)
	defer f.Close()
	require.NoError(s.t, f.Truncate(size))
	for _, at := range offsets {
		_, err := f.WriteAt([]byte("data"), at)
		require.NoError(s.t, err)
	}
}

func TestWhatIsPrintedAboutVolumes(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.image("disk", 20<<20, 0, 7<<20)
	s.image("zeros", 5<<20)
	changed := func(lines string) {
		require.NoError(t, os.WriteFile(s.dir+"/changed", []byte(lines), 0o600))
	}
	s.do("init")
	s.do("backup", "$DIR/disk", "--host", "h", "--path", "/ns/disk")
	s.do("backup", "$DIR/disk", "--image", "--host", "h", "--path", "/ns/disk", "--handle", "monday")
	s.now = s.now.Add(time.Hour)
	s.image("disk", 20<<20, 9<<20)
	changed("{\"kind\": \"delta\", \"base\": \"monday\", \"size\": 20971520}\n{\"offset\": 9437184, \"length\": 4}\n")
	s.do("backup", "$DIR/disk", "--image", "--host", "h", "--path", "/ns/disk", "--handle", "tuesday", "--changed", "$DIR/changed")
	s.now = s.now.Add(time.Hour)
	s.do("backup", "$DIR/disk", "--image", "--host", "h", "--path", "/ns/disk", "--changed", "$DIR/changed")
	s.do("backup", "$DIR/disk", "--image", "--host", "h", "--path", "/ns/disk", "--changed", "$DIR/changed", "--json")
	s.do("backup", "$DIR/zeros", "--image", "--host", "h", "--path", "/ns/zeros")
	changed("nonsense")
	s.do("backup", "$DIR/disk", "--image", "--changed", "$DIR/changed")
	s.do("backup", "$DIR/disk", "--image", "--changed", "$DIR/missing")
	s.do("backup", "$DIR/disk", "--image", "--exclude", "x")
	s.do("backup", "$DIR/data", "--image")
	s.do("backup", "$DIR/data", "--handle", "x")
	s.do("backup", "$DIR/missing", "--image")
	s.do("backup", "/dev/null", "--image")
	s.do("restore", "latest", "--host", "h", "--path-filter", "/ns/disk", "--to-image", "$DIR/restored")
	s.do("restore", "latest", "--host", "h", "--path-filter", "/ns/disk", "--to-image", "$DIR/restored")
	s.do("restore", "latest", "--host", "h", "--path-filter", "/ns/disk", "--to-image", "$DIR/restored", "--overwrite", "always", "--json")
	s.do("restore", "latest", "--host", "h", "--path-filter", "/ns/disk", "--to-device", "$DIR/restored", "--overwrite", "always")
	s.do("restore", "latest", "--host", "h", "--path-filter", "/ns/disk", "--to-image", "$DIR/other", "--to-device", "/dev/null")
	s.do("restore", "latest", "--to-image", "$DIR/other", "--overwrite", "never")
	s.do("restore", "latest", "--to-image", "$DIR/other", "--zeroed")
	s.do("restore", "latest", "--to-image", "$DIR/other", "--dry-run")
	s.do("restore", "latest", "--zeroed")
	s.do("ls", "latest", "--host", "h", "--path-filter", "/ns/disk")
	s.compare("volume")
	want, err := os.ReadFile(s.dir + "/disk")
	require.NoError(t, err)
	got, err := os.ReadFile(s.dir + "/restored")
	require.NoError(t, err)
	require.True(t, bytes.Equal(want, got), "the restored image differs")
}

func TestABlockDeviceIsRecognised(t *testing.T) {
	t.Parallel()
	from, to := loopdev.New(t, 8<<20), loopdev.New(t, 9<<20)
	from.Write(t, edgetree.Random(1, 3<<20), 0)
	s := newShell(t)
	do := func(want int, args ...string) {
		var out bytes.Buffer
		require.Equal(t, want, s.run(t.Context(), &out, &out, args...), "%s", &out)
	}
	do(contract.ExitOK, "init")
	do(contract.ExitOK, "backup", from.Path, "--host", "h", "--path", "/ns/disk")
	do(contract.ExitOK, "restore", "latest", "--to-device", to.Path)
	require.True(t, bytes.Equal(from.Data(t), to.Data(t)[:8<<20]), "the restored device differs")
	do(contract.ExitFailed, "restore", "latest", "--to-device", to.Path)
	do(contract.ExitOK, "restore", "latest", "--to-device", to.Path, "--overwrite", "always")
	do(contract.ExitUsage, "backup", from.Path, "--image")
	do(contract.ExitUsage, "backup", from.Path, "--chunker", "rabin")
}
