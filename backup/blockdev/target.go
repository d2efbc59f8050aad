package blockdev

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"unsafe"

	"example.com/pvcbackup/backup/internal/chunker"
	"example.com/pvcbackup/backup/restorer"
	"golang.org/x/sys/unix"
)

const (
	// looksAt is how much of the beginning and the end of a device is looked at: there, filesystems and partition tables
	// have what they are recognised by.
	looksAt = mib
	// holeBlock is the least that is left out in a chunk with content.
	holeBlock = 64 * kib
	// partial is the end of a file's name until it is complete.
	partial = ".partial"
	// another is what to do about a target that is taken.
	another = "use another one, or allow to overwrite it"
)

// target is what is restored to.
type target struct {
	file *os.File
	path string // for people
	size int64
	// clean says that it reads as zeros where nothing was written.
	clean bool
	// rename is the name that a file gets in the end; replace says that another may have it.
	rename  string
	replace bool

	written, zeroed, holes atomic.Int64
}

// openDevice opens a block device, exclusively: the kernel refuses one that is mounted, or part of something that is.
func openDevice(path string, size int64, o RestoreOptions) (*target, error) {
	is, err := IsBlockDevice(path)
	if err != nil {
		return nil, err
	}
	if !is {
		return nil, &TargetError{Path: path, Problem: "it is not a block device: restore to a file instead"}
	}
	f, err := os.OpenFile(path, os.O_RDWR|unix.O_EXCL|unix.O_NONBLOCK, 0)
	if errors.Is(err, unix.EBUSY) {
		return nil, &TargetError{Path: path, Problem: "it is mounted, or another program holds it: let go of it", Err: err}
	}
	if err != nil {
		return nil, err
	}
	t := &target{file: f, path: path, clean: o.Zeroed}
	if err := t.checkDevice(size, o); err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}

func (t *target) checkDevice(size int64, o RestoreOptions) error {
	info, err := t.file.Stat()
	if err != nil {
		return err
	}
	if !isBlockDevice(info) {
		return &TargetError{Path: t.path, Problem: "it is not a block device any more"}
	}
	if t.size, err = t.file.Seek(0, io.SeekEnd); err != nil {
		return err
	}
	if t.size < size {
		problem := fmt.Sprintf("it has %d bytes, and the volume %d: use a larger one", t.size, size)
		return &TargetError{Path: t.path, Problem: problem, Err: restorer.ErrNoSpace}
	}
	if o.Overwrite && !o.Zeroed {
		return nil
	}
	buf := make([]byte, min(looksAt, t.size))
	for _, at := range []int64{0, t.size - int64(len(buf))} {
		if err := t.read(buf, at); err != nil {
			return err
		}
		if !chunker.AllZero(buf) {
			problem := "there is something on it already: " + another
			if o.Zeroed {
				problem = "it is said to be zeroed, and is not"
			}
			return &TargetError{Path: t.path, Problem: problem, Err: restorer.ErrNotEmpty}
		}
	}
	return nil
}

// openFile makes a file beside the one that is wanted.
func openFile(path string, size int64, o RestoreOptions) (*target, error) {
	switch info, err := os.Lstat(path); {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, &TargetError{Path: path, Problem: "it is not a file: name a file, or restore to a device"}
	case !o.Overwrite:
		return nil, &TargetError{Path: path, Problem: "it exists: " + another, Err: restorer.ErrNotEmpty}
	}
	f, err := os.OpenFile(path+partial, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, err
	}
	t := &target{file: f, path: path, size: size, clean: true, replace: o.Overwrite}
	if err := t.empty(size); err != nil {
		t.close()
		return nil, err
	}
	t.rename = path
	return t, nil
}

// empty makes the file one hole. What is in it is left of an earlier attempt that died.
func (t *target) empty(size int64) error {
	info, err := t.file.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return &TargetError{Path: t.path + partial, Problem: "it is in the way, and is not a file: remove it"}
	}
	if err := unix.Flock(int(t.file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return &TargetError{Path: t.path, Problem: "another restore is writing to it: wait for that one", Err: err}
	}
	if err := t.file.Truncate(0); err != nil {
		return t.failed(err)
	}
	return t.failed(t.file.Truncate(size))
}

