package chunker

import (
	"encoding/binary"
	"fmt"

	restic "github.com/restic/chunker"
)

// Kind names a way of cutting; it is what snapshots record.
type Kind string

// The ways of cutting.
const (
	Gear  Kind = "gear"
	Rabin Kind = "rabin"
	Fixed Kind = "fixed"
)

const (
	// ZeroSize is the length of every zero chunk, and the least length of any chunk that does not end a file or a
	// run of data.
	ZeroSize = 512 << 10
	// DefaultFixedSize is the chunk length of Fixed when none is given.
	DefaultFixedSize = 1 << 20
	// MaxFixedSize bounds Fixed: whoever restores holds whole chunks in memory.
	MaxFixedSize = 32 << 20
)

// Cut is one decision.
type Cut struct {
	// Length of the chunk in bytes.
	Length int
	// Zero says that the chunk is ZeroSize zeros.
	Zero bool
}

// Splitter cuts one file at a time, and is not safe for concurrent use.
type Splitter interface {
	// Next cuts data, which begins at the given offset of the file, is not empty, and holds at least Window bytes
	// or all that is left of the file.
	Next(data []byte, offset int64) Cut
	// Zeros returns how many of the zeros that fill length bytes from offset on would be cut into zero chunks.
	Zeros(offset, length int64) int64
	// Max is the length of the longest chunk.
	Max() int
	// Window is how much of the file Next must see.
	Window() int
}

// New returns a splitter. The polynomial keys Gear and drives Rabin, which refuses one that is not irreducible.
// fixedSize is for Fixed alone: a multiple of 512 KiB up to 32 MiB, zero for 1 MiB.
func New(kind Kind, polynomial uint64, fixedSize int) (Splitter, error) {
	switch kind {
	case Gear:
		return newGear(polynomial), nil
	case Rabin:
		return newRabin(polynomial)
	case Fixed:
		return newFixed(fixedSize)
	}
	return nil, fmt.Errorf("chunker %q is unknown: use %s, %s or %s", kind, Gear, Rabin, Fixed)
}

// rabin cuts where restic cuts. It needs no rule for zeros: from a chunk's start, 512 KiB of zeros are a chunk.
type rabin struct {
	base *restic.BaseChunker
	pol  restic.Pol
}

func newRabin(polynomial uint64) (*rabin, error) {
	p := restic.Pol(polynomial)
	if d := p.Deg(); d < 8 || d > 53 || !p.Irreducible() {
		return nil, fmt.Errorf("chunker polynomial %x cannot be used: it is not irreducible of a degree from 8 to 53", polynomial)
	}
	return &rabin{base: restic.NewBase(p), pol: p}, nil
}

func (r *rabin) Max() int    { return restic.MaxSize }
func (r *rabin) Window() int { return restic.MaxSize }

func (r *rabin) Zeros(_, length int64) int64 { return length / ZeroSize * ZeroSize }

func (r *rabin) Next(data []byte, _ int64) Cut {
	if startsWithZeros(data, ZeroSize) {
		return Cut{Length: ZeroSize, Zero: true}
	}
	data = data[:min(len(data), restic.MaxSize)]
	if n := r.base.NextSplitPoint(data); n >= 0 {
		return Cut{Length: n}
	}
	r.base.Reset(r.pol) // the end of the file closes the chunk, and the next file starts afresh
	return Cut{Length: len(data)}
}

type fixed struct{ size int }

func newFixed(size int) (*fixed, error) {
	if size == 0 {
		size = DefaultFixedSize
	}
	if size < 0 || size%ZeroSize != 0 || size > MaxFixedSize {
		return nil, fmt.Errorf("fixed chunk size %d cannot be used: take a multiple of %d up to %d", size, ZeroSize, MaxFixedSize)
	}
	return &fixed{size: size}, nil
}

func (f *fixed) Max() int    { return f.size }
func (f *fixed) Window() int { return f.size }

func (f *fixed) Zeros(offset, length int64) int64 {
	size := int64(f.size)
	return max(0, (offset+length)/size*size-offset)
}

// Next cuts at multiples of the size; only what is zero up to the next multiple is cut into zero chunks.
func (f *fixed) Next(data []byte, offset int64) Cut {
	n := f.size - int(offset%int64(f.size))
	if startsWithZeros(data, n) {
		return Cut{Length: ZeroSize, Zero: true}
	}
	return Cut{Length: min(n, len(data))}
}

func startsWithZeros(data []byte, n int) bool { return len(data) >= n && AllZero(data[:n]) }

// AllZero reports whether data holds nothing but zeros.
func AllZero(data []byte) bool { return leadingZeros(data) == len(data) }

func leadingZeros(data []byte) int {
	i := 0
	for ; i+64 <= len(data); i += 64 {
		b := (*[64]byte)(data[i:])
		or := binary.NativeEndian.Uint64(b[0:]) | binary.NativeEndian.Uint64(b[8:]) |
			binary.NativeEndian.Uint64(b[16:]) | binary.NativeEndian.Uint64(b[24:]) |
			binary.NativeEndian.Uint64(b[32:]) | binary.NativeEndian.Uint64(b[40:]) |
			binary.NativeEndian.Uint64(b[48:]) | binary.NativeEndian.Uint64(b[56:])
		if or != 0 {
			break
		}
	}
	for ; i < len(data) && data[i] == 0; i++ {
	}
	return i
}
