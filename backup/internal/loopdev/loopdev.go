// Package loopdev attaches real block devices for tests.
//
//	device := loopdev.New(t, 64<<20)
//	// device.Path is /dev/loopN; its blocks are in the file device.File
//
// A device goes with the test that made it, also when that is killed. It needs root: without, the test is skipped, and
// says so. For root a machine without loop devices fails the test. It touches no device that exists.
package loopdev

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Device is a block device.
type Device struct {
	// Path is the device's.
	Path string
	// File has its blocks. What was never written, or given back, is a hole.
	File string
}

// New attaches a device of this size in bytes, a multiple of 512, that reads as zeros.
func New(tb testing.TB, size int64) Device {
	tb.Helper()
	if os.Getuid() != 0 {
		tb.Skip("NOT TESTED: only root can attach block devices")
	}
	d := Device{File: filepath.Join(tb.TempDir(), "blocks")}
	backing, err := os.OpenFile(d.File, os.O_RDWR|os.O_CREATE, 0o600)
	require.NoError(tb, err)
	defer backing.Close()
	require.NoError(tb, backing.Truncate(size))
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	require.NoError(tb, err, "there are no loop devices: load the module loop, or give the container /dev/loop*")
	defer control.Close()
	for {
		number, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		require.NoError(tb, err)
		d.Path = fmt.Sprint("/dev/loop", number)
		device, err := os.OpenFile(d.Path, os.O_RDWR, 0)
		require.NoError(tb, err)
		err = unix.IoctlLoopConfigure(int(device.Fd()), &unix.LoopConfig{
			Fd: uint32(backing.Fd()), Info: unix.LoopInfo64{Flags: unix.LO_FLAGS_AUTOCLEAR},
		})
		if errors.Is(err, unix.EBUSY) { // somebody else took it this moment
			require.NoError(tb, device.Close())
			continue
		}
		require.NoError(tb, err)
		tb.Cleanup(func() { require.NoError(tb, device.Close()) }) // its last user
		return d
	}
}

// Write changes the device.
func (d Device) Write(tb testing.TB, data []byte, offset int64) {
	tb.Helper()
	f, err := os.OpenFile(d.Path, os.O_WRONLY, 0)
	require.NoError(tb, err)
	_, err = f.WriteAt(data, offset)
	require.NoError(tb, err)
	require.NoError(tb, f.Sync())
	require.NoError(tb, f.Close())
}

// Data is all of the device's content.
func (d Device) Data(tb testing.TB) []byte {
	tb.Helper()
	data, err := os.ReadFile(d.Path)
	require.NoError(tb, err)
	return data
}

// DropCache has the next read ask the device.
func (d Device) DropCache(tb testing.TB) {
	tb.Helper()
	f, err := os.OpenFile(d.Path, os.O_RDONLY, 0)
	require.NoError(tb, err)
	defer f.Close()
	require.NoError(tb, unix.IoctlSetInt(int(f.Fd()), unix.BLKFLSBUF, 0))
}

// BytesRead is what the device has been asked for so far, as the kernel counts it.
func (d Device) BytesRead(tb testing.TB) int64 {
	tb.Helper()
	text, err := os.ReadFile(filepath.Join("/sys/block", filepath.Base(d.Path), "stat"))
	require.NoError(tb, err)
	sectors, err := strconv.ParseInt(strings.Fields(string(text))[2], 10, 64)
	require.NoError(tb, err)
	return 512 * sectors
}
