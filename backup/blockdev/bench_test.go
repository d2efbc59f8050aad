package blockdev

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

const benchSize = 256 * mib

func BenchmarkFullBackup(b *testing.B) {
	d := newDisk(1, benchSize)
	b.SetBytes(benchSize)
	for b.Loop() {
		b.StopTimer()
		r, _ := initRepository(b)
		b.StartTimer()
		run(b, r, d, Options{Host: "h", Path: "/p"})
	}
}

// BenchmarkUnchangedFullBackup reads and hashes everything, and stores nothing.
func BenchmarkUnchangedFullBackup(b *testing.B) {
	d := newDisk(1, benchSize)
	r, _ := initRepository(b)
	run(b, r, d, Options{Host: "h", Path: "/p"})
	b.SetBytes(benchSize)
	for b.Loop() {
		require.Zero(b, run(b, r, d, Options{Host: "h", Path: "/p"}).Bytes.Changed)
	}
}

// BenchmarkChangedBackup has 4 KiB changed in every hundredth chunk.
func BenchmarkChangedBackup(b *testing.B) {
	d := newDisk(1, benchSize)
	r, _ := initRepository(b)
	o := Options{Host: "h", Path: "/p", Handle: "a"}
	run(b, r, d, o)
	var ranges []Range
	for at := int64(0); at < benchSize; at += 100 * mib {
		ranges = append(ranges, Range{at, 4 * kib})
	}
	o = o.since("a", benchSize, ranges...)
	b.SetBytes(benchSize)
	for n := 0; b.Loop(); n++ {
		for _, r := range ranges {
			d.data[r.Offset] = byte(n)
		}
		require.Equal(b, ReadChanged, run(b, r, d, o).Read)
	}
}

func BenchmarkRestore(b *testing.B) {
	d := newDisk(1, benchSize)
	r, _ := initRepository(b)
	done := run(b, r, d, Options{Host: "h", Path: "/p"})
	path := filepath.Join(b.TempDir(), "f")
	b.SetBytes(benchSize)
	for b.Loop() {
		_, err := RestoreToFile(b.Context(), r, done.SnapshotID, path, RestoreOptions{Overwrite: true})
		require.NoError(b, err)
	}
}
