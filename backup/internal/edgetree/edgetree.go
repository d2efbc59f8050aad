// Package edgetree makes a directory with everything in it that backups get wrong.
//
// # What it does
//
// Make fills a directory with odd names, modes, times, links, holes, attributes and special files. As root it adds
// owners and devices.
//
// # Minimal use
//
//	edgetree.Make(t, t.TempDir())
//
// # Guarantees
//
// The same directory is made every time, but for inode numbers and change times.
//
// # What it never does
//
// It is for tests, and fails the test when the filesystem cannot hold what it makes.
package edgetree

import (
	"bytes"
	"fmt"
	"io/fs"
	"math/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// Random returns n bytes that depend on the seed only.
func Random(seed int64, n int) []byte {
	b := make([]byte, n)
	rand.New(rand.NewSource(seed)).Read(b)
	return b
}

// Names are legal names of files that some program is bound to stumble over.
var Names = []string{
	"plain", "with space", " leading", "trailing ", "new\nline", "tab\t", "back\\slash", "quote\"", "'single'", "html<&>tag",
	"\xff\xfe-not-utf8", "half\xc3", "é", "e\u0301", "nbsp\u00a0", "line\u2028", "joiner\u200d", "\U0001f600", "\x01\x02\x7f",
	"-rf", "--", "*", "?", "[a]", "...", ".hidden", "~", "$HOME", "`id`", "%s%n", "CON", "con", strings.Repeat("x", 255), "\ufffd",
}

// Make fills dir, which must be empty.
func Make(t testing.TB, dir string) {
	t.Helper()
	m := maker{t: t, dir: dir}
	for i, n := range Names {
		m.file(filepath.Join("names", n), []byte(fmt.Sprint(i)), 0o644)
	}
	m.contents()
	m.modes()
	m.links()
	m.attributes()
	m.specials()
	m.deep()
	m.times()
}

type maker struct {
	t   testing.TB
	dir string
}

func (m *maker) path(rel string) string { return m.dir + "/" + rel }

func (m *maker) mkdir(rel string) {
	require.NoError(m.t, os.MkdirAll(m.path(rel), 0o755))
}

func (m *maker) file(rel string, data []byte, mode fs.FileMode) {
	m.t.Helper()
	m.mkdir(filepath.Dir(rel))
	require.NoError(m.t, os.WriteFile(m.path(rel), data, 0o600))
	require.NoError(m.t, os.Chmod(m.path(rel), mode))
}

func (m *maker) contents() {
	const k = 1 << 10
	zeros := func(n int) []byte { return make([]byte, n) }
	for name, data := range map[string][]byte{
		"empty": nil, "one": {1}, "512k-1": Random(1, 512*k-1), "512k": Random(2, 512*k), "512k+1": Random(3, 512*k+1),
		"large": Random(4, 13<<20+7), "zeros": zeros(3<<20 + 5), "zeros in between": bytes.Join([][]byte{Random(5, 700*k+3), zeros(2 << 20), Random(6, 900*k)}, nil),
		"text": bytes.Repeat([]byte("all work and no play\n"), 100_000), "same text": bytes.Repeat([]byte("all work and no play\n"), 100_000),
	} {
		m.file("contents/"+name, data, 0o644)
	}
	m.sparse("contents/only hole", 40<<20, nil)
	m.sparse("contents/hole first", 9<<20, map[int64][]byte{7 << 20: Random(7, 1<<20)})
	m.sparse("contents/hole last", 9<<20, map[int64][]byte{0: Random(8, 1<<20)})
	m.sparse("contents/holes", 64<<20, map[int64][]byte{0: {1}, 10 << 20: Random(9, 3<<20), 30<<20 + 4096: {2}, 50 << 20: Random(10, 600*k)})
}

func (m *maker) sparse(rel string, size int64, data map[int64][]byte) {
	m.t.Helper()
	f, err := os.Create(m.path(rel))
	require.NoError(m.t, err)
	defer f.Close()
	require.NoError(m.t, f.Truncate(size))
	for at, b := range data {
		_, err := f.WriteAt(b, at)
		require.NoError(m.t, err)
	}
}

func (m *maker) modes() {
	for _, mode := range []fs.FileMode{
		0o400, 0o600, 0o755, 0o777, 0o4755 &^ 0o4000, 0o755 | fs.ModeSetuid, 0o755 | fs.ModeSetgid, 0o644 | fs.ModeSticky, 0o777 | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky,
	} {
		m.file(fmt.Sprintf("modes/f%o-%d", mode.Perm(), mode>>20), []byte("m"), mode)
	}
	for _, mode := range []fs.FileMode{0o700, 0o555, 0o500, 0o777 | fs.ModeSticky, 0o775 | fs.ModeSetgid} {
		name := fmt.Sprintf("modes/d%o-%d", mode.Perm(), mode>>20)
		m.file(name+"/inside", []byte("in"), 0o600)
		require.NoError(m.t, os.Chmod(m.path(name), mode))
		m.t.Cleanup(func() { _ = os.Chmod(m.path(name), 0o700) })
	}
	if os.Getuid() == 0 {
		m.file("modes/none", []byte("n"), 0)
		m.file("owners/f", []byte("o"), 0o640)
		require.NoError(m.t, os.Chown(m.path("owners/f"), 12345, 54321))
		require.NoError(m.t, os.Chown(m.path("owners"), 1000, 2000))
		m.file("owners/setuid", []byte("s"), 0o755)
		require.NoError(m.t, os.Chown(m.path("owners/setuid"), 1000, 1001))
		require.NoError(m.t, os.Chmod(m.path("owners/setuid"), 0o755|fs.ModeSetuid|fs.ModeSetgid))
		require.NoError(m.t, os.Symlink("f", m.path("owners/link")))
		require.NoError(m.t, os.Lchown(m.path("owners/link"), 7, 8))
	}
}

func (m *maker) links() {
	m.file("links/original", Random(11, 2<<20), 0o640)
	m.mkdir("links/sub")
	require.NoError(m.t, os.Link(m.path("links/original"), m.path("links/a copy")))
	require.NoError(m.t, os.Link(m.path("links/original"), m.path("links/sub/z")))
	m.file("links/other", []byte("other"), 0o600)
	require.NoError(m.t, os.Link(m.path("links/other"), m.path("links/other too")))
	for name, target := range map[string]string{
		"to file": "original", "to dir": "sub", "dangling": "../nowhere", "absolute": "/etc/passwd", "loop": "loop",
		"raw": "\xff\xfe/\x01", "html": "<&>", "long": strings.Repeat("long/", 600),
	} {
		require.NoError(m.t, os.Symlink(target, m.path("links/"+name)))
	}
	require.NoError(m.t, unix.Linkat(unix.AT_FDCWD, m.path("links/dangling"), unix.AT_FDCWD, m.path("links/dangling too"), 0))
}

// acl is the attribute of an access list: owner rwx, user 1234 r--, group r-x, mask r-x, others ---.
func acl(mask byte) []byte {
	entry := func(tag, perm byte, id uint32) []byte {
		return []byte{tag, 0, perm, 0, byte(id), byte(id >> 8), byte(id >> 16), byte(id >> 24)}
	}
	const none = 0xffffffff
	return bytes.Join([][]byte{
		{2, 0, 0, 0}, entry(1, 7, none), entry(2, 4, 1234), entry(4, 5, none), entry(0x10, mask, none), entry(0x20, 0, none),
	}, nil)
}

func (m *maker) attributes() {
	m.file("attributes/f", []byte("a"), 0o750)
	m.file("attributes/read-only", []byte("a"), 0o400)
	m.file("attributes/d/f", []byte("a"), 0o600)
	for _, name := range []string{"attributes/f", "attributes/d"} {
		for attr, value := range map[string][]byte{"user.z": []byte("last"), "user.a": {}, "user.bin": {0, 255, 10}, "user.long": Random(12, 1500)} {
			require.NoError(m.t, unix.Setxattr(m.path(name), attr, value, 0))
		}
		require.NoError(m.t, unix.Setxattr(m.path(name), "system.posix_acl_access", acl(5), 0))
	}
	require.NoError(m.t, os.Chmod(m.path("attributes/read-only"), 0o600))
	require.NoError(m.t, unix.Setxattr(m.path("attributes/read-only"), "user.x", []byte("y"), 0))
	require.NoError(m.t, os.Chmod(m.path("attributes/read-only"), 0o400))
	require.NoError(m.t, unix.Setxattr(m.path("attributes/d"), "system.posix_acl_default", acl(7), 0))
}

func (m *maker) specials() {
	m.mkdir("special/empty dir")
	require.NoError(m.t, unix.Mkfifo(m.path("special/fifo"), 0o640))
	require.NoError(m.t, unix.Mknod(m.path("special/socket"), unix.S_IFSOCK|0o755, 0))
	if os.Getuid() == 0 {
		require.NoError(m.t, unix.Mknod(m.path("special/null"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))))
		require.NoError(m.t, unix.Mknod(m.path("special/block"), unix.S_IFBLK|0o660, int(unix.Mkdev(259, 77777))))
	}
}

