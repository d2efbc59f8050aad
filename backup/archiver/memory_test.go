package archiver

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/pvcbackup/backup/internal/edgetree"
	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/backup/repo/repotest"
)

// resident is what the runtime holds of the machine's memory, in bytes.
func resident() uint64 {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	return samples[0].Value.Uint64() - samples[1].Value.Uint64()
}

// peakOf returns the most that is resident while fn runs.
func peakOf(fn func()) (most uint64) {
	done := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		for {
			most = max(most, resident())
			select {
			case <-tick.C:
			case <-done:
				return
			}
		}
	})
	fn()
	close(done)
	watching.Wait()
	return most
}

// TestARunStaysWithinItsMemory does what the data tool does with a total of 256 and of 128 MiB: 32 MiB of it are left for
// the program itself, and 11 parts of 16 are for buffers.
func TestARunStaysWithinItsMemory(t *testing.T) {
	source := t.TempDir()
	for i := range 3 {
		large := edgetree.Random(int64(i), 64<<20)
		require.NoError(t, os.WriteFile(filepath.Join(source, fmt.Sprint("random", i)), large, 0o600))
	}
	lines := bytes.Repeat([]byte(strings.Repeat("a line of text\n", 99)), 16<<20/15/99)
	require.NoError(t, os.WriteFile(filepath.Join(source, "text"), lines, 0o600))
	for i := range 2000 {
		write(t, strings.Repeat(fmt.Sprint(i), 1000), source, fmt.Sprint("small", i/100), fmt.Sprint(i))
	}
	for _, total := range []int64{256 << 20, 128 << 20} {
		t.Run(fmt.Sprint(total>>20, " MiB"), func(t *testing.T) {
			store, err := repotest.NewDir(t.TempDir())
			require.NoError(t, err)
			r, err := repo.Init(t.Context(), store, password, &repo.InitOptions{KeyOptions: repo.KeyOptions{Scrypt: repo.ScryptParams(repotest.Cheap)}})
			require.NoError(t, err)
			limit := debug.SetMemoryLimit(total - 32<<20)
			percent := debug.SetGCPercent(50)
			defer func() {
				debug.SetMemoryLimit(limit)
				debug.SetGCPercent(percent)
			}()
			debug.FreeOSMemory()
			o := options(0)
			o.MemoryBudget = total / 16 * 11
			peak := peakOf(func() { run(t, r, source, o) })
			t.Logf("at most %d MiB", peak>>20)
			require.Less(t, peak, uint64(total-32<<20))
		})
	}
}
