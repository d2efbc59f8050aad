package browse_test

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"example.com/pvcbackup/backup/browse"
	"example.com/pvcbackup/backup/internal/edgetree"
	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/backup/repo/repotest"
	"example.com/pvcbackup/backup/repo/tree"
	"example.com/pvcbackup/backup/restorer/treecmp"
)

func dumpTar(t testing.TB, r *repo.Repository, root *tree.Node) ([]byte, *browse.TarResult) {
	t.Helper()
	var out bytes.Buffer
	done, err := browse.DumpTar(t.Context(), r, root, &out)
	require.NoError(t, err)
	return out.Bytes(), done
}

// piped is a tar stream in the making.
func piped(t testing.TB, r *repo.Repository, root *tree.Node) io.Reader {
	out, in := io.Pipe()
	go func() {
		_, err := browse.DumpTar(t.Context(), r, root, in)
		in.CloseWithError(err)
	}()
	return out
}

// entries describes what a tar stream holds, by name, with times as restic rounds them.
func entries(t testing.TB, stream io.Reader) map[string]string {
	t.Helper()
	found := map[string]string{}
	for in := tar.NewReader(stream); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		require.NoError(t, err)
		sum := sha256.New()
		_, err = io.Copy(sum, in)
		require.NoError(t, err)
		text := fmt.Sprintf("%c mode %o owner %d:%d time %s link %q size %d content %x", h.Typeflag, h.Mode, h.Uid, h.Gid,
			h.ModTime.Round(time.Second).UTC().Format(time.RFC3339), h.Linkname, h.Size, sum.Sum(nil)[:4])
		for _, name := range []string{"user.z", "user.a", "user.bin", "user.long", "user.x"} {
			if value, there := h.PAXRecords["SCHILY.xattr."+name]; there {
				text += fmt.Sprintf(" %s %x", name, sha256.Sum256([]byte(value)))
			}
		}
		require.NotContains(t, found, h.Name)
		found[h.Name] = text
	}
}

// edge is a snapshot of everything that dumps get wrong.
type edge struct {
	source string
	r      *repo.Repository
	restic *repotest.Restic
	sn     repo.SnapshotInfo
	root   *tree.Node
}

func TestAnEdgeTree(t *testing.T) {
	e := edge{source: t.TempDir()}
	edgetree.Make(t, e.source)
	e.r, e.restic = shared(t)
	e.sn = backup(t, e.r, e.source)
	e.root = base(t, e.r, e.sn, "/")
	t.Run("is visited in the order of names", e.isWalked)
	t.Run("has the entries of restic's dump in a tar stream", e.hasResticsEntries)
	t.Run("is the same when a tar stream of it is extracted", e.survivesTar)
	t.Run("has the content of its files in dumps of them", e.hasContent)
}

func (e edge) isWalked(t *testing.T) {
	var want []string
	require.NoError(t, filepath.WalkDir(e.source, func(path string, entry fs.DirEntry, err error) error {
		if entry.Type() != fs.ModeSocket {
			want = append(want, "/"+strings.TrimPrefix(strings.TrimPrefix(path, e.source), "/"))
		}
		return err
	}))
	if diff := cmp.Diff(want, paths(t, e.r, e.root, all)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func (e edge) hasResticsEntries(t *testing.T) {
	ours := entries(t, piped(t, e.r, e.root))
	cmd := e.restic.Command(t.Context(), "dump", e.sn.ID.String()+":/data", "/")
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	theirs := entries(t, out)
	require.NoError(t, cmd.Wait())
	require.Contains(t, ours, "./")
	require.Greater(t, len(theirs), 400)
	for name, want := range theirs {
		got := ours[name]
		delete(ours, name)
		if strings.HasPrefix(got, string(tar.TypeLink)) { // restic writes a file anew for each of its names
			continue
		}
		if got != want {
			t.Errorf("%q: %s, and restic has %s", name, got, want)
		}
	}
	var more []string
	for name := range ours { // restic leaves these out
		more = append(more, name)
	}
	want := []string{"./", "special/fifo"}
	if os.Getuid() == 0 {
		want = append(want, "special/null", "special/block")
	}
	require.ElementsMatch(t, want, more)
}

func (e edge) survivesTar(t *testing.T) {
	target := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "tar", "-x", "-p", "--numeric-owner", "--xattrs", "--xattrs-include=*",
		"--delay-directory-restore", "-C", target)
	cmd.Stdin = piped(t, e.r, e.root)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "GNU tar is needed: %s", out)
	differences, err := treecmp.Compare(e.source, target, treecmp.Options{Owners: os.Getuid() == 0})
	require.NoError(t, err)
	for _, d := range differences {
		t.Error(d)
	}
}

