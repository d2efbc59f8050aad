package mem

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/pvcbackup/blobstore"
	"example.com/pvcbackup/blobstore/blobtest"
	"example.com/pvcbackup/blobstore/internal/matrix"
)

func open(t testing.TB, openers map[string]blobstore.Opener, url string) *blobstore.Store {
	s, err := blobstore.Open(t.Context(), url, &blobstore.Options{Openers: openers})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func TestConformance(t *testing.T) {
	matrix.Check(t, "mem", func(t testing.TB) blobtest.Store { return open(t, Openers(), "mem://test/a/prefix") }, blobtest.Caps{})
}

func TestOpensOfOneMapShareBuckets(t *testing.T) {
	m := Openers()
	a := open(t, m, "mem://one")
	require.NoError(t, a.PutBytes(t.Context(), "p/k", []byte("x"), nil))
	require.NoError(t, a.Close())
	_, err := open(t, m, "mem://one/p").Stat(t.Context(), "k")
	require.NoError(t, err)
	_, err = open(t, m, "mem://two/p").Stat(t.Context(), "k")
	require.ErrorIs(t, err, blobstore.ErrNotFound)
	_, err = open(t, Openers(), "mem://one/p").Stat(t.Context(), "k")
	require.ErrorIs(t, err, blobstore.ErrNotFound)
}

func TestUnknownParametersAndNoNameAreRefused(t *testing.T) {
	for _, url := range []string{"mem://x?nomd5", "mem:", "mem:///prefix"} {
		_, err := blobstore.Open(t.Context(), url, &blobstore.Options{Openers: Openers()})
		require.ErrorIs(t, err, blobstore.ErrInvalid, url)
	}
}

func BenchmarkMem(b *testing.B) {
	blobtest.Bench(b, func(t testing.TB) blobtest.Store { return open(t, Openers(), "mem://test") })
}
