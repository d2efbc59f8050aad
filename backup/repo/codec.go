package repo

import (
	"errors"
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"
)

const (
	maxUnpacked  = 256 << 20 // of an index, snapshot, lock or config, stored or decoded, in bytes
	maxKeyFile   = 1 << 20
	formatZstd   = 2 // first byte of a compressed unpacked file
	zstdWindow   = 512 << 10
	decoderLimit = 4 // decoders at work at once
)

// newEncoder makes one that EncodeAll may use n times at once.
func newEncoder(level zstd.EncoderLevel, n int, more ...zstd.EOption) *zstd.Encoder {
	e, err := zstd.NewWriter(nil, append([]zstd.EOption{
		zstd.WithEncoderLevel(level), zstd.WithEncoderCRC(false), zstd.WithWindowSize(zstdWindow), zstd.WithEncoderConcurrency(n),
	}, more...)...)
	if err != nil {
		panic(err) // only for options that do not exist
	}
	return e
}

func newDecoder(options ...zstd.DOption) *zstd.Decoder {
	d, err := zstd.NewReader(nil, append(options, zstd.WithDecoderConcurrency(decoderLimit))...)
	if err != nil {
		panic(err) // only for options that do not exist
	}
	return d
}

// codec compresses unpacked files, and decompresses them and blobs. Its coders are made when they are first needed,
// because they are large.
type codec struct {
	fileEncoder func() *zstd.Encoder
	fileDecoder func() *zstd.Decoder
	blobDecoder func() *zstd.Decoder
}

func newCodec() *codec {
	return &codec{
		fileEncoder: sync.OnceValue(func() *zstd.Encoder { return newEncoder(zstd.SpeedDefault, 2) }),
		fileDecoder: sync.OnceValue(func() *zstd.Decoder { return newDecoder(zstd.WithDecoderMaxMemory(maxUnpacked)) }),
		blobDecoder: sync.OnceValue(func() *zstd.Decoder { return newDecoder(zstd.WithDecodeAllCapLimit(true)) }),
	}
}

// encodeUnpacked gives the plaintext of an unpacked file that holds the JSON text.
func (c *codec) encodeUnpacked(version uint, text []byte) []byte {
	if version < 2 || len(text) == 0 {
		return text
	}
	return c.fileEncoder().EncodeAll(text, []byte{formatZstd})
}

// decodeUnpacked is the reverse; it takes what any version wrote.
func (c *codec) decodeUnpacked(plain []byte) ([]byte, error) {
	if len(plain) == 0 {
		return plain, nil
	}
	switch plain[0] {
	case '{', '[':
		return plain, nil
	case formatZstd:
		text, err := c.fileDecoder().DecodeAll(plain[1:], nil)
		if err != nil {
			return nil, fmt.Errorf("decompress: %w", err)
		}
		return text, nil
	}
	return nil, fmt.Errorf("the file's encoding %#02x is not supported", plain[0])
}

// decompress decodes a blob into buf, which is used when it is large enough. size is the exact length expected.
func (c *codec) decompress(stored []byte, size uint32, buf []byte) ([]byte, error) {
	if uint64(cap(buf)) < uint64(size) {
		buf = make([]byte, 0, size)
	}
	plain, err := c.blobDecoder().DecodeAll(stored, buf[:0:size])
	if errors.Is(err, zstd.ErrDecoderSizeExceeded) {
		return nil, fmt.Errorf("the blob decompresses to more than the expected %d bytes", size)
	}
	if err != nil {
		return nil, fmt.Errorf("decompress: %w", err)
	}
	if len(plain) != int(size) {
		return nil, fmt.Errorf("the blob decompresses to %d bytes instead of %d", len(plain), size)
	}
	return plain, nil
}
