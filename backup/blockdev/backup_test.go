package blockdev

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"example.com/pvcbackup/backup/archiver"
	"example.com/pvcbackup/backup/repo"
	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestAVolumeIsOneFileInAlignedChunks(t *testing.T) {
	r, _ := initRepository(t)
	d := newDisk(1, 5*testChunk+1000)
	copy(d.data[2*testChunk:], make([]byte, testChunk))
	got := run(t, r, d, options(0, ""))
	require.EqualValues(t, len(d.data), d.read())
	require.EqualValues(t, len(d.data), got.BytesRead)
	requireStored(t, r, got, d.data)
	dir, image := nodes(t, r, got.Tree)
	require.Equal(t, "data", dir.Name)
	require.Equal(t, "volume.img", image.Name)
	for k, c := range image.Content {
		size, ok := r.BlobSize(repo.BlobHandle{Type: repo.DataBlob, ID: c})
		require.True(t, ok)
		require.EqualValues(t, geometry{size: d.Size(), chunk: testChunk}.length(k), size)
	}
}

func TestSnapshotsSayHowTheyWereMade(t *testing.T) {
	r, _ := initRepository(t)
	d := newDisk(1, 3*testChunk)
	o := options(0, "csi:a,b c%")
	o.Tags, o.Volume, o.ProgramVersion = []string{"pvc-uid=1"}, "driver/volume 1", "pvcbackup 1"
	first := run(t, r, d, o)
	d.write(0, []byte("changed"))
	o = options(1, "next").since("csi:a,b c%", d.Size(), Range{0, 7})
	o.Volume = "driver/volume 1"
	second := run(t, r, d, o)

	sn, err := r.LoadSnapshot(t.Context(), first.SnapshotID)
	require.NoError(t, err)
	info, ok := InfoOf(sn.Tags)
	require.True(t, ok)
	want := Info{ChunkSize: testChunk, Size: 3 * testChunk, Read: ReadFull, Handle: "csi:a,b c%", Volume: "driver/volume 1"}
	if diff := cmp.Diff(want, info); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	require.Contains(t, sn.Tags, "pvc-uid=1")
	require.Contains(t, sn.Tags, "chunker=fixed")

	sn, err = r.LoadSnapshot(t.Context(), second.SnapshotID)
	require.NoError(t, err)
	sn.Summary.BackupEnd = time.Time{}
	wantSn := &repo.Snapshot{
		Time: slot.Add(time.Hour), Parent: &first.SnapshotID, Tree: &second.Tree, Paths: []string{"/ns/claim"}, Hostname: "cluster",
		Tags: []string{
			"chunker=fixed", "block-chunk=262144", "block-size=786432", "block-read=changed", "block-runs=1", "block-handle=next",
			"block-volume=driver%2Fvolume+1",
		},
		Summary: &repo.SnapshotSummary{
			BackupStart: slot.Add(time.Hour), FilesChanged: 1, DirsChanged: 1, DataBlobs: 1, TreeBlobs: 2, DataAdded: second.Added,
			DataAddedPacked: second.AddedPacked, TotalFilesProcessed: 1, TotalBytesProcessed: 3 * testChunk,
		},
	}
	if diff := cmp.Diff(wantSn, sn); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestAnUnchangedVolumeHasAnUnchangedTreeAndAddsNothing(t *testing.T) {
	r, store := initRepository(t)
	d := newDisk(1, 3*testChunk+1)
	first := run(t, r, d, options(0, "a"))
	store.Before = func(op, key string) error {
		if op == "put" && !strings.HasPrefix(key, "snapshots/") {
			return fmt.Errorf("%s was written", key)
		}
		return nil
	}
	second := run(t, r, d, options(1, "b").since("a", d.Size()))
	want := &Result{
		SnapshotID: second.SnapshotID, Parent: first.SnapshotID, Tree: first.Tree, Size: d.Size(), ChunkSize: testChunk,
		Read: ReadChanged, Bytes: archiver.Counts{Unmodified: uint64(d.Size())}, SinceFull: 1, Mismatch: -1, Duration: second.Duration,
	}
	if diff := cmp.Diff(want, second); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	third := run(t, r, d, options(2, "c"))
	require.Equal(t, first.Tree, third.Tree, "also after a full read")
}

func TestAVolumeOfZerosNeverDisplacesAGoodSnapshot(t *testing.T) {
	r, _ := initRepository(t)
	full, empty := newDisk(1, 3*testChunk), &disk{data: make([]byte, 3*testChunk+5)}
	first := run(t, r, full, options(0, "a"))
	got := run(t, r, empty, options(1, "b"))
	require.True(t, got.Empty)
	sn, err := r.LoadSnapshot(t.Context(), got.SnapshotID)
	require.NoError(t, err)
	require.Contains(t, sn.Tags, archiver.TagEmpty)
	requireStored(t, r, got, empty.data)
	require.Equal(t, first.SnapshotID, run(t, r, full, options(2, "c")).Parent)
}

func TestAFolderAndAVolumeOfOnePathAreNoParentsOfEachOther(t *testing.T) {
	r, _ := initRepository(t)
	d := newDisk(1, testChunk)
	run(t, r, d, options(0, "a"))
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "f"), []byte("text"), 0o600))
	got, err := archiver.Backup(t.Context(), r, folder, archiver.Options{Host: "cluster", Path: "/ns/claim", Time: slot.Add(time.Hour)})
	require.NoError(t, err)
	require.True(t, got.Parent.IsZero())
	require.Equal(t, archiver.Gear, got.Chunker)
	again := run(t, r, d, options(2, "b").since("a", d.Size()))
	require.Equal(t, ReadChanged, again.Read)
}

