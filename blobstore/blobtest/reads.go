package blobtest

import (
	"fmt"
	"io"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"example.com/pvcbackup/blobstore"
)

func rangeExact(t testing.TB, s Store, _ Caps) {
	data := content(1, 10_000)
	mustPut(t, s, "k", data)
	for _, r := range [][2]int64{{0, 10_000}, {0, 1}, {9_999, 1}, {1_234, 5_678}, {5_000, 0}} {
		got, err := s.GetRange(t.Context(), "k", r[0], r[1])
		require.NoError(t, err)
		require.True(t, slices.Equal(data[r[0]:r[0]+r[1]], got), "range %v", r)
	}
}

func rangePastTheEnd(t testing.TB, s Store, _ Caps) {
	mustPut(t, s, "k", content(1, 100))
	for _, r := range [][2]int64{{0, 101}, {99, 2}, {100, 1}, {5_000, 10}} {
		got, err := s.GetRange(t.Context(), "k", r[0], r[1])
		require.ErrorIs(t, err, blobstore.ErrCorrupt, "range %v", r)
		require.Empty(t, got)
	}
	for _, r := range [][2]int64{{-1, 5}, {0, -1}, {math.MaxInt64, 2}} {
		_, err := s.GetRange(t.Context(), "k", r[0], r[1])
		require.ErrorIs(t, err, blobstore.ErrInvalid, "range %v", r)
	}
}

func tooLarge(t testing.TB, s Store, _ Caps) {
	mustPut(t, s, "k", content(1, 100))
	_, err := s.GetBytes(t.Context(), "k", 99)
	require.ErrorIs(t, err, blobstore.ErrTooLarge)
	got, err := s.GetBytes(t.Context(), "k", 100)
	require.NoError(t, err)
	require.Len(t, got, 100)
}

func statTells(t testing.TB, s Store, _ Caps) {
	mustPut(t, s, "a/k", content(1, 77))
	o, err := s.Stat(t.Context(), "a/k")
	require.NoError(t, err)
	require.Equal(t, "a/k", o.Key)
	require.Equal(t, int64(77), o.Size)
	require.Less(t, time.Since(o.ModTime).Abs(), 5*time.Minute)
	for l, err := range s.List(t.Context(), "") {
		require.NoError(t, err)
		require.Equal(t, "a/k", l.Key)
		require.Equal(t, int64(77), l.Size)
		require.Less(t, l.ModTime.Sub(o.ModTime).Abs(), 2*time.Second)
	}
}

func listSorted(t testing.TB, s Store, _ Caps) {
	want := []string{"A", "a-b", "a.b", "a/0", "a/b/c", "a/b.c", "a0", "data/00/1", "data/ff/0", "z"}
	slices.Sort(want)
	for _, i := range []int{3, 0, 9, 5, 1, 7, 2, 8, 4, 6} {
		mustPut(t, s, want[i], []byte(want[i]))
	}
	mustList(t, s, "", want...)
}

func prefixIsNotAFolder(t testing.TB, s Store, _ Caps) {
	keys := []string{"a/x", "ab", "ab.c", "b/ab", "c/d/e"}
	for _, k := range keys {
		mustPut(t, s, k, nil)
	}
	mustList(t, s, "", keys...)
	mustList(t, s, "a", keys[:3]...)
	mustList(t, s, "a/", "a/x")
	mustList(t, s, "ab", "ab", "ab.c")
	mustList(t, s, "b", "b/ab")
	mustList(t, s, "c/d", "c/d/e")
	mustList(t, s, "c/d/e", "c/d/e")
	mustList(t, s, "c/d/e/")
	mustList(t, s, "nothing")
	mustList(t, s, "nothing/at/all")
}

func moreThanOnePage(t testing.TB, s Store, _ Caps) {
	const n = 1_100
	var want []string
	var g errgroup.Group
	g.SetLimit(8)
	for i := range n {
		key := fmt.Sprintf("p/%04d", i)
		want = append(want, key)
		g.Go(func() error { return s.PutBytes(t.Context(), key, nil, nil) })
	}
	require.NoError(t, g.Wait())
	mustPut(t, s, "q", nil)
	mustList(t, s, "p/", want...)
	mustList(t, s, "", append(want, "q")...)
}

func listStops(t testing.TB, s Store, _ Caps) {
	for _, k := range []string{"a", "b/c", "d"} {
		mustPut(t, s, k, nil)
	}
	n := 0
	for _, err := range s.List(t.Context(), "") {
		require.NoError(t, err)
		if n++; n == 2 {
			break
		}
	}
	require.Equal(t, 2, n)
}

func deleteMissing(t testing.TB, s Store, c Caps) {
	err := s.Delete(t.Context(), "missing")
	if c.DeleteIsSilent && err == nil {
		return
	}
	require.ErrorIs(t, err, blobstore.ErrNotFound)
}

