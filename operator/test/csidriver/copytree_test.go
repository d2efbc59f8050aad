package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// describe returns a line for each thing below dir that says all that a copy must keep.
func describe(t *testing.T, dir string) map[string]string {
	t.Helper()
	first, all := map[uint64]string{}, map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		require.NoError(t, err)
		rel, err := filepath.Rel(dir, path)
		require.NoError(t, err)
		var st unix.Stat_t
		require.NoError(t, unix.Lstat(path, &st))
		line := fmt.Sprintf("%o %d:%d %d.%09d", st.Mode, st.Uid, st.Gid, st.Mtim.Sec, st.Mtim.Nsec)
		if !d.IsDir() {
			line += fmt.Sprintf(" %d bytes, %d links", st.Size, st.Nlink)
			if other, again := first[st.Ino]; again {
				line += ", the same as " + other
			}
			first[st.Ino] = rel
		}
		if to, err := os.Readlink(path); err == nil {
			line += " to " + to
		}
		if st.Mode&unix.S_IFMT == unix.S_IFREG && st.Mode&0o400 != 0 {
			data, err := os.ReadFile(path)
			require.NoError(t, err)
			line += fmt.Sprintf(" %.20q", data)
		}
		value := make([]byte, 100)
		if n, err := unix.Lgetxattr(path, "user.note", value); err == nil {
			line += " note=" + string(value[:n])
		}
		all[rel] = line
		return nil
	}))
	return all
}

func TestCopyIsFaithful(t *testing.T) {
	top := t.TempDir()
	src, dst := filepath.Join(top, "src"), filepath.Join(top, "dst")
	require.NoError(t, os.MkdirAll(filepath.Join(src, "a", "b"), 0o755))
	write := func(name, text string, mode fs.FileMode) {
		require.NoError(t, os.WriteFile(filepath.Join(src, name), []byte(text), 0o600))
		require.NoError(t, os.Chmod(filepath.Join(src, name), mode))
	}
	write("a/plain", "text", 0o644)
	write("a/setuid", "x", 0o755|fs.ModeSetuid)
	write("empty", "", 0o400)
	write("a/b/two\nlines \xff", "odd name", 0o600)
	require.NoError(t, unix.Setxattr(filepath.Join(src, "a/plain"), "user.note", []byte("kept"), 0))
	require.NoError(t, os.Link(filepath.Join(src, "a/plain"), filepath.Join(src, "hard")))
	require.NoError(t, os.Symlink("../nowhere", filepath.Join(src, "a/soft")))
	require.NoError(t, unix.Mkfifo(filepath.Join(src, "pipe"), 0o620))
	require.NoError(t, unix.Mknod(filepath.Join(src, "socket"), unix.S_IFSOCK|0o600, 0))
	require.NoError(t, os.Chmod(filepath.Join(src, "a"), 0o750|fs.ModeSticky|fs.ModeSetgid))
	old := []unix.Timespec{{Sec: 1e9, Nsec: 7}, {Sec: 1e9, Nsec: 123456789}}
	for _, name := range []string{"a/soft", "a/plain", "a/b", "a", ""} {
		require.NoError(t, unix.UtimesNanoAt(unix.AT_FDCWD, filepath.Join(src, name), old, unix.AT_SYMLINK_NOFOLLOW))
	}
	before := describe(t, src)

	require.NoError(t, copyTree(src, dst))

	require.Empty(t, cmp.Diff(before, describe(t, dst)))
	require.Empty(t, cmp.Diff(before, describe(t, src)), "the source is as it was")
}

func TestHolesStayHoles(t *testing.T) {
	dir := t.TempDir()
	src, dst := filepath.Join(dir, "src"), filepath.Join(dir, "dst")
	require.NoError(t, os.Mkdir(src, 0o755))
	f, err := os.Create(filepath.Join(src, "f"))
	require.NoError(t, err)
	for _, at := range []int64{1 << 20, 64 << 20} {
		_, err = f.WriteAt([]byte("data"), at)
		require.NoError(t, err)
	}
	require.NoError(t, f.Truncate(128<<20))
	require.NoError(t, f.Close())

	require.NoError(t, copyTree(src, dst))

	want, err := os.ReadFile(filepath.Join(src, "f"))
	require.NoError(t, err)
	got, err := os.ReadFile(filepath.Join(dst, "f"))
	require.NoError(t, err)
	require.True(t, string(want) == string(got), "contents differ")
	var st unix.Stat_t
	require.NoError(t, unix.Stat(filepath.Join(dst, "f"), &st))
	require.Less(t, st.Blocks*512, int64(1<<20))
}

// As root this shows less: root may read everything.
func TestWhatItsOwnerMayNotReadIsCopiedWithItsModeAndRemovable(t *testing.T) {
	dir := t.TempDir()
	src, dst := filepath.Join(dir, "src"), filepath.Join(dir, "dst")
	closed := filepath.Join(src, "closed")
	require.NoError(t, os.MkdirAll(closed, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(closed, "secret"), []byte("x"), 0o600))
	require.NoError(t, os.Chmod(filepath.Join(closed, "secret"), 0))
	require.NoError(t, os.Chmod(closed, 0))
	t.Cleanup(func() { _ = copyBackend{}.Remove(src) })

	require.NoError(t, copyTree(src, dst))

	for _, top := range []string{src, dst} {
		info, err := os.Stat(filepath.Join(top, "closed"))
		require.NoError(t, err)
		require.Equal(t, fs.ModeDir, info.Mode(), "%s", top)
	}
	require.NoError(t, os.Chmod(filepath.Join(dst, "closed"), 0o700))
	info, err := os.Stat(filepath.Join(dst, "closed", "secret"))
	require.NoError(t, err)
	require.Zero(t, info.Mode().Perm())
	require.NoError(t, os.Chmod(filepath.Join(dst, "closed"), 0))
	require.NoError(t, copyBackend{}.Remove(dst))
	require.NoDirExists(t, dst)
}

func TestWhatVanishesWhileCopyingIsLeftOut(t *testing.T) {
	dir := t.TempDir()
	src := filepath.Join(dir, "src")
	require.NoError(t, os.Mkdir(src, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(src, "stays"), nil, 0o644))
	stop, done := make(chan struct{}), make(chan struct{})
	go func() { // makes and removes files all the time
		defer close(done)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				name := filepath.Join(src, fmt.Sprint(i%50))
				_ = os.WriteFile(name, []byte("x"), 0o644)
				_ = os.Remove(filepath.Join(src, fmt.Sprint((i+25)%50)))
			}
		}
	}()
	deadline := time.Now().Add(300 * time.Millisecond)
	for i := 0; time.Now().Before(deadline); i++ {
		dst := filepath.Join(dir, fmt.Sprint("dst", i))
		require.NoError(t, copyTree(src, dst))
		require.FileExists(t, filepath.Join(dst, "stays"))
	}
	close(stop)
	<-done
}
