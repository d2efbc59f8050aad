package restorer_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"example.com/pvcbackup/backup/internal/edgetree"
	"example.com/pvcbackup/backup/restorer"
	"github.com/stretchr/testify/require"
)

func BenchmarkRestore(b *testing.B) {
	for name, fill := range map[string]func(dir string){
		"large": func(dir string) {
			for i := range 4 {
				require.NoError(b, os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), edgetree.Random(int64(i), 32<<20), 0o600))
			}
		},
		"many": func(dir string) {
			for i := range 10_000 {
				write(b, filepath.Join(dir, fmt.Sprint(i%100), fmt.Sprint(i)), fmt.Sprintf("file %d\n", i))
			}
		},
	} {
		b.Run(name, func(b *testing.B) {
			source := b.TempDir()
			fill(source)
			r, _ := memoryRepository(b)
			done := backup(b, r, source)
			b.SetBytes(int64(done.Bytes.New))
			for b.Loop() {
				target := b.TempDir()
				restore(b, r, done.SnapshotID, target, restorer.Options{})
				b.StopTimer()
				require.NoError(b, os.RemoveAll(target))
				b.StartTimer()
			}
			b.ReportMetric(float64(done.Files.New)*float64(b.N)/b.Elapsed().Seconds(), "files/s")
		})
	}
}