// sparse makes an image with data at some offsets.
func sparse(t testing.TB, size int64, data []byte, offsets ...int64) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "image")
	f, err := os.Create(path)
	require.NoError(t, err)
	require.NoError(t, f.Truncate(size))
	for _, at := range offsets {
		_, err = f.WriteAt(data, at)
		require.NoError(t, err)
	}
	require.NoError(t, f.Close())
	return path
}

func openSource(t testing.TB, path string) *Device {
	t.Helper()
	d, err := Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d
}

// counted counts what is read of a source.
type counted struct {
	*Device
	bytes atomic.Int64
}

func (c *counted) ReadAt(p []byte, offset int64) (int, error) {
	c.bytes.Add(int64(len(p)))
	return c.Device.ReadAt(p, offset)
}

func TestHolesOfAnImageAreNotRead(t *testing.T) {
	const size = 8 << 30
	text := []byte("here and there")
	d := &counted{Device: openSource(t, sparse(t, size, text, 0, size/2+100, size-20))}
	r, _ := initRepository(t)
	o := options(0, "")
	o.ChunkSize = 0
	got := run(t, r, d, o)
	require.EqualValues(t, 3*mib, d.bytes.Load())
	require.EqualValues(t, 3*mib, got.BytesRead)
	require.Less(t, got.Added, uint64(6*mib)) // the chunks, one of zeros, and the list of all
	_, image := nodes(t, r, got.Tree)
	require.Len(t, image.Content, size/mib)
	for at, k := range map[int64]int{0: 0, size/2 + 100: size / 2 / mib, size - 20: size/mib - 1} {
		data, err := r.LoadBlob(t.Context(), repo.BlobHandle{Type: repo.DataBlob, ID: image.Content[k]}, nil)
		require.NoError(t, err)
		require.Equal(t, text, data[at%mib:][:len(text)])
	}
}

func TestAnImageThatIsWrittenToMeanwhileIsReported(t *testing.T) {
	path := sparse(t, 4*testChunk, noise(1, testChunk), 0, testChunk)
	r, store := initRepository(t)
	d := openSource(t, path)
	require.NoError(t, os.Chtimes(path, slot, slot))
	require.True(t, run(t, r, d, options(0, "")).SourceChanged)
	require.False(t, run(t, r, openSource(t, path), options(1, "")).SourceChanged)
	require.NotEmpty(t, store.Keys("snapshots/"))
}

func TestOnlyDevicesAndImagesWithContentAreVolumes(t *testing.T) {
	dir := t.TempDir()
	empty := filepath.Join(dir, "empty")
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	fifo := filepath.Join(dir, "fifo")
	require.NoError(t, unix.Mkfifo(fifo, 0o600))
	for _, path := range []string{dir, empty, fifo, "/dev/null"} {
		_, err := Open(path)
		var wrong *SourceError
		require.ErrorAs(t, err, &wrong, path)
		require.Equal(t, path, wrong.Path)
	}
	_, err := Open(filepath.Join(dir, "missing"))
	require.ErrorIs(t, err, os.ErrNotExist)
	var unreadable *archiver.UnreadableError
	require.ErrorAs(t, err, &unreadable)
}

