package file

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"example.com/pvcbackup/blobstore"
	"example.com/pvcbackup/blobstore/blobtest"
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
	blobtest.Run(t, func(t testing.TB) blobtest.Store {
		s, err := blobstore.Open(t.Context(), "file://"+t.TempDir()+"/repo?create_dir=true", &blobstore.Options{Openers: Openers()})
		require.NoError(t, err)
		t.Cleanup(func() { _ = s.Close() })
		return s
	}, blobtest.Caps{NoFolderAndFile: true})
}
