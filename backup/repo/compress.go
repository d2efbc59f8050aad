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
)

// scratch is what one worker needs to encode blobs. Buffers are kept from blob to blob.
type scratch struct {
	codec         *codec
	encoder       *zstd.Encoder
	packed, plain []byte
}

func newScratch(c *codec, level Compression) *scratch {
	return &scratch{codec: c, encoder: newEncoder(level.level(), 1)}
}

// encode returns what to seal for a blob, and the length of plain if that is compressed, else 0. The result is valid
// until the next call.
func (s *scratch) encode(t BlobType, plain []byte, c Compression, verify bool) ([]byte, uint32, error) {
	if len(plain) == 0 || t == DataBlob && (c == CompressOff || !s.compressible(plain)) {
		return plain, 0, nil
	}
	s.packed = s.encoder.EncodeAll(plain, s.packed[:0])
	if t == DataBlob && !worthwhile(len(s.packed), len(plain)) {
		return plain, 0, nil
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

// compressible tries three samples of a long blob: its beginning, its middle and its end.
func (s *scratch) compressible(plain []byte) bool {
	if len(plain) < probeFrom {
		return true
	}
	for _, at := range [...]int{0, len(plain)/2 - probeSample/2, len(plain) - probeSample} {
		s.packed = s.encoder.EncodeAll(plain[at:at+probeSample], s.packed[:0])
		if worthwhile(len(s.packed), probeSample) {
			return true
		}
	}
	return false
}
