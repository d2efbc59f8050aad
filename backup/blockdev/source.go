package blockdev

import (
	"errors"
	"io"
	"os"
	"time"

	"example.com/pvcbackup/backup/archiver"
	"golang.org/x/sys/unix"
)

// Source is a volume that is backed up. All methods may be called concurrently.
type Source interface {
	io.ReaderAt
	// Size is in bytes, and does not change.
	Size() int64
	// NextData returns where the next stretch of data at or after offset begins and ends; start is Size when there is
	// none. What lies between stretches reads as zeros. A source that cannot tell returns offset and Size.
	NextData(offset int64) (start, end int64, err error)
}

// Device is an open block device or image file. It is a Source.
type Device struct {
	file  *os.File
	size  int64
	image bool
	mtime time.Time
}

// Open opens a block device, or a regular file as the image of a volume, for reading. Symlinks are followed. Errors:
// SourceError for everything else, and archiver.UnreadableError.
func Open(path string) (*Device, error) {
	// Without O_NONBLOCK a FIFO would wait for its other end.
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, &archiver.UnreadableError{Paths: []string{err.Error()}, Count: 1, Err: err}
	}
	d, err := newDevice(f, path)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return d, nil
}

func newDevice(f *os.File, path string) (*Device, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	d := &Device{file: f, image: info.Mode().IsRegular(), mtime: info.ModTime()}
	if !d.image && !isBlockDevice(info) {
		return nil, &SourceError{Path: path, Problem: "give a block device or an image file"}
	}
	if d.size, err = f.Seek(0, io.SeekEnd); err != nil {
		return nil, err
	}
	if d.size == 0 {
		return nil, &SourceError{Path: path, Problem: "it has no content: see whether it is attached"}
	}
	return d, nil
}

// isBlockDevice tells block devices from all else.
func isBlockDevice(info os.FileInfo) bool {
	return info.Mode()&os.ModeDevice != 0 && info.Mode()&os.ModeCharDevice == 0
}

// IsBlockDevice reports whether there is a block device at path, also behind symlinks.
func IsBlockDevice(path string) (bool, error) {
	info, err := os.Stat(path)
	return err == nil && isBlockDevice(info), err
}

// Size is in bytes.
func (d *Device) Size() int64 { return d.size }

// ReadAt implements io.ReaderAt.
func (d *Device) ReadAt(p []byte, offset int64) (int, error) { return d.file.ReadAt(p, offset) }

// NextData implements Source. A device is all data, as is a file whose filesystem cannot tell.
func (d *Device) NextData(offset int64) (start, end int64, err error) {
	if !d.image {
		return offset, d.size, nil
	}
	start, end, err = nextData(int(d.file.Fd()), offset, d.size)
	return min(start, d.size), min(end, d.size), err
}

// nextData returns the next stretch of data of a file. size is the file's, and where the search ends.
func nextData(fd int, offset, size int64) (start, end int64, err error) {
	start, err = unix.Seek(fd, offset, unix.SEEK_DATA)
	switch {
	case errors.Is(err, unix.ENXIO):
		return size, size, nil
	case errors.Is(err, unix.EINVAL):
		return offset, size, nil
	case err != nil:
		return 0, 0, err
	}
	end, err = unix.Seek(fd, start, unix.SEEK_HOLE)
	if errors.Is(err, unix.ENXIO) { // it was cut off this moment
		return size, size, nil
	}
	return start, end, err
}

// Close closes the device.
func (d *Device) Close() error { return d.file.Close() }

// advise tells the kernel how the device is going to be read: from the beginning to the end, or here and there, where
// reading ahead would read what is not wanted.
func (d *Device) advise(whole bool) {
	advice := unix.FADV_RANDOM
	if whole {
		advice = unix.FADV_SEQUENTIAL
	}
	_ = unix.Fadvise(int(d.file.Fd()), 0, 0, advice) // advice
}

// changed reports whether an image was written to since it was opened.
func (d *Device) changed() bool {
	if !d.image {
		return false
	}
	info, err := d.file.Stat()
	return err != nil || info.Size() != d.size || !info.ModTime().Equal(d.mtime)
}
