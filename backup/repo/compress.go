package repo

import (
	"bytes"
	"fmt"

	"github.com/klauspost/compress/zstd"
)

// Compression chooses the effort put into compressing. Incompressible data is stored as it is at every level.
type Compression uint8

// The levels. CompressFastest is the default: it costs about 5 % more space than CompressDefault and 35 % less time.
const (
	CompressFastest Compression = iota
	CompressDefault
	CompressBetter
	CompressOff // trees are compressed nevertheless
)

func (c Compression) level() zstd.EncoderLevel {
	switch c {
	case CompressDefault:
		return zstd.SpeedDefault
	case CompressBetter:
		return zstd.SpeedBetterCompression
	default:
		return zstd.SpeedFastest
	}
}

const (
	probeSample = 16 << 10
	probeFrom   = 8 * probeSample // shorter blobs are compressed without a probe
	keepScratch = 16 << 20        // larger buffers are not kept for the next blob
	evenSample  = 4 << 10
)

// scratch is what one worker needs to encode blobs. Buffers are kept from blob to blob.
type scratch struct {
	codec *codec
	// matches finds repetitions, and leaves alone what has none. letters also makes use of bytes that are more frequent
	// than others, which is all there is to gain in small files, and takes time where it gains nothing.
	matches, letters *zstd.Encoder
	packed, plain    []byte
}

func newScratch(c *codec, level Compression) *scratch {
	return &scratch{
		codec:   c,
		matches: newEncoder(level.level(), 1),
		letters: newEncoder(level.level(), 1, zstd.WithAllLitEntropyCompression(true)),
	}
}

// encode returns what to seal for a blob, and the length of plain if that is compressed, else 0. The result is valid
// until the next call.
func (s *scratch) encode(t BlobType, plain []byte, c Compression, verify bool) ([]byte, uint32, error) {
	if len(plain) == 0 || t == DataBlob && (c == CompressOff || !s.compress(plain)) {
		return plain, 0, nil
	}
	if t == TreeBlob {
		s.packed = s.matches.EncodeAll(plain, s.packed[:0])
	}
	if verify {
		// Encoders have had bugs that only show when the data is needed.
		got, err := s.codec.decompress(s.packed, uint32(len(plain)), s.plain)
		if err == nil && !bytes.Equal(got, plain) {
			err = fmt.Errorf("the content differs")
		}
		if err != nil {
			return nil, 0, fmt.Errorf("a compressed %v blob of %d bytes does not decompress to what it was: %w", t, len(plain), err)
		}
		s.plain = got
	}
	return s.packed, uint32(len(plain)), nil
}

// compress puts what becomes of data into packed, and reports whether that is worth it.
func (s *scratch) compress(plain []byte) bool {
	encoder := s.letters
	if even(plain) {
		if len(plain) >= probeFrom && !s.repeats(plain) {
			return false
		}
		encoder = s.matches
	}
	s.packed = encoder.EncodeAll(plain, s.packed[:0])
	return worthwhile(len(s.packed), len(plain))
}

// trim lets go of the buffers of an unusually large blob.
func (s *scratch) trim() {
	if cap(s.packed) > keepScratch {
		s.packed = nil
	}
	if cap(s.plain) > keepScratch {
		s.plain = nil
	}
}

// worthwhile asks for a gain that pays for decompression: 3 %.
func worthwhile(packed, plain int) bool { return packed < plain-plain/32 }

// samples are the beginning, the middle and the end of a long blob.
func samples(plain []byte, size int) [3][]byte {
	middle := len(plain)/2 - size/2
	return [3][]byte{plain[:size], plain[middle : middle+size], plain[len(plain)-size:]}
}

// repeats tries three samples of a long blob.
func (s *scratch) repeats(plain []byte) bool {
	for _, sample := range samples(plain, probeSample) {
		s.packed = s.matches.EncodeAll(sample, s.packed[:0])
		if worthwhile(len(s.packed), len(sample)) {
			return true
		}
	}
	return false
}

// even reports whether all bytes are about as frequent, as in what is compressed or encrypted already: three samples of
// a long blob, the whole of a short one.
func even(plain []byte) bool {
	if len(plain) <= 3*evenSample {
		return evenBytes(plain)
	}
	for _, sample := range samples(plain, evenSample) {
		if !evenBytes(sample) {
			return false
		}
	}
	return true
}

// evenBytes compares how often two bytes are equal with how often random ones would be: up to a tenth more often, which
// is worth less than 3 % of the space, and some more where there are few of them to tell by.
func evenBytes(b []byte) bool {
	var counts [256]uint32
	for _, c := range b {
		counts[c]++
	}
	pairs := uint64(0)
	for _, n := range counts {
		pairs += uint64(n) * uint64(n-min(n, 1))
	}
	n := uint64(len(b))
	random := n * n / 256
	return pairs <= random+random/10+4*n/10
}