func TestAVolumeThatCannotBeReadFailsTheRunAndNothingIsCommitted(t *testing.T) {
	for name, c := range map[string]struct{ fail, want error }{
		"bad sector": {unix.EIO, unix.EIO},
		"cut short":  {io.EOF, io.ErrUnexpectedEOF},
	} {
		t.Run(name, func(t *testing.T) {
			r, store := initRepository(t)
			d := newDisk(1, 4*testChunk)
			d.fail, d.failAt = c.fail, 2*testChunk+4096
			_, err := Backup(t.Context(), r, d, options(0, ""))
			var unreadable *archiver.UnreadableError
			require.ErrorAs(t, err, &unreadable)
			require.Contains(t, err.Error(), fmt.Sprint("at byte ", 2*testChunk+4096))
			require.ErrorIs(t, err, c.want)
			require.Empty(t, store.Keys("snapshots/"))
		})
	}
}

func TestARunCommitsOnce(t *testing.T) {
	r, store := initRepository(t)
	d := newDisk(1, 2*testChunk)
	o := options(0, "a")
	o.RunName = "uid-20260102T030405-backup"
	first := run(t, r, d, o)
	d.write(0, []byte("changed"))
	second := run(t, r, d, o)
	require.True(t, second.ReusedRun)
	require.Equal(t, first.SnapshotID, second.SnapshotID)
	require.Equal(t, first.Tree, second.Tree)
	require.Equal(t, first.Size, second.Size)
	require.Equal(t, ReadFull, second.Read)
	require.Len(t, store.Keys("snapshots/"), 1)
}

// TestNoLostWriteIsEverASuccess drops, and then fails, every single write of a run.
func TestNoLostWriteIsEverASuccess(t *testing.T) {
	d := newDisk(1, 20*testChunk)
	o := options(0, "a")
	o.RunName, o.PackSize, o.SampleBlobs = "run", 4*mib, 1
	r, store := initRepository(t)
	before := store.Count("put")
	run(t, r, d, o)
	writes := store.Count("put") - before
	require.Greater(t, writes, 4)
	for n := range writes {
		for _, way := range []string{"drop", "fail"} {
			t.Run(fmt.Sprintf("%s %d", way, n), func(t *testing.T) {
				r, store := initRepository(t)
				var puts atomic.Int64
				hit := func() bool { return puts.Add(1)-1 == int64(n) }
				if way == "drop" {
					store.Drop = func(string) bool { return hit() }
				} else {
					store.Before = func(op, _ string) error {
						if op == "put" && hit() {
							return errors.New("the store failed")
						}
						return nil
					}
				}
				_, err := Backup(t.Context(), r, d, o)
				require.Error(t, err)
			})
		}
	}
}

func TestACancelledRunEndsAndCommitsNothing(t *testing.T) {
	r, store := initRepository(t)
	stop := errors.New("the lock was lost")
	ctx, cancel := context.WithCancelCause(t.Context())
	store.Before = func(op, _ string) error {
		if op == "put" {
			cancel(stop)
		}
		return nil
	}
	_, err := Backup(ctx, r, newDisk(1, 100*testChunk), options(0, ""))
	require.ErrorIs(t, err, stop)
	require.Empty(t, store.Keys("snapshots/"))
}

func TestProgressEndsAtTheWholeVolume(t *testing.T) {
	r, _ := initRepository(t)
	d := newDisk(1, 9*testChunk+5)
	var last Progress
	o := options(0, "a")
	o.Progress = func(p Progress) { last = p }
	run(t, r, d, o)
	require.Equal(t, uint64(d.Size()), last.Bytes)
	require.Equal(t, uint64(d.Size()), last.TotalBytes)
	o = options(1, "b").since("a", d.Size(), Range{0, 1})
	o.Progress = func(p Progress) { last = p }
	run(t, r, d, o)
	require.Equal(t, uint64(d.Size()), last.Bytes)
}

func TestOptionsAreChecked(t *testing.T) {
	r, _ := initRepository(t)
	for name, change := range map[string]func(*Options){
		"no host":          func(o *Options) { o.Host = "" },
		"relative path":    func(o *Options) { o.Path = "claim" },
		"comma":            func(o *Options) { o.Tags = []string{"a,b"} },
		"volume tag":       func(o *Options) { o.Tags = []string{"block-handle=x"} },
		"empty tag":        func(o *Options) { o.Tags = []string{archiver.TagEmpty} },
		"two parents":      func(o *Options) { o.NoParent, o.Parent = true, repo.ID{1} },
		"long handle":      func(o *Options) { o.Handle = strings.Repeat("x", 1025) },
		"long volume":      func(o *Options) { o.Volume = strings.Repeat("x", 1025) },
		"odd chunks":       func(o *Options) { o.ChunkSize = 3 * minChunk },
		"small chunks":     func(o *Options) { o.ChunkSize = minChunk / 2 },
		"large chunks":     func(o *Options) { o.ChunkSize = 2 * maxChunk },
		"negative chunks":  func(o *Options) { o.ChunkSize = -minChunk },
		"sample":           func(o *Options) { o.SampleShare = 1.5 },
		"full every":       func(o *Options) { o.FullEvery = -1 },
		"too many chunks":  func(o *Options) { o.ChunkSize, o.Path = minChunk, "/huge" },
		"nothing to store": func(o *Options) { o.Path = "/nothing" },
	} {
		t.Run(name, func(t *testing.T) {
			o := options(0, "")
			change(&o)
			var d Source = newDisk(1, testChunk)
			switch o.Path {
			case "/huge":
				d = sized(minChunk*maxChunks + 1)
			case "/nothing":
				d = sized(0)
			}
			_, err := Backup(t.Context(), r, d, o)
			require.ErrorIs(t, err, ErrOption)
		})
	}
	o := options(0, "")
	o.Parent = repo.ID{1}
	_, err := Backup(t.Context(), r, newDisk(1, testChunk), o)
	require.ErrorIs(t, err, repo.ErrNotFound)
}

