package file

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"
	"golang.org/x/sync/errgroup"

	"example.com/pvcbackup/blobstore"
	"example.com/pvcbackup/blobstore/blobtest"
	"example.com/pvcbackup/blobstore/internal/matrix"
)

func openDir(t *testing.T, dir string) *blobstore.Store {
	t.Helper()
	s, err := blobstore.Open(t.Context(), "file://"+dir, &blobstore.Options{Openers: Openers(), RetryBudget: -1})
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func keys(t *testing.T, ctx context.Context, s *blobstore.Store, prefix string) []string {
	t.Helper()
	var got []string
	for o, err := range s.List(ctx, prefix) {
		require.NoError(t, err)
		got = append(got, o.Key)
	}
	return got
}

func TestLayoutIsOnePlainFilePerObject(t *testing.T) {
	dir := t.TempDir()
	s := openDir(t, dir)
	ctx := t.Context()
	for _, k := range []string{"config", "data/00/00ab", "data/a.b", "data/a/x"} {
		require.NoError(t, s.PutBytes(ctx, k, []byte(k), &blobstore.PutOptions{OnlyIfAbsent: true}))
	}
	require.ErrorIs(t, s.PutBytes(ctx, "config", nil, &blobstore.PutOptions{OnlyIfAbsent: true}), blobstore.ErrExists)
	err := s.Put(ctx, "config", io.MultiReader(strings.NewReader("half"), iotest.ErrReader(errors.New("broken"))), nil)
	require.ErrorIs(t, err, blobstore.ErrSource)
	if diff := cmp.Diff([]string{"config", "data/00/00ab", "data/a.b", "data/a/x"}, keys(t, ctx, s, "")); diff != "" {
		t.Fatal(diff)
	}
	if diff := cmp.Diff([]string{"data/a.b", "data/a/x"}, keys(t, ctx, s, "data/a")); diff != "" {
		t.Fatal(diff)
	}
	require.NoError(t, s.Close())
	var files []string
	require.NoError(t, filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			rel, _ := filepath.Rel(dir, p)
			files = append(files, rel)
		}
		return err
	}))
	if diff := cmp.Diff([]string{"config", "data/00/00ab", "data/a/x", "data/a.b"}, files); diff != "" {
		t.Fatal(diff)
	}
	_, err = os.Stat(filepath.Join(dir, tempDir))
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestConformance(t *testing.T) {
	matrix.Check(t, "file", func(t testing.TB) blobtest.Store {
		s, err := blobstore.Open(t.Context(), "file://"+t.TempDir()+"/repo?create_dir=true", &blobstore.Options{Openers: Openers()})
		require.NoError(t, err)
		t.Cleanup(func() { _ = s.Close() })
		return s
	}, blobtest.Caps{NoFolderAndFile: true})
}

func FuzzAKeyThatIsAcceptedStaysInTheFolder(f *testing.F) {
	for _, key := range []string{"a/b", "..", "a/../../b", tempDir, tempDir + "/x", strings.Repeat("x", 300), "a\x00"} {
		f.Add(key)
	}
	dir := f.TempDir()
	s, err := blobstore.Open(f.Context(), "file://"+dir+"/repo?create_dir=true", &blobstore.Options{Openers: Openers(), RetryBudget: -1})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, key string) {
		err := s.PutBytes(t.Context(), key, []byte("x"), nil)
		if err != nil {
			require.ErrorIs(t, err, blobstore.ErrInvalid)
			return
		}
		_, err = os.Stat(filepath.Join(dir, "repo", key))
		require.NoError(t, err)
		outside, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Len(t, outside, 1)
		require.NoError(t, s.Delete(t.Context(), key))
	})
}

func tryOpen(t *testing.T, raw, base string) (*blobstore.Store, error) {
	t.Helper()
	s, err := blobstore.Open(t.Context(), raw, &blobstore.Options{Openers: Openers(), FileRoot: base, RetryBudget: -1})
	if err == nil {
		t.Cleanup(func() { _ = s.Close() })
	}
	return s, err
}

