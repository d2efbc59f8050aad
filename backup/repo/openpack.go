package repo

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"sync"

	"example.com/pvcbackup/backup/repo/internal/crypto"
)

// openPack is a pack in memory that blobs are appended to. Its hash is kept up to date while the bytes are in the cache.
type openPack struct {
	cipher *crypto.Cipher
	buf    []byte
	blobs  []PackedBlob
	sum    hash.Hash
	plain  int64 // bytes before compression
}

func newOpenPack(c *crypto.Cipher, buf []byte) *openPack {
	return &openPack{cipher: c, buf: buf[:0], sum: sha256.New()}
}

// fits reports whether n more sealed blobs of together length bytes leave the pack within size.
func (p *openPack) fits(n, length, size int) bool {
	n += len(p.blobs)
	return n <= maxPackBlobs && len(p.buf)+length+packOverhead(n) <= size
}

// add seals a blob at the end of the pack.
func (p *openPack) add(h BlobHandle, stored []byte, plainLength uint32, size int) {
	start := len(p.buf)
	p.buf = p.cipher.Seal(p.buf, stored)
	p.blobs = append(p.blobs, PackedBlob{h, uint32(start), uint32(len(p.buf) - start), plainLength})
	p.sum.Write(p.buf[start:])
	p.plain += int64(size)
}

// absorb appends the blobs of q.
func (p *openPack) absorb(q *openPack) {
	shift := uint32(len(p.buf))
	p.buf = append(p.buf, q.buf...)
	p.sum.Write(q.buf)
	for _, b := range q.blobs {
		b.Offset += shift
		p.blobs = append(p.blobs, b)
	}
	p.plain += q.plain
}

// finish appends the header and returns the pack's ID.
func (p *openPack) finish() ID {
	start := len(p.buf)
	p.buf = p.cipher.Seal(p.buf, appendHeader(nil, p.blobs))
	p.buf = binary.LittleEndian.AppendUint32(p.buf, uint32(len(p.buf)-start))
	p.sum.Write(p.buf[start:])
	return ID(p.sum.Sum(nil))
}

// slot holds at most one open pack. Whoever holds mu may use it.
type slot struct {
	mu   sync.Mutex
	pack *openPack
}