// close gives up what was not finished.
func (t *target) close() {
	if t.rename != "" {
		_ = os.Remove(t.file.Name()) // what stays is overwritten by the next attempt
	}
	_ = t.file.Close() // nothing was promised
}

// flush has everything on the medium, and nothing in memory, so that it is read from there.
func (t *target) flush() error {
	if err := t.file.Sync(); err != nil {
		return t.failed(err)
	}
	_ = unix.Fadvise(int(t.file.Fd()), 0, 0, unix.FADV_DONTNEED) // advice
	return nil
}

// finish gives a file its name.
func (t *target) finish() error {
	if t.rename == "" {
		return nil
	}
	if err := t.giveName(); err != nil {
		return err
	}
	t.rename = ""
	dir, err := os.Open(filepath.Dir(t.path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// giveName never takes a name from a file that appeared meanwhile, unless it may.
func (t *target) giveName() error {
	if t.replace {
		return os.Rename(t.file.Name(), t.rename)
	}
	err := unix.Renameat2(unix.AT_FDCWD, t.file.Name(), unix.AT_FDCWD, t.rename, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) { // not every filesystem knows that
		if err = os.Link(t.file.Name(), t.rename); err == nil {
			err = os.Remove(t.file.Name())
		}
	}
	if errors.Is(err, os.ErrExist) {
		return &TargetError{Path: t.path, Problem: "it appeared meanwhile: " + another, Err: restorer.ErrNotEmpty}
	}
	return err
}

func (t *target) read(p []byte, offset int64) error {
	n, err := t.file.ReadAt(p, offset)
	if n == len(p) {
		return nil
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("read %s at byte %d: %w", t.path, offset+int64(n), err)
}

// write puts a chunk in its place. Where the target is clean, what is zero for long is left out.
func (t *target) write(data []byte, offset int64) error {
	for len(data) > 0 {
		zeros, n := false, len(data)
		if t.clean {
			zeros, n = sameBlocks(data)
		}
		if zeros {
			t.holes.Add(int64(n))
		} else {
			if _, err := t.file.WriteAt(data[:n], offset); err != nil {
				return t.failed(err)
			}
			t.written.Add(int64(n))
		}
		data, offset = data[n:], offset+int64(n)
	}
	return nil
}

// sameBlocks returns how many blocks at the beginning of data are zeros, or are not, in bytes.
func sameBlocks(data []byte) (zeros bool, n int) {
	isZero := func(at int) bool { return chunker.AllZero(data[at:min(at+holeBlock, len(data))]) }
	zeros = isZero(0)
	for n = holeBlock; n < len(data) && isZero(n) == zeros; n += holeBlock {
	}
	return zeros, min(n, len(data))
}

// zero makes a stretch read as zeros, and gives back the space that it takes, if the target can do that.
func (t *target) zero(offset, length int64) error {
	if t.clean {
		t.holes.Add(length)
		return nil
	}
	t.zeroed.Add(length)
	fd := int(t.file.Fd())
	if unix.Fallocate(fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, offset, length) == nil {
		return nil
	}
	if zeroOut(fd, offset, length) == nil {
		return nil
	}
	// Neither is known to every device, nor for lengths that are no multiple of its sectors. A device that is at fault
	// refuses to be written to, too.
	zeros := make([]byte, min(length, mib))
	for length > 0 {
		n, err := t.file.WriteAt(zeros[:min(length, mib)], offset)
		if err != nil {
			return t.failed(err)
		}
		offset, length = offset+int64(n), length-int64(n)
	}
	return nil
}

// zeroOut asks a device to zero a stretch, which it may do without moving any data.
func zeroOut(fd int, offset, length int64) error {
	stretch := [2]uint64{uint64(offset), uint64(length)} // as BLKZEROOUT takes it, see linux/fs.h
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.BLKZEROOUT, uintptr(unsafe.Pointer(&stretch)))
	if errno != 0 {
		return errno
	}
	return nil
}

// isHole reports whether a stretch is known to be a hole.
func (t *target) isHole(offset, length int64) bool {
	if t.rename == "" {
		return false // a device
	}
	start, _, err := nextData(int(t.file.Fd()), offset, t.size)
	return err == nil && start >= offset+length
}

// failed gives a full target its type.
func (t *target) failed(err error) error {
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) || errors.Is(err, unix.EFBIG) {
		return &restorer.SpaceError{Path: t.path, Err: err}
	}
	return err
}