// sized is a volume that has nothing but a size.
type sized int64

func (s sized) Size() int64                                  { return int64(s) }
func (s sized) NextData(int64) (start, end int64, err error) { return int64(s), int64(s), nil }
func (s sized) ReadAt([]byte, int64) (int, error)            { return 0, unix.EIO }

func TestChunksAreOfOneMiBAndOfFourAbove256GiB(t *testing.T) {
	const tib = 1 << 40
	for _, c := range []struct {
		size  int64
		chunk int64
	}{
		{1, mib}, {256 * gib, mib}, {256*gib + 1, 4 * mib}, {tib, 4 * mib}, {16 * tib, 4 * mib}, {16*tib + 1, 8 * mib}, {128 * tib, 32 * mib},
	} {
		o := Options{}
		g, err := o.geometry(c.size)
		require.NoError(t, err)
		require.Equal(t, c.chunk, g.chunk, "%d bytes", c.size)
	}
	_, err := (&Options{}).geometry(128*tib + 1)
	require.ErrorIs(t, err, ErrOption)
}

func TestTheBudgetIsDividedSoThatTheListFits(t *testing.T) {
	const tib = 1 << 40
	for _, c := range []struct {
		size, budget int64
		apart        bool
	}{
		{gib, defaultBudget, false}, {100 * gib, defaultBudget, false}, {256 * gib, defaultBudget, true},
		{tib, defaultBudget, true}, {2 * tib, defaultBudget, true}, {tib, 128 * mib, true}, {gib, 64 * mib, false},
	} {
		o := Options{MemoryBudget: c.budget, ReadConcurrency: 64}
		g, err := o.geometry(c.size)
		require.NoError(t, err)
		d := o.divide(g)
		require.Equal(t, c.apart, d.apart, "%d bytes", c.size)
		list := int64(g.chunks()) * listCost
		storing := list + d.data
		if d.apart {
			storing = list + leastWriter
		}
		require.LessOrEqual(t, storing, c.budget, "%d bytes, while the list is stored", c.size)
		reading := d.data + int64(d.readers)*g.chunk + int64(g.chunks())*2*len32
		require.LessOrEqual(t, reading, c.budget, "%d bytes, while chunks are read", c.size)
		require.Greater(t, d.readers, 1)
		require.Greater(t, d.data, c.budget/2)
	}
}

func TestALongListIsStoredApartAndCommittedAllTheSame(t *testing.T) {
	r, store := initRepository(t)
	d := newDisk(1, 20*testChunk)
	o := options(0, "")
	o.MemoryBudget = 4 * 20 * listCost / 2
	got := run(t, r, d, o)
	require.Len(t, store.Keys("index/"), 2)
	requireStored(t, r, got, d.data)
	sn, err := r.LoadSnapshot(t.Context(), got.SnapshotID)
	require.NoError(t, err)
	require.EqualValues(t, 20, sn.Summary.DataBlobs)
	require.EqualValues(t, 2, sn.Summary.TreeBlobs)
	packed := uint64(0)
	for _, key := range store.Keys("data/") {
		packed += uint64(len(store.Bytes(key)))
	}
	require.Equal(t, packed, sn.Summary.DataAddedPacked)
}

func TestAHoleFinderThatMakesNoProgressIsAnError(t *testing.T) {
	r, _ := initRepository(t)
	_, err := Backup(t.Context(), r, stuck{newDisk(1, 3*testChunk)}, options(0, ""))
	var unreadable *archiver.UnreadableError
	require.ErrorAs(t, err, &unreadable)
}

type stuck struct{ *disk }

func (stuck) NextData(int64) (start, end int64, err error) { return 0, testChunk, nil }