func TestFileRootIsTheOnlyPlaceAllowed(t *testing.T) {
	base, outside := t.TempDir(), t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(base, "in"), 0o700))
	require.NoError(t, os.Symlink(outside, filepath.Join(base, "absolute")))
	rel, err := filepath.Rel(base, outside)
	require.NoError(t, err)
	require.NoError(t, os.Symlink(rel, filepath.Join(base, "relative")))
	require.NoError(t, os.Symlink("in", filepath.Join(base, "inside")))

	for _, ok := range []string{base, base + "/in", base + "/in/", base + "/inside", base + "/new/folder?create_dir=true"} {
		s, err := tryOpen(t, "file://"+ok, base)
		require.NoError(t, err, ok)
		require.NoError(t, s.PutBytes(t.Context(), "k", nil, nil), ok)
	}
	for _, bad := range []string{
		outside, filepath.Dir(base), base + "x?create_dir=true", base + "/../" + filepath.Base(outside), base + "/absolute",
		base + "/relative", base + "/absolute/new?create_dir=true", base + "/relative/new?create_dir=true", "/etc",
	} {
		_, err := tryOpen(t, "file://"+bad, base)
		require.Error(t, err, bad)
	}
	left, err := os.ReadDir(outside)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestLinksNeverLeadOutOfTheFolder(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(outside, "secret"), []byte("x"), 0o600))
	require.NoError(t, os.Symlink(outside, filepath.Join(dir, "out")))
	require.NoError(t, os.Symlink(filepath.Join(outside, "secret"), filepath.Join(dir, "file")))
	s, err := tryOpen(t, "file://"+dir, "")
	require.NoError(t, err)
	ctx := t.Context()
	for _, key := range []string{"out/secret", "file"} {
		_, err := s.GetBytes(ctx, key, 10)
		require.Error(t, err, key)
		_, err = s.Stat(ctx, key)
		require.Error(t, err, key)
	}
	require.Error(t, s.PutBytes(ctx, "out/new", nil, nil))
	require.Error(t, s.Delete(ctx, "out/secret"))
	require.NoError(t, s.PutBytes(ctx, "file", []byte("mine"), nil), "it replaces the link, not its target")
	got, err := os.ReadFile(filepath.Join(outside, "secret"))
	require.NoError(t, err)
	require.Equal(t, "x", string(got))
	left, err := os.ReadDir(outside)
	require.NoError(t, err)
	require.Len(t, left, 1)
}

func TestListReturnsTheErrorsThatItMeets(t *testing.T) {
	dir := t.TempDir()
	s := openDir(t, dir)
	require.NoError(t, s.PutBytes(t.Context(), "a", nil, nil))
	require.NoError(t, s.PutBytes(t.Context(), "c/d", nil, nil))
	require.NoError(t, os.Symlink("c", filepath.Join(dir, "b")))
	var last error
	for _, err := range s.List(t.Context(), "") {
		last = err
	}
	require.ErrorContains(t, last, "symbolic link to a folder")
}

func TestUnfinishedFilesAreNotListedAndSweptAfterADay(t *testing.T) {
	dir := t.TempDir()
	temp := filepath.Join(dir, tempDir)
	require.NoError(t, os.Mkdir(temp, 0o700))
	for name, age := range map[string]time.Duration{"old": 25 * time.Hour, "young": 23 * time.Hour} {
		path := filepath.Join(temp, name)
		require.NoError(t, os.WriteFile(path, []byte("x"), 0o600))
		then := time.Now().Add(-age)
		require.NoError(t, os.Chtimes(path, then, then))
	}
	s := openDir(t, dir)
	require.Empty(t, keys(t, t.Context(), s, ""))
	require.ErrorIs(t, s.PutBytes(t.Context(), tempDir+"/x", nil, nil), blobstore.ErrInvalid)
	require.NoFileExists(t, filepath.Join(temp, "old"))
	require.FileExists(t, filepath.Join(temp, "young"))
}

func TestKeyBelowAnObjectIsInvalid(t *testing.T) {
	s := openDir(t, t.TempDir())
	ctx := t.Context()
	require.NoError(t, s.PutBytes(ctx, "a", []byte("x"), nil))
	require.NoError(t, s.PutBytes(ctx, "d/e", []byte("x"), nil))
	for _, o := range []*blobstore.PutOptions{nil, {OnlyIfAbsent: true}} {
		require.ErrorIs(t, s.PutBytes(ctx, "a/b", nil, o), blobstore.ErrInvalid)
	}
	require.ErrorIs(t, s.PutBytes(ctx, "d", nil, nil), blobstore.ErrInvalid)
	for _, key := range []string{"a/b", "d"} {
		_, err := s.Stat(ctx, key)
		require.ErrorIs(t, err, blobstore.ErrNotFound, key)
		_, err = s.GetBytes(ctx, key, 1)
		require.ErrorIs(t, err, blobstore.ErrNotFound, key)
		require.ErrorIs(t, s.Delete(ctx, key), blobstore.ErrNotFound, key)
	}
	require.Equal(t, []string{"a", "d/e"}, keys(t, ctx, s, ""))
}

func TestEmptiedFoldersGoAndRacingPutsSurvive(t *testing.T) {
	dir := t.TempDir()
	s := openDir(t, dir)
	ctx := t.Context()
	var g errgroup.Group
	for i := range 4 {
		g.Go(func() error {
			key := fmt.Sprintf("a/b/%d", i)
			for range 50 {
				if err := s.PutBytes(ctx, key, []byte("x"), nil); err != nil {
					return err
				}
				if err := s.Delete(ctx, key); err != nil {
					return err
				}
			}
			return nil
		})
	}
	require.NoError(t, g.Wait())
	require.NoDirExists(t, filepath.Join(dir, "a"))
	require.DirExists(t, dir)
}