func deleteGone(t testing.TB, s Store, c Caps) {
	mustPut(t, s, "a/k", []byte("x"))
	mustPut(t, s, "a/l", []byte("y"))
	require.NoError(t, s.Delete(t.Context(), "a/k"))
	mustLack(t, s, "a/k")
	mustHold(t, s, "a/l", []byte("y"))
	require.NoError(t, s.PutBytes(t.Context(), "a/k", []byte("again"), &blobstore.PutOptions{OnlyIfAbsent: true}))
	mustHold(t, s, "a/k", []byte("again"))
	require.NoError(t, s.Delete(t.Context(), "a/k"))
	deleteMissing(t, s, c)
}

func deleteAll(t testing.TB, s Store, _ Caps) {
	for _, k := range []string{"a/1", "a/2/3", "ab", "b"} {
		mustPut(t, s, k, nil)
	}
	n, err := s.DeleteAll(t.Context(), "a/")
	require.NoError(t, err)
	require.Equal(t, 2, n)
	mustList(t, s, "", "ab", "b")
	n, err = s.DeleteAll(t.Context(), "")
	require.NoError(t, err)
	require.Equal(t, 2, n)
	mustList(t, s, "")
	n, err = s.DeleteAll(t.Context(), "")
	require.NoError(t, err)
	require.Zero(t, n)
}

func unicodeKeys(t testing.TB, s Store, _ Caps) {
	keys := []string{"a b", "a+b", "a%2Fb", "a=b&c", "Grüße/Straße", "日本/東京", "emoji-🗄", "a:b", "~a'(b)!*"}
	slices.Sort(keys)
	for _, k := range keys {
		mustPut(t, s, k, []byte(k))
	}
	for _, k := range keys {
		mustHold(t, s, k, []byte(k))
	}
	mustList(t, s, "", keys...)
	mustList(t, s, "日本/", "日本/東京")
	for _, k := range keys {
		require.NoError(t, s.Delete(t.Context(), k))
	}
	mustList(t, s, "")
}

// folderAndFile: a key may continue another one's with a slash, or that is refused and harms neither.
func folderAndFile(t testing.TB, s Store, c Caps) {
	mustPut(t, s, "a", []byte("file"))
	err := s.PutBytes(t.Context(), "a/x", []byte("below"), nil)
	mustHold(t, s, "a", []byte("file"))
	if c.NoFolderAndFile && err != nil {
		require.ErrorIs(t, err, blobstore.ErrInvalid)
		mustLack(t, s, "a/x")
		mustList(t, s, "", "a")
		return
	}
	require.NoError(t, err)
	mustHold(t, s, "a/x", []byte("below"))
	mustList(t, s, "", "a", "a/x")
	mustList(t, s, "a", "a", "a/x")
}

func refusedKeys(t testing.TB, s Store, _ Caps) {
	long := make([]byte, 1025)
	for i := range long {
		long[i] = 'x'
	}
	ctx := t.Context()
	for _, k := range []string{"", "/", "/a", "a/", "a//b", ".", "..", "../a", "a/../b", "a/./b", "a\x00b", "a\nb", "a\\b", "\xff", "a__0x2f__b", string(long)} {
		require.ErrorIs(t, s.PutBytes(ctx, k, nil, nil), blobstore.ErrInvalid, "key %q", k)
		require.ErrorIs(t, s.Put(ctx, k, endless(1, io.EOF), nil), blobstore.ErrInvalid, "key %q", k)
		require.ErrorIs(t, s.Delete(ctx, k), blobstore.ErrInvalid, "key %q", k)
		_, err := s.GetBytes(ctx, k, 1)
		require.ErrorIs(t, err, blobstore.ErrInvalid, "key %q", k)
		_, err = s.GetRange(ctx, k, 0, 0)
		require.ErrorIs(t, err, blobstore.ErrInvalid, "key %q", k)
		_, err = s.Stat(ctx, k)
		require.ErrorIs(t, err, blobstore.ErrInvalid, "key %q", k)
	}
	for _, prefix := range []string{"../", "a/../", "/", "a//"} {
		for _, err := range s.List(ctx, prefix) {
			require.ErrorIs(t, err, blobstore.ErrInvalid, "prefix %q", prefix)
		}
	}
	mustList(t, s, "")
}

func emptyObject(t testing.TB, s Store, _ Caps) {
	mustPut(t, s, "bytes", nil)
	require.NoError(t, s.Put(t.Context(), "stream", endless(0, io.EOF), nil))
	for _, k := range []string{"bytes", "stream"} {
		mustHold(t, s, k, nil)
		o, err := s.Stat(t.Context(), k)
		require.NoError(t, err)
		require.Zero(t, o.Size)
		_, err = s.GetRange(t.Context(), k, 0, 1)
		require.ErrorIs(t, err, blobstore.ErrCorrupt)
	}
	mustList(t, s, "", "bytes", "stream")
}
