package chunker

import (
	"crypto/sha256"
	"encoding/binary"
)

const (
	gearMin    = 512 << 10
	gearNormal = 1 << 20
	gearMax    = 4 << 20
	// A byte leaves the hash after 64 more, so the hash is warm when the first cut may be made.
	gearWarm = 64
	// Before gearNormal a cut is made once in 2^21 bytes, after it once in 2^19: sizes gather around 1.2 MiB.
	gearHard = uint64(1<<21-1) << 43
	gearEasy = uint64(1<<19-1) << 45
)

type gear struct{ table [256]uint64 }

// newGear fills the table from the polynomial: the same repository, or a copy that took over its polynomial, cuts
// alike, and nobody else can foretell the cuts.
func newGear(polynomial uint64) *gear {
	var g gear
	seed := binary.LittleEndian.AppendUint64([]byte("pvcbackup gear table 1"), polynomial)
	for i := 0; i < len(g.table); i += 4 {
		sum := sha256.Sum256(append(seed, byte(i)))
		for j := range 4 {
			g.table[i+j] = binary.LittleEndian.Uint64(sum[8*j:])
		}
	}
	return &g
}

func (g *gear) Max() int { return gearMax }

// Window is one zero run more than the longest chunk: a run that begins in the chunk is recognised as one.
func (g *gear) Window() int { return gearMax + ZeroSize }

func (g *gear) Zeros(_, length int64) int64 { return length / ZeroSize * ZeroSize }

func (g *gear) Next(data []byte, _ int64) Cut {
	if startsWithZeros(data, ZeroSize) {
		return Cut{Length: ZeroSize, Zero: true}
	}
	n := g.split(data[:min(len(data), gearMax)])
	return Cut{Length: zeroRun(data, n)}
}

func (g *gear) split(data []byte) int {
	if len(data) <= gearMin {
		return len(data)
	}
	var h uint64
	for _, b := range data[gearMin-gearWarm : gearMin] {
		h = h<<1 + g.table[b]
	}
	normal := min(gearNormal, len(data))
	for i, b := range data[gearMin:normal] {
		if h = h<<1 + g.table[b]; h&gearHard == 0 {
			return gearMin + i + 1
		}
	}
	for i, b := range data[normal:] {
		if h = h<<1 + g.table[b]; h&gearEasy == 0 {
			return normal + i + 1
		}
	}
	return len(data)
}

// zeroRun returns where the first run of ZeroSize zeros begins before n, or n. Such a run covers one of the places
// looked at, whatever its own start, so that nearly nothing is read of data without zeros.
func zeroRun(data []byte, n int) int {
	const step = ZeroSize / 2
	for at := step; at < n+step && at < len(data); at += step {
		if data[at] != 0 {
			continue
		}
		start := at
		for start > 0 && data[start-1] == 0 {
			start--
		}
		if start < n && startsWithZeros(data[start:], ZeroSize) {
			return start
		}
	}
	return n
}
