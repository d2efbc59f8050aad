package fsmeta

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.com/pvcbackup/backup/repo/tree"
	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func openDir(t *testing.T, path string) int {
	t.Helper()
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, unix.Close(fd)) })
	return fd
}

func TestNamesAreRawAndSorted(t *testing.T) {
	dir := t.TempDir()
	want := []string{".hidden", "B", "a", "\xff", "é"}
	for _, n := range want {
		require.NoError(t, os.WriteFile(filepath.Join(dir, n), nil, 0o600))
	}
	want = []string{".hidden", "B", "a", "é", "\xff"}
	fd := openDir(t, dir)
	for range 2 { // every listing begins at the beginning
		got, err := Names(fd)
		require.NoError(t, err)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
}

func TestANodeSaysWhatStatSays(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	require.NoError(t, os.WriteFile(path, []byte("four"), 0o600))
	require.NoError(t, os.Chmod(path, 0o640|fs.ModeSetuid|fs.ModeSticky))
	when := time.Date(2001, 2, 3, 4, 5, 6, 789, time.UTC)
	require.NoError(t, os.Chtimes(path, time.Now(), when))
	st, err := Lstat(openDir(t, dir), "f")
	require.NoError(t, err)
	got := Node("f", &st)
	want := &tree.Node{
		Name: "f", Type: tree.File, Mode: 0o640 | fs.ModeSetuid | fs.ModeSticky, ModTime: when, AccessTime: when,
		ChangeTime: got.ChangeTime, UID: uint32(os.Getuid()), GID: got.GID, Inode: st.Ino, Size: 4, Links: 1,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	require.Equal(t, uint32(0o5640), UnixMode(got.Mode))
}

func TestEveryTypeIsTold(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "dir"), 0o700))
	require.NoError(t, os.Symlink("dir", filepath.Join(dir, "symlink")))
	require.NoError(t, unix.Mkfifo(filepath.Join(dir, "fifo"), 0o600))
	require.NoError(t, unix.Mknod(filepath.Join(dir, "socket"), unix.S_IFSOCK|0o600, 0))
	fd := openDir(t, dir)
	for _, name := range []string{"dir", "symlink", "fifo", "socket"} {
		st, err := Lstat(fd, name)
		require.NoError(t, err)
		require.Equal(t, tree.Type(name), TypeOf(&st))
		info, err := os.Lstat(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Equal(t, info.Mode(), Mode(&st))
	}
	target, err := Readlink(fd, "symlink")
	require.NoError(t, err)
	require.Equal(t, "dir", target)
}

func TestALongLinkTargetIsReadWhole(t *testing.T) {
	dir := t.TempDir()
	want := strings.Repeat("x/", 2000)
	require.NoError(t, os.Symlink(want, filepath.Join(dir, "l")))
	got, err := Readlink(openDir(t, dir), "l")
	require.NoError(t, err)
	require.Equal(t, want, got)
}

func TestXattrsAreSortedAndNeverThoseOfALinksTarget(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	require.NoError(t, os.Symlink("f", filepath.Join(dir, "l")))
	want := []tree.Xattr{{Name: "user.a", Value: []byte{}}, {Name: "user.b", Value: []byte(strings.Repeat("v", 2000))}}
	for _, x := range []tree.Xattr{want[1], want[0]} {
		require.NoError(t, unix.Setxattr(path, x.Name, x.Value, 0))
	}
	got, err := Xattrs(openDir(t, dir), "f")
	require.NoError(t, err)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	got, err = FdXattrs(int(f.Fd()))
	require.NoError(t, err)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	got, err = Xattrs(openDir(t, dir), "l")
	require.NoError(t, err)
	require.Empty(t, got)
}

func TestASymlinkIsNeverOpened(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Symlink("/etc", filepath.Join(dir, "l")))
	_, err := OpenQuiet(openDir(t, dir), "l", 0)
	require.ErrorIs(t, err, unix.ELOOP)
}

func TestAFIFODoesNotBlock(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, unix.Mkfifo(filepath.Join(dir, "p"), 0o600))
	fd, err := OpenQuiet(openDir(t, dir), "p", 0)
	require.NoError(t, err)
	require.NoError(t, unix.Close(fd))
}