func (e edge) hasContent(t *testing.T) {
	files := 0
	require.NoError(t, browse.Walk(t.Context(), e.r, "/", e.root, func(at string, n *tree.Node) error {
		if n.Type != tree.File || n.Size > 20<<20 {
			return nil
		}
		files++
		var out bytes.Buffer
		require.NoError(t, browse.DumpFile(t.Context(), e.r, n, &out))
		want, err := os.ReadFile(filepath.Join(e.source, at))
		require.NoError(t, err)
		require.True(t, bytes.Equal(want, out.Bytes()), at)
		return nil
	}))
	require.Greater(t, files, 300)
	var out bytes.Buffer
	require.NoError(t, browse.DumpFile(t.Context(), e.r, base(t, e.r, e.sn, "/links/original"), &out))
	require.Equal(t, e.restic.Output("dump", e.sn.ID.String(), "/data/links/original"), out.String())
	require.ErrorIs(t, browse.DumpFile(t.Context(), e.r, base(t, e.r, e.sn, "/links"), &out), browse.ErrNotFile)
}

func TestATarStreamOfOneEntryAndOfAFolderInside(t *testing.T) {
	r := initRepository(t, repotest.NewMemory())
	s := newSaver(t, r)
	one := file("f", 3, s.blob(repo.DataBlob, "abc"))
	sub := dir("sub", s.tree(one))
	socket, link := &tree.Node{Name: "s", Type: tree.Socket}, &tree.Node{Name: "z", Type: tree.Symlink, LinkTarget: "sub/f"}
	top := dir("/", s.tree(socket, sub, link))
	s.flush()
	for _, c := range []struct {
		root *tree.Node
		want []string
	}{
		{top, []string{"sub/", "sub/f", "z"}}, {sub, []string{"./", "f"}}, {one, []string{"f"}},
	} {
		stream, done := dumpTar(t, r, c.root)
		require.Equal(t, c.root == top, done.Sockets == 1, "sockets are left out and counted")
		var got []string
		for name := range entries(t, bytes.NewReader(stream)) {
			got = append(got, name)
		}
		require.ElementsMatch(t, c.want, got)
	}
}

func TestAttributeNamesThatEndAKeyAreEscaped(t *testing.T) {
	r := initRepository(t, repotest.NewMemory())
	s := newSaver(t, r)
	n := file("f", 0)
	n.Xattrs = []tree.Xattr{{Name: "user.a=b%c", Value: []byte("x\x00=\n")}}
	root := dir("/", s.tree(n))
	s.flush()
	stream, _ := dumpTar(t, r, root)
	h, err := tar.NewReader(bytes.NewReader(stream)).Next()
	require.NoError(t, err)
	require.Equal(t, "x\x00=\n", h.PAXRecords["SCHILY.xattr.user.a%3Db%25c"])
}

func TestALargeFileIsWrittenInOrderFromManyBatches(t *testing.T) {
	source := t.TempDir()
	want := edgetree.Random(1, 20<<20)
	require.NoError(t, os.WriteFile(filepath.Join(source, "f"), want, 0o644))
	r := initRepository(t, repotest.NewMemory())
	var out bytes.Buffer
	require.NoError(t, browse.DumpFile(t.Context(), r, base(t, r, backup(t, r, source), "/f"), &out))
	require.True(t, bytes.Equal(want, out.Bytes()))
}

func TestADumpThatFailsIsNotTakenForWhole(t *testing.T) {
	store := repotest.NewMemory()
	r := initRepository(t, store)
	s := newSaver(t, r)
	var nodes []*tree.Node
	for i := range 5 {
		text := strings.Repeat(fmt.Sprint(i), 100)
		nodes = append(nodes, file(fmt.Sprint("f", i), 100, s.blob(repo.DataBlob, text)))
	}
	root := dir("/", s.tree(nodes...))
	s.flush()
	bad := r.Locations(repo.BlobHandle{Type: repo.DataBlob, ID: nodes[3].Content[0]})[0]
	key := repo.PackFile.Key(bad.Pack)
	pack := store.Bytes(key)
	pack[bad.Offset+20] ^= 1
	store.Set(key, pack)

	var out bytes.Buffer
	_, err := browse.DumpTar(t.Context(), r, root, &out)
	require.ErrorIs(t, err, repo.ErrDamaged)
	require.ErrorContains(t, err, `"/f3"`)
	in := tar.NewReader(bytes.NewReader(out.Bytes()))
	names := 0
	for err = nil; err == nil; names++ {
		if _, err = in.Next(); err == nil {
			_, err = io.Copy(io.Discard, in)
		}
	}
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.Equal(t, 4, names, "what is before the damage is written")
	require.ErrorIs(t, browse.DumpFile(t.Context(), r, nodes[3], &out), repo.ErrDamaged)

	broken := errors.New("broken pipe")
	_, err = browse.DumpTar(t.Context(), r, root, failing{broken})
	require.ErrorIs(t, err, broken)
	wrong := *nodes[0]
	wrong.Size++
	require.ErrorIs(t, browse.DumpFile(t.Context(), r, &wrong, &out), tree.ErrMalformed)
	lost := file("lost", 1, repo.ID{1})
	require.ErrorIs(t, browse.DumpFile(t.Context(), r, lost, &out), repo.ErrNotFound)
}

type failing struct{ error }

func (f failing) Write([]byte) (int, error) { return 0, f.error }
