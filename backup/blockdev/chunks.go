package blockdev

import (
	"iter"
	"math/bits"
)

// geometry is how a volume is cut: chunk k is [k·chunk, min((k+1)·chunk, size)).
type geometry struct{ size, chunk int64 }

func (g geometry) chunks() int { return int((g.size + g.chunk - 1) / g.chunk) }

func (g geometry) index(offset int64) int { return int(offset / g.chunk) }

func (g geometry) offset(k int) int64 { return int64(k) * g.chunk }

func (g geometry) length(k int) int64 { return min(g.chunk, g.size-g.offset(k)) }

// chunkSet is a set of chunks of a volume that has n.
type chunkSet struct {
	n     int
	words []uint64
}

func newChunkSet(n int) *chunkSet { return &chunkSet{n: n, words: make([]uint64, (n+63)/64)} }

func allChunks(n int) *chunkSet {
	s := newChunkSet(n)
	s.addRange(0, n-1)
	return s
}

// addRange adds the chunks from first to last, both included.
func (s *chunkSet) addRange(first, last int) {
	for k := first; k <= last; {
		if k%64 == 0 && last-k >= 63 {
			s.words[k/64] = ^uint64(0)
			k += 64
			continue
		}
		s.words[k/64] |= 1 << (k % 64)
		k++
	}
}

func (s *chunkSet) has(k int) bool { return s.words[k/64]&(1<<(k%64)) != 0 }

func (s *chunkSet) count() int {
	total := 0
	for _, w := range s.words {
		total += bits.OnesCount64(w)
	}
	return total
}

// all yields the chunks in ascending order.
func (s *chunkSet) all() iter.Seq[int] {
	return func(yield func(int) bool) {
		for i, w := range s.words {
			for ; w != 0; w &= w - 1 {
				if !yield(i*64 + bits.TrailingZeros64(w)) {
					return
				}
			}
		}
	}
}

// without returns the chunks that are in s and not in other.
func (s *chunkSet) without(other *chunkSet) *chunkSet {
	out := newChunkSet(s.n)
	for i, w := range s.words {
		out.words[i] = w &^ other.words[i]
	}
	return out
}

// and returns the chunks that are in both.
func (s *chunkSet) and(other *chunkSet) *chunkSet {
	out := newChunkSet(s.n)
	for i, w := range s.words {
		out.words[i] = w & other.words[i]
	}
	return out
}
