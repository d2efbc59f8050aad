package blockdev

import (
	"bytes"
	"os"
	"testing"

	"example.com/pvcbackup/backup/internal/loopdev"
	"example.com/pvcbackup/backup/restorer"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestARealDeviceIsBackedUpAndRestored(t *testing.T) {
	d := mixed()
	d.data = d.data[:24*testChunk] // devices have whole sectors
	from, to := loopdev.New(t, d.Size()), loopdev.New(t, d.Size()+testChunk)
	from.Write(t, d.data, 0)
	source := openSource(t, from.Path)
	require.Equal(t, d.Size(), source.Size())
	r, _ := initRepository(t)
	done := run(t, r, source, options(0, ""))
	require.Equal(t, d.Size(), done.BytesRead, "a device has no holes")
	requireStored(t, r, done, d.data)

	old := noise(7, int(d.Size())+testChunk)
	to.Write(t, old, 0)
	_, err := RestoreToDevice(t.Context(), r, done.SnapshotID, to.Path, RestoreOptions{})
	require.ErrorIs(t, err, restorer.ErrNotEmpty)
	require.True(t, bytes.Equal(old, to.Data(t)), "a device that was refused was written to")

	before := allocated(t, to.File)
	got, err := RestoreToDevice(t.Context(), r, done.SnapshotID, to.Path, RestoreOptions{Overwrite: true})
	require.NoError(t, err)
	require.True(t, got.Verified)
	require.Equal(t, d.Size(), got.Written+got.Zeroed)
	require.Zero(t, got.Holes)
	require.True(t, bytes.Equal(d.data, to.Data(t)[:d.Size()]), "the device is not what was backed up")
	require.True(t, bytes.Equal(old[d.Size():], to.Data(t)[d.Size():]), "what is beyond the volume was not left alone")
	require.Less(t, allocated(t, to.File), before-9*testChunk, "zeros take space")
}

func TestOnAZeroedDeviceNoZerosAreWritten(t *testing.T) {
	r, _ := initRepository(t)
	d := mixed()
	done := run(t, r, d, options(0, ""))
	size := (d.Size() + 4095) / 4096 * 4096
	to := loopdev.New(t, size)
	got, err := RestoreToDevice(t.Context(), r, done.SnapshotID, to.Path, RestoreOptions{Zeroed: true})
	require.NoError(t, err)
	require.Zero(t, got.Zeroed)
	require.Equal(t, d.Size(), got.Written+got.Holes)
	require.True(t, bytes.Equal(d.data, to.Data(t)[:d.Size()]), "the device is not what was backed up")
	require.LessOrEqual(t, allocated(t, to.File), got.Written+64*kib)
}

func TestADeviceThatIsNotZeroedAsSaidIsFoundOut(t *testing.T) {
	r, _ := initRepository(t)
	d := mixed()
	done := run(t, r, d, options(0, ""))
	size := (d.Size() + 4095) / 4096 * 4096
	to := loopdev.New(t, size)
	to.Write(t, []byte("left over"), 5*testChunk+100)
	_, err := RestoreToDevice(t.Context(), r, done.SnapshotID, to.Path, RestoreOptions{Zeroed: true})
	require.ErrorIs(t, err, restorer.ErrMismatch)
	to.Write(t, []byte("left over"), 100)
	_, err = RestoreToDevice(t.Context(), r, done.SnapshotID, to.Path, RestoreOptions{Zeroed: true, Overwrite: true})
	require.ErrorIs(t, err, restorer.ErrNotEmpty)
}

func TestADeviceInUseOrTooSmallIsRefused(t *testing.T) {
	r, _ := initRepository(t)
	d := mixed()
	done := run(t, r, d, options(0, ""))
	to := loopdev.New(t, d.Size()/4096*4096)
	_, err := RestoreToDevice(t.Context(), r, done.SnapshotID, to.Path, RestoreOptions{Overwrite: true})
	require.ErrorIs(t, err, restorer.ErrNoSpace)

	held := loopdev.New(t, 64*mib)
	holder, err := os.OpenFile(held.Path, os.O_RDWR|unix.O_EXCL, 0)
	require.NoError(t, err)
	defer holder.Close()
	_, err = RestoreToDevice(t.Context(), r, done.SnapshotID, held.Path, RestoreOptions{Overwrite: true})
	require.ErrorIs(t, err, unix.EBUSY)
	var target *TargetError
	require.ErrorAs(t, err, &target)
	require.False(t, target.Terminal())
}

func TestZerosAreWrittenWhereADeviceKnowsNothingBetter(t *testing.T) {
	to := loopdev.New(t, 4*mib)
	to.Write(t, noise(1, 4*mib), 0)
	target, err := openDevice(to.Path, 4*mib, RestoreOptions{Overwrite: true})
	require.NoError(t, err)
	defer target.close()
	// Neither a hole nor a request to zero may begin or end within a sector.
	require.NoError(t, target.zero(100, 2*mib+77))
	require.NoError(t, target.flush())
	want := noise(1, 4*mib)
	clear(want[100 : 100+2*mib+77])
	require.True(t, bytes.Equal(want, to.Data(t)))
}

// TestTheDeviceIsAskedForTheTouchedChunksOnly counts at the device, where reading ahead would show.
func TestTheDeviceIsAskedForTheTouchedChunksOnly(t *testing.T) {
	const size = 64 * mib
	l := loopdev.New(t, size)
	for at := int64(0); at < size; at += 8 * mib {
		l.Write(t, noise(at, 64*kib), at)
	}
	r, _ := initRepository(t)
	o := options(0, "a")
	o.ChunkSize = mib
	run(t, r, openSource(t, l.Path), o)
	var ranges []Range
	for k := range int64(15) {
		at := k*4*mib + 12345
		l.Write(t, []byte("changed"), at)
		ranges = append(ranges, Range{at, 7})
	}
	l.DropCache(t)
	before := l.BytesRead(t)
	o = options(1, "b").since("a", size, ranges...)
	o.ChunkSize = mib
	got := run(t, r, openSource(t, l.Path), o)
	require.EqualValues(t, 15*mib, got.BytesRead)
	require.LessOrEqual(t, float64(l.BytesRead(t)-before), 1.02*15*mib)
	requireStored(t, r, got, l.Data(t))
}
