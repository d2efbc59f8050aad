package blockdev

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/pvcbackup/backup/archiver"
	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/backup/restorer"
	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// mixed is a volume with data, with zeros in every place, and with a short end.
func mixed() *disk {
	d := newDisk(1, 24*testChunk+1234)
	for _, zeros := range []Range{
		{0, testChunk}, {3 * testChunk, 9 * testChunk}, {14*testChunk + 5, 2 * testChunk}, {23 * testChunk, testChunk + 1234},
	} {
		clear(d.data[zeros.Offset:][:zeros.Length])
	}
	copy(d.data[20*testChunk:], d.data[18*testChunk:19*testChunk]) // a chunk that is there twice
	return d
}

func requireFile(t testing.TB, path string, want []byte) {
	t.Helper()
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.True(t, bytes.Equal(want, got), "%s is not what was backed up", path)
}

func allocated(t testing.TB, path string) int64 {
	t.Helper()
	var st unix.Stat_t
	require.NoError(t, unix.Stat(path, &st))
	return st.Blocks * 512
}

func TestAVolumeIsRestoredToASparseFile(t *testing.T) {
	r, _ := initRepository(t)
	d := mixed()
	done := run(t, r, d, options(0, ""))
	path := filepath.Join(t.TempDir(), "restored.img")
	var last Progress
	got, err := RestoreToFile(t.Context(), r, done.SnapshotID, path, RestoreOptions{Progress: func(p Progress) { last = p }})
	require.NoError(t, err)
	requireFile(t, path, d.data)
	want := &RestoreResult{
		SnapshotID: done.SnapshotID, Size: d.Size(), TargetSize: d.Size(), Written: got.Written, Holes: d.Size() - got.Written,
		Verified: true, Duration: got.Duration,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	require.Less(t, got.Written, d.Size()-11*testChunk)
	require.LessOrEqual(t, allocated(t, path), got.Written+64*kib)
	require.Equal(t, Progress{Bytes: 2 * uint64(d.Size()), TotalBytes: 2 * uint64(d.Size())}, last)
	require.NoFileExists(t, path+partial)
}

func TestAFileThatExistsIsReplacedOnlyIfAllowed(t *testing.T) {
	r, _ := initRepository(t)
	d := mixed()
	done := run(t, r, d, options(0, ""))
	path := filepath.Join(t.TempDir(), "restored.img")
	require.NoError(t, os.WriteFile(path, []byte("precious"), 0o600))
	_, err := RestoreToFile(t.Context(), r, done.SnapshotID, path, RestoreOptions{})
	require.ErrorIs(t, err, restorer.ErrNotEmpty)
	requireFile(t, path, []byte("precious"))
	_, err = RestoreToFile(t.Context(), r, done.SnapshotID, path, RestoreOptions{Overwrite: true})
	require.NoError(t, err)
	requireFile(t, path, d.data)
}

func TestWhatAnEarlierAttemptLeftIsOverwritten(t *testing.T) {
	r, _ := initRepository(t)
	d := mixed()
	done := run(t, r, d, options(0, ""))
	path := filepath.Join(t.TempDir(), "restored.img")
	require.NoError(t, os.WriteFile(path+partial, noise(9, 50*testChunk), 0o600))
	_, err := RestoreToFile(t.Context(), r, done.SnapshotID, path, RestoreOptions{})
	require.NoError(t, err)
	requireFile(t, path, d.data)
}

func TestTwoRestoresToOneFileDoNotMeet(t *testing.T) {
	r, _ := initRepository(t)
	done := run(t, r, mixed(), options(0, ""))
	path := filepath.Join(t.TempDir(), "restored.img")
	first, err := openFile(path, 100, RestoreOptions{})
	require.NoError(t, err)
	defer first.close()
	_, err = RestoreToFile(t.Context(), r, done.SnapshotID, path, RestoreOptions{})
	var target *TargetError
	require.ErrorAs(t, err, &target)
	require.False(t, target.Terminal())
}

func TestWhatIsNotAFileIsNotRestoredTo(t *testing.T) {
	r, _ := initRepository(t)
	done := run(t, r, mixed(), options(0, ""))
	dir := t.TempDir()
	link := filepath.Join(dir, "link")
	require.NoError(t, os.Symlink("elsewhere", link))
	blocked := filepath.Join(dir, "blocked")
	require.NoError(t, os.Symlink(filepath.Join(dir, "stolen"), blocked+partial))
	fifo := filepath.Join(dir, "fifo")
	require.NoError(t, unix.Mkfifo(fifo+partial, 0o600))
	for _, path := range []string{dir, link, blocked, fifo, filepath.Join(dir, "missing", "file")} {
		_, err := RestoreToFile(t.Context(), r, done.SnapshotID, path, RestoreOptions{Overwrite: true})
		require.Error(t, err, path)
	}
	require.NoFileExists(t, filepath.Join(dir, "stolen"))
	require.NoFileExists(t, filepath.Join(dir, "elsewhere"))
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, []byte("precious"), 0o600))
	_, err := RestoreToDevice(t.Context(), r, done.SnapshotID, file, RestoreOptions{Overwrite: true})
	var target *TargetError
	require.ErrorAs(t, err, &target)
	requireFile(t, file, []byte("precious"))
}

