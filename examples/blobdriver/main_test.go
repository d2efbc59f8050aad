package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/pvcbackup/blobstore"
	"example.com/pvcbackup/blobstore/blobtest"
)

// TestTheDriverKeepsEveryPromise is all that a driver's author has to write.
func TestTheDriverKeepsEveryPromise(t *testing.T) {
	blobtest.Run(t, func(t testing.TB) blobtest.Store {
		return opened(t, filepath.Join(t.TempDir(), "store"))
	}, blobtest.Caps{})
}

func opened(t testing.TB, file string) *blobstore.Store {
	t.Helper()
	s, err := blobstore.Open(t.Context(), "onefile://"+file, &blobstore.Options{Openers: openers()})
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestTheProgram(t *testing.T) {
	url := "onefile://" + filepath.Join(t.TempDir(), "store")
	says := func(in string, args ...string) string {
		t.Helper()
		var out strings.Builder
		require.NoError(t, run(t.Context(), append([]string{url}, args...), strings.NewReader(in), &out))
		return out.String()
	}
	says("hello", "put", "a/greeting")
	require.Equal(t, "a/greeting 5\n", says("", "list"))
	require.Equal(t, "hello", says("", "get", "a/greeting"))
	require.ErrorIs(t, run(t.Context(), nil, nil, nil), errUsage)
	require.ErrorIs(t, run(t.Context(), []string{url, "dance"}, nil, nil), errUsage)
	require.ErrorIs(t, run(t.Context(), []string{"onefile://host/x", "list"}, nil, nil), blobstore.ErrInvalid)
	require.ErrorIs(t, run(t.Context(), []string{"onefile:///no/such/folder/x", "list"}, nil, nil), blobstore.ErrNoBucket)
}

// TestACrashLosesOnlyTheUnfinishedRecord cuts the file at every byte of its last record.
func TestACrashLosesOnlyTheUnfinishedRecord(t *testing.T) {
	file := filepath.Join(t.TempDir(), "store")
	size := func() int64 {
		info, err := os.Stat(file)
		require.NoError(t, err)
		return info.Size()
	}
	s := opened(t, file)
	require.NoError(t, s.PutBytes(t.Context(), "first", []byte("kept"), nil))
	whole := size()
	require.NoError(t, s.PutBytes(t.Context(), "second", []byte("lost"), nil))
	require.NoError(t, s.Close())
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	for end := whole; end < int64(len(text)); end++ {
		cut := fmt.Sprint(file, end)
		require.NoError(t, os.WriteFile(cut, text[:end], 0o600))
		s := opened(t, cut)
		got, err := s.GetBytes(t.Context(), "first", 10)
		require.NoError(t, err)
		require.Equal(t, "kept", string(got))
		_, err = s.Stat(t.Context(), "second")
		require.ErrorIs(t, err, blobstore.ErrNotFound)
		require.NoError(t, s.PutBytes(t.Context(), "second", []byte("again"), &blobstore.PutOptions{OnlyIfAbsent: true}))
	}
}

func TestASecondProcessIsRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "store")
	opened(t, file)
	_, err := blobstore.Open(t.Context(), "onefile://"+file, &blobstore.Options{Openers: openers()})
	require.ErrorIs(t, err, blobstore.ErrInvalid)
}
