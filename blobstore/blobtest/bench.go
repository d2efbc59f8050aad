package blobtest

import (
	"crypto/sha256"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/pvcbackup/blobstore"
)

// Bench measures putting packs of 16 MiB with a known digest, reading ranges of
// 1 MiB of them, and listing 1,000 objects.
func Bench(b *testing.B, open func(t testing.TB) Store) {
	b.Helper()
	data := content(1, 16<<20)
	sum := sha256.Sum256(data)
	b.Run("PutBytes", func(b *testing.B) {
		s := open(b)
		b.SetBytes(int64(len(data)))
		b.ReportAllocs()
		for b.Loop() {
			require.NoError(b, s.PutBytes(b.Context(), "pack", data, &blobstore.PutOptions{SHA256: &sum}))
		}
	})
	b.Run("GetRange", func(b *testing.B) {
		s := open(b)
		mustPut(b, s, "pack", data)
		b.SetBytes(1 << 20)
		b.ReportAllocs()
		for b.Loop() {
			_, err := s.GetRange(b.Context(), "pack", 5<<20, 1<<20)
			require.NoError(b, err)
		}
	})
	b.Run("List", func(b *testing.B) {
		s := open(b)
		for i := range 1000 {
			mustPut(b, s, fmt.Sprintf("data/%02x/%04x", i%256, i), nil)
		}
		b.ReportAllocs()
		for b.Loop() {
			require.Len(b, list(b, s, "data/"), 1000)
		}
	})
}
