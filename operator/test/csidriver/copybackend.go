package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
)

// copyBackend makes volumes of plain directories, and snapshots by copying them.
type copyBackend struct{}

func (copyBackend) Supports(c *csi.VolumeCapability) error {
	if c.GetMount() == nil {
		return errors.New("volumes are directories: the access type must be mount (volumeMode Filesystem)")
	}
	if c.GetAccessMode().GetMode() == csi.VolumeCapability_AccessMode_UNKNOWN {
		return errors.New("access_mode is unknown")
	}
	return nil
}

// Create lets everybody write into the volume, as other drivers for testing do: what keeps others out is the
// store's root directory.
func (copyBackend) Create(dir string) error {
	return errors.Join(os.Mkdir(dir, 0o777), os.Chmod(dir, 0o777))
}

func (copyBackend) Clone(src, dst string) error { return copyTree(src, dst) }

func (copyBackend) Remove(dir string) error {
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		return os.Chmod(path, 0o700) // before it is read: the user may have taken all rights away
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.RemoveAll(dir)
}

func (copyBackend) Publish(dir, target string, _ bool) error {
	if there, err := os.Readlink(target); err == nil {
		if there == dir {
			return nil
		}
		return fmt.Errorf("target %s already leads to %s", target, there)
	}
	if err := unix.Rmdir(target); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing what is at target %s: %w", target, err)
	}
	return os.Symlink(dir, target)
}

func (copyBackend) Unpublish(target string) error {
	info, err := os.Lstat(target)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode()&fs.ModeSymlink == 0 {
		return unix.Rmdir(target) // an empty directory somebody made beforehand; never more than that
	}
	return os.Remove(target)
}
