package blobtest

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"example.com/pvcbackup/blobstore"
)

var errBroken = errors.New("the reader broke")

// content returns n bytes that differ by seed.
func content(seed uint64, n int) []byte {
	b := make([]byte, n)
	c := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), 7})
	_, _ = c.Read(b)
	return b
}

// stream hides everything of a reader but Read.
type stream struct{ io.Reader }

// endless yields n bytes and then what end says.
func endless(n int64, end error) io.Reader {
	return io.MultiReader(io.LimitReader(stream{rand.NewChaCha8([32]byte{1})}, n), failing{end})
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// after runs do when n bytes have been read.
type after struct {
	r  io.Reader
	n  int
	do func()
}

func (a *after) Read(p []byte) (int, error) {
	if a.n <= 0 && a.do != nil {
		a.do()
		a.do = nil
	}
	n, err := a.r.Read(p)
	a.n -= n
	return n, err
}

func mustPut(t testing.TB, s Store, key string, data []byte) {
	t.Helper()
	require.NoError(t, s.PutBytes(t.Context(), key, data, nil))
}

func mustHold(t testing.TB, s Store, key string, want []byte) {
	t.Helper()
	got, err := s.GetBytes(t.Context(), key, int64(len(want))+1)
	require.NoError(t, err)
	require.True(t, string(got) == string(want), "%q holds %d bytes that are not the %d expected", key, len(got), len(want))
}

// mustLack checks that neither Stat nor List knows the key.
func mustLack(t testing.TB, s Store, key string) {
	t.Helper()
	_, err := s.Stat(t.Context(), key)
	require.ErrorIs(t, err, blobstore.ErrNotFound)
	require.NotContains(t, list(t, s, key), key)
}

func list(t testing.TB, s Store, prefix string) []string {
	t.Helper()
	got := []string{}
	for o, err := range s.List(t.Context(), prefix) {
		require.NoError(t, err)
		got = append(got, o.Key)
	}
	return got
}

func mustList(t testing.TB, s Store, prefix string, want ...string) {
	t.Helper()
	if want == nil {
		want = []string{}
	}
	if diff := cmp.Diff(want, list(t, s, prefix)); diff != "" {
		t.Fatalf("list %q (-want +got):\n%s", prefix, diff)
	}
}

// ended returns a context that has ended.
func ended(t testing.TB) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}