func (m *maker) deep() {
	rel := "deep"
	for range 60 {
		rel += "/d"
	}
	m.file(rel+"/bottom", []byte("b"), 0o644)
	for i := range 300 {
		m.file(fmt.Sprintf("many/%03d", i), []byte(fmt.Sprint(i%7)), 0o644)
	}
}

func (m *maker) times() {
	for name, when := range map[string]time.Time{
		"epoch": time.Unix(0, 0), "before": time.Unix(-86400*365*10, 123), "nanoseconds": time.Unix(1_000_000_000, 123_456_789),
		"future": time.Unix(4_000_000_000, 1), "far": time.Unix(9_000_000_000, 0),
	} {
		m.file("times/"+name, []byte(name), 0o644)
		require.NoError(m.t, os.Chtimes(m.path("times/"+name), when, when))
	}
	old := time.Date(2011, 12, 13, 14, 15, 16, 17, time.UTC)
	ts := []unix.Timespec{{Sec: old.Unix(), Nsec: 17}, {Sec: old.Unix(), Nsec: 17}}
	require.NoError(m.t, unix.UtimesNanoAt(unix.AT_FDCWD, m.path("links/dangling"), ts, unix.AT_SYMLINK_NOFOLLOW))
	for _, d := range []string{"times", "special", "special/empty dir", "links/sub"} {
		require.NoError(m.t, os.Chtimes(m.path(d), old, old))
	}
	require.NoError(m.t, os.Chmod(m.dir, 0o775|fs.ModeSetgid))
	require.NoError(m.t, os.Chtimes(m.dir, old, old))
}