func TestAFailedRestoreLeavesNoFile(t *testing.T) {
	r, store := initRepository(t)
	done := run(t, r, mixed(), options(0, ""))
	for name, c := range map[string]struct {
		change func(key string, offset int64, data []byte) []byte
		want   error
	}{
		"damaged": {func(key string, _ int64, data []byte) []byte {
			if strings.HasPrefix(key, "data/") && len(data) > 100*kib {
				data[len(data)/2] ^= 1
			}
			return data
		}, repo.ErrDamaged},
		"cut short": {func(key string, _ int64, data []byte) []byte {
			if strings.HasPrefix(key, "data/") && len(data) > 100*kib {
				return data[:100]
			}
			return data
		}, repo.ErrDamaged},
	} {
		t.Run(name, func(t *testing.T) {
			again, err := repo.Open(t.Context(), store, password, nil)
			require.NoError(t, err)
			store.Change = c.change
			defer func() { store.Change = nil }()
			dir := t.TempDir()
			_, err = RestoreToFile(t.Context(), again, done.SnapshotID, filepath.Join(dir, "restored.img"), RestoreOptions{})
			require.ErrorIs(t, err, c.want)
			left, err := os.ReadDir(dir)
			require.NoError(t, err)
			require.Empty(t, left)
		})
	}
}

func TestACancelledRestoreLeavesNoFile(t *testing.T) {
	r, store := initRepository(t)
	done := run(t, r, mixed(), options(0, ""))
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("the lock was lost")
	store.Before = func(op, key string) error {
		if op == "get" && strings.HasPrefix(key, "data/") {
			cancel(stop)
		}
		return nil
	}
	dir := t.TempDir()
	_, err := RestoreToFile(ctx, r, done.SnapshotID, filepath.Join(dir, "restored.img"), RestoreOptions{})
	require.ErrorIs(t, err, stop)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestAWriteThatGotLostIsFoundWhenTheTargetIsReadAgain(t *testing.T) {
	r, _ := initRepository(t)
	d := mixed()
	done := run(t, r, d, options(0, ""))
	for name, at := range map[string]int64{"in data": 2*testChunk + 7, "in zeros": 5*testChunk + 7, "at the end": d.Size() - 1} {
		t.Run(name, func(t *testing.T) {
			rs := &restore{repo: r, o: RestoreOptions{}.withDefaults()}
			require.NoError(t, rs.find(t.Context(), done.SnapshotID))
			var err error
			rs.target, err = openFile(filepath.Join(t.TempDir(), "f"), d.Size(), rs.o)
			require.NoError(t, err)
			defer rs.target.close()
			for b := range rs.batches() {
				require.NoError(t, rs.write(t.Context(), b))
			}
			require.NoError(t, rs.verify(t.Context()))
			_, err = rs.target.file.WriteAt([]byte{d.data[at] ^ 1}, at)
			require.NoError(t, err)
			var mismatch *restorer.MismatchError
			require.ErrorAs(t, rs.verify(t.Context()), &mismatch)
		})
	}
}

func TestBatchesCoverTheVolumeOnce(t *testing.T) {
	r, _ := initRepository(t)
	d := newDisk(1, 180*testChunk+77)
	clear(d.data[20*testChunk : 40*testChunk])
	done := run(t, r, d, options(0, ""))
	rs := &restore{repo: r}
	require.NoError(t, rs.find(t.Context(), done.SnapshotID))
	next, offset := 0, int64(0)
	for b := range rs.batches() {
		require.Equal(t, next, b.from)
		require.Equal(t, offset, b.offset)
		data := int64(0)
		for c := range rs.chunksOf(b) {
			require.Equal(t, offset, c.offset)
			offset += c.size
			if !rs.zeros[c.id] {
				data += c.size
			}
		}
		require.LessOrEqual(t, data, int64(batchBytes))
		next = b.to
	}
	require.Equal(t, d.Size(), offset)
}

func TestAFileOfAFoldersSnapshotIsWrittenAsAnImage(t *testing.T) {
	folder := t.TempDir()
	data := mixed().data
	require.NoError(t, os.MkdirAll(filepath.Join(folder, "vm"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "vm", "disk.raw"), data, 0o600))
	r, _ := initRepository(t)
	done, err := archiver.Backup(t.Context(), r, folder, archiver.Options{Host: "cluster", Path: "/ns/claim"})
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "f")
	_, err = RestoreToFile(t.Context(), r, done.SnapshotID, path, RestoreOptions{Path: "vm/disk.raw"})
	require.NoError(t, err)
	requireFile(t, path, data)
	for _, wrong := range []string{"", "vm", "vm/missing"} {
		_, err = RestoreToFile(t.Context(), r, done.SnapshotID, path+"2", RestoreOptions{Path: wrong})
		require.ErrorIs(t, err, restorer.ErrNoPath, wrong)
	}
}

func TestTheDirectoryRestorerMakesAFileOfAVolume(t *testing.T) {
	r, _ := initRepository(t)
	d := mixed()
	done := run(t, r, d, options(0, ""))
	target := t.TempDir()
	_, err := restorer.Restore(t.Context(), r, done.SnapshotID, target, restorer.Options{})
	require.NoError(t, err)
	requireFile(t, filepath.Join(target, ImageName), d.data)
	require.Less(t, allocated(t, filepath.Join(target, ImageName)), d.Size()-10*testChunk)
}

func TestRunsOfZerosAreToldFromDataByWholeBlocks(t *testing.T) {
	z, x := make([]byte, holeBlock), bytes.Repeat([]byte{1}, holeBlock)
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	for name, c := range map[string]struct {
		data  []byte
		zeros bool
		n     int
	}{
		"zeros":           {join(z, z, x), true, 2 * holeBlock},
		"data":            {join(x, x, z), false, 2 * holeBlock},
		"only zeros":      {join(z, z[:5]), true, holeBlock + 5},
		"only data":       {x[:7], false, 7},
		"a bit at an end": {join(z[:holeBlock-1], x[:1], z), false, holeBlock},
	} {
		zeros, n := sameBlocks(c.data)
		require.Equal(t, c.zeros, zeros, name)
		require.Equal(t, c.n, n, name)
	}
}