func TestMissingFolderIsNoBucket(t *testing.T) {
	_, err := tryOpen(t, "file:///no/such/folder", "")
	require.ErrorIs(t, err, blobstore.ErrNoBucket)
	require.ErrorContains(t, err, "create_dir=true")
	for _, bad := range []string{"file://host/dir", "file:///", "file:relative", "file:///tmp?metadata=skip", "file:///tmp?create_dir=maybe", "file:///tmp/../etc"} {
		_, err := tryOpen(t, bad, "")
		require.ErrorIs(t, err, blobstore.ErrInvalid, bad)
	}
}

// TestOneWinnerAcrossProcesses runs itself as the racing processes.
func TestOneWinnerAcrossProcesses(t *testing.T) {
	const processes, rounds = 4, 30
	if dir := os.Getenv("FILE_RACE_DIR"); dir != "" {
		s := openDir(t, dir)
		for round := range rounds {
			err := s.PutBytes(t.Context(), fmt.Sprint("key/", round), []byte(os.Getenv("FILE_RACE_NAME")), &blobstore.PutOptions{OnlyIfAbsent: true})
			if err == nil {
				fmt.Println("won", round)
			} else {
				require.ErrorIs(t, err, blobstore.ErrExists)
			}
		}
		return
	}
	dir := t.TempDir()
	outs := make([][]byte, processes)
	var g errgroup.Group
	for i := range processes {
		g.Go(func() (err error) {
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestOneWinnerAcrossProcesses$", "-test.v")
			cmd.Env = append(os.Environ(), "FILE_RACE_DIR="+dir, fmt.Sprint("FILE_RACE_NAME=", i))
			outs[i], err = cmd.CombinedOutput()
			if err != nil {
				return fmt.Errorf("%w: %s", err, outs[i])
			}
			return nil
		})
	}
	require.NoError(t, g.Wait())
	for round := range rounds {
		got, err := os.ReadFile(filepath.Join(dir, "key", fmt.Sprint(round)))
		require.NoError(t, err)
		winners := 0
		for i, out := range outs {
			if strings.Contains(string(out), fmt.Sprintf("won %d\n", round)) {
				winners++
				require.Equal(t, fmt.Sprint(i), string(got))
			}
		}
		require.Equal(t, 1, winners, "round %d", round)
	}
}

// TestGocloudSeesTheSamePages checks the driver interface that Store does not use.
func TestGocloudSeesTheSamePages(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	require.NoError(t, err)
	b := blob.NewBucket(&bucket{root: root})
	defer b.Close()
	ctx := t.Context()
	for _, k := range []string{"a", "b/1", "b/2", "b.c", "d"} {
		require.NoError(t, b.WriteAll(ctx, k, []byte(k), nil))
	}
	require.NoError(t, b.Copy(ctx, "e/copy", "b/1", nil))
	got, err := b.ReadAll(ctx, "e/copy")
	require.NoError(t, err)
	require.Equal(t, "b/1", string(got))
	all := func(o *blob.ListOptions) (names []string) {
		token := blob.FirstPageToken
		for token != nil {
			page, next, err := b.ListPage(ctx, token, 2, o)
			require.NoError(t, err)
			for _, o := range page {
				names = append(names, o.Key)
			}
			token = next
		}
		return names
	}
	require.Equal(t, []string{"a", "b.c", "b/1", "b/2", "d", "e/copy"}, all(&blob.ListOptions{}))
	require.Equal(t, []string{"a", "b.c", "b/", "d", "e/"}, all(&blob.ListOptions{Delimiter: "/"}))
	_, err = b.SignedURL(ctx, "a", nil)
	require.Equal(t, gcerrors.Unimplemented, gcerrors.Code(err))
	var r *os.Root
	require.True(t, b.As(&r))
}

func TestFullDiskIsNotRetried(t *testing.T) {
	require.Equal(t, blobstore.KindFull, classify(&os.PathError{Err: syscall.ENOSPC}))
	require.Equal(t, blobstore.KindPermission, classify(&os.PathError{Err: syscall.EROFS}))
	require.Equal(t, blobstore.KindUnknown, classify(&os.PathError{Err: syscall.EIO}))
}

func BenchmarkFile(b *testing.B) {
	blobtest.Bench(b, func(t testing.TB) blobtest.Store {
		s, err := blobstore.Open(t.Context(), "file://"+t.TempDir(), &blobstore.Options{Openers: Openers()})
		require.NoError(t, err)
		t.Cleanup(func() { _ = s.Close() })
		return s
	})
}
