package treecmp

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"example.com/pvcbackup/backup/internal/edgetree"
	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestADirectoryEqualsItself(t *testing.T) {
	dir := t.TempDir()
	edgetree.Make(t, dir)
	got, err := Compare(dir, dir, Options{Owners: true, Holes: true})
	require.NoError(t, err)
	require.Empty(t, got)
}

// pair makes two directories with one equal file each.
func pair(t *testing.T) (a, b string) {
	t.Helper()
	when := time.Unix(1_000_000_000, 7)
	var dirs []string
	for range 2 {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "f"), []byte("content"), 0o644))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "g"), []byte("content"), 0o644))
		require.NoError(t, os.Symlink("f", filepath.Join(dir, "l")))
		ts := []unix.Timespec{unix.NsecToTimespec(when.UnixNano()), unix.NsecToTimespec(when.UnixNano())}
		for _, n := range []string{"f", "g", "l", "."} {
			require.NoError(t, unix.UtimesNanoAt(unix.AT_FDCWD, filepath.Join(dir, n), ts, unix.AT_SYMLINK_NOFOLLOW))
		}
		dirs = append(dirs, dir)
	}
	return dirs[0], dirs[1]
}

func TestEveryDifferenceIsFoundAndNamed(t *testing.T) {
	for field, test := range map[string]struct {
		path   string
		change func(dir string) error
	}{
		"mode":      {"f", func(dir string) error { return os.Chmod(dir+"/f", 0o600) }},
		"mtime":     {"f", func(dir string) error { return os.Chtimes(dir+"/f", time.Time{}, time.Unix(1_000_000_000, 8)) }},
		"size":      {"f", func(dir string) error { return os.Truncate(dir+"/f", 3) }},
		"content":   {"f", func(dir string) error { return os.WriteFile(dir+"/f", []byte("kontent"), 0o644) }},
		"xattrs":    {"f", func(dir string) error { return unix.Setxattr(dir+"/f", "user.x", nil, 0) }},
		"presence":  {"new", func(dir string) error { return os.WriteFile(dir+"/new", nil, 0o644) }},
		"hard link": {"g", func(dir string) error { return join(os.Remove(dir+"/g"), os.Link(dir+"/f", dir+"/g")) }},
		"target":    {"l", func(dir string) error { return join(os.Remove(dir+"/l"), os.Symlink("g", dir+"/l")) }},
		"type":      {"g", func(dir string) error { return join(os.Remove(dir+"/g"), os.Mkdir(dir+"/g", 0o755)) }},
	} {
		t.Run(field, func(t *testing.T) {
			a, b := pair(t)
			require.NoError(t, test.change(b))
			got, err := Compare(a, b, Options{})
			require.NoError(t, err)
			var fields []string
			for _, d := range got {
				if d.Path == test.path {
					fields = append(fields, d.Field)
				}
			}
			require.Contains(t, fields, field)
		})
	}
}

func join(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func TestOwnersAndHolesAreComparedOnlyWhenAsked(t *testing.T) {
	a, b := pair(t)
	for _, dir := range []string{a, b} {
		require.NoError(t, os.Truncate(dir+"/f", 0))
		require.NoError(t, os.Truncate(dir+"/f", 4<<20))
	}
	require.NoError(t, os.WriteFile(b+"/f", make([]byte, 4<<20), 0o644))
	for _, dir := range []string{a, b} {
		require.NoError(t, os.Chtimes(dir+"/f", time.Time{}, time.Unix(1, 0)))
	}
	got, err := Compare(a, b, Options{})
	require.NoError(t, err)
	require.Empty(t, got)
	got, err = Compare(a, b, Options{Holes: true})
	require.NoError(t, err)
	require.Len(t, got, 1)
	require.Equal(t, "space", got[0].Field)
	if os.Getuid() == 0 {
		require.NoError(t, os.Lchown(b+"/l", 1, 2))
		got, err = Compare(a, b, Options{Owners: true})
		require.NoError(t, err)
		if diff := cmp.Diff([]Difference{{Path: "l", Field: "owner", A: "0:0", B: "1:2"}}, got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
}

func TestSocketsAccessTimesAndAnEmptyLostAndFoundAreLeftOut(t *testing.T) {
	a, b := pair(t)
	require.NoError(t, unix.Mknod(b+"/socket", unix.S_IFSOCK|0o600, 0))
	require.NoError(t, os.Mkdir(b+"/lost+found", 0o700))
	require.NoError(t, os.Chtimes(b+"/f", time.Unix(5, 5), time.Time{}))
	got, err := Compare(a, b, Options{SkipRoot: true})
	require.NoError(t, err)
	require.Empty(t, got)
}

func TestTheNumberOfDifferencesIsBounded(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	edgetree.Make(t, a)
	got, err := Compare(a, b, Options{Max: 7})
	require.NoError(t, err)
	require.Len(t, got, 7)
}
