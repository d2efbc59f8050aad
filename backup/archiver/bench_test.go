package archiver

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"example.com/pvcbackup/backup/internal/edgetree"
	"github.com/stretchr/testify/require"
)

// corpora are the two that tell pipelines apart: data that only costs bandwidth, and files that only cost calls.
func corpora(b *testing.B) map[string]string {
	b.Helper()
	large, many := b.TempDir(), b.TempDir()
	for i := range 4 {
		require.NoError(b, os.WriteFile(filepath.Join(large, fmt.Sprint(i)), edgetree.Random(int64(i), 32<<20), 0o600))
	}
	for i := range 10_000 {
		write(b, fmt.Sprintf("file %d\n", i), many, fmt.Sprint(i%100), fmt.Sprint(i))
	}
	return map[string]string{"large": large, "many": many}
}

func BenchmarkFirstBackup(b *testing.B) {
	for name, source := range corpora(b) {
		b.Run(name, func(b *testing.B) {
			var got *Result
			for b.Loop() {
				b.StopTimer()
				r, _ := initRepository(b)
				b.StartTimer()
				got = run(b, r, source, options(0))
			}
			b.SetBytes(int64(got.Bytes.New))
			b.ReportMetric(float64(got.Files.New)*float64(b.N)/b.Elapsed().Seconds(), "files/s")
		})
	}
}

func BenchmarkUnchangedBackup(b *testing.B) {
	for name, source := range corpora(b) {
		b.Run(name, func(b *testing.B) {
			r, _ := initRepository(b)
			first := run(b, r, source, options(0))
			b.SetBytes(int64(first.Bytes.New))
			n := 0
			for b.Loop() {
				n++
				got := run(b, r, source, options(n))
				require.Zero(b, got.Files.New+got.Files.Changed)
			}
			b.ReportMetric(float64(first.Files.New)*float64(b.N)/b.Elapsed().Seconds(), "files/s")
		})
	}
}
