package repo

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"example.com/pvcbackup/backup/repo/internal/crypto"
)

const (
	entryPlain      = 1 + 4 + 32     // header entry of a blob that is stored as it is
	entryCompressed = 1 + 4 + 4 + 32 // header entry of a compressed blob
	packLengthSize  = 4
	maxPackHeader   = 16 << 20 // sealed, without its length field
	maxPackBlobs    = (maxPackHeader - crypto.Overhead) / entryCompressed
	minPack         = entryPlain + crypto.Overhead + packLengthSize
	// headerGuess is how much of a pack's end is read first: enough for 15 blobs.
	headerGuess = packLengthSize + crypto.Overhead + 15*entryCompressed
	flagTree    = 1
	flagZstd    = 2
)

// appendHeader appends a pack header's plaintext.
func appendHeader(dst []byte, blobs []PackedBlob) []byte {
	for _, b := range blobs {
		var kind byte
		if b.Type == TreeBlob {
			kind |= flagTree
		}
		if b.PlainLength > 0 {
			kind |= flagZstd
		}
		dst = append(dst, kind)
		dst = binary.LittleEndian.AppendUint32(dst, b.Length)
		if b.PlainLength > 0 {
			dst = binary.LittleEndian.AppendUint32(dst, b.PlainLength)
		}
		dst = append(dst, b.ID[:]...)
	}
	return dst
}

// packOverhead returns how many bytes a pack of n blobs has at most besides the sealed blobs.
func packOverhead(n int) int { return n*entryCompressed + crypto.Overhead + packLengthSize }

// PackSize returns the exact size that a pack of these blobs has, in bytes.
func PackSize(blobs []PackedBlob) int64 {
	size := int64(crypto.Overhead + packLengthSize)
	for _, b := range blobs {
		size += int64(b.Length) + entryPlain
		if b.PlainLength > 0 {
			size += entryCompressed - entryPlain
		}
	}
	return size
}

// parseHeader is the reverse of appendHeader; offsets are running sums.
func parseHeader(plain []byte) ([]PackedBlob, error) {
	blobs := make([]PackedBlob, 0, len(plain)/entryPlain)
	var offset uint64
	for len(plain) > 0 {
		kind := plain[0]
		if kind > flagTree|flagZstd {
			return nil, fmt.Errorf("the header has an entry of the unknown type %d", kind)
		}
		size := entryPlain
		if kind&flagZstd != 0 {
			size = entryCompressed
		}
		if len(plain) < size {
			return nil, errors.New("the header ends in the middle of an entry")
		}
		b := PackedBlob{Offset: uint32(offset), Length: binary.LittleEndian.Uint32(plain[1:])}
		if kind&flagTree != 0 {
			b.Type = TreeBlob
		}
		if kind&flagZstd != 0 {
			b.PlainLength = binary.LittleEndian.Uint32(plain[5:])
		}
		copy(b.ID[:], plain[size-32:])
		if err := b.check(); err != nil {
			return nil, err
		}
		if kind&flagZstd != 0 && b.PlainLength == 0 {
			return nil, fmt.Errorf("%v is compressed and empty", b.BlobHandle)
		}
		if offset += uint64(b.Length); offset > 1<<32-1 {
			return nil, errors.New("the blobs are longer than 4 GiB")
		}
		blobs = append(blobs, b)
		plain = plain[size:]
	}
	return blobs, nil
}

// PackHeader reads what is in a pack from the pack itself. size is the stored object's, in bytes. A header that does not
// fit the size is a DamagedError.
func (r *Repository) PackHeader(ctx context.Context, id ID, size int64) ([]PackedBlob, error) {
	key := PackFile.Key(id)
	if size < minPack {
		return nil, damaged(key, "it has %d bytes, at least %d are needed", size, minPack)
	}
	tail, err := r.packTail(ctx, key, size, min(size, headerGuess))
	if err != nil {
		return nil, err
	}
	length, err := headerLength(key, size, tail)
	if err != nil {
		return nil, err
	}
	if need := length + packLengthSize; need > int64(len(tail)) {
		if tail, err = r.packTail(ctx, key, size, need); err != nil {
			return nil, err
		}
	}
	return r.parseTail(key, size, tail)
}

// headerLength reads what a pack's last bytes claim.
func headerLength(key string, size int64, tail []byte) (int64, error) {
	if size < minPack {
		return 0, damaged(key, "it has %d bytes, at least %d are needed", size, minPack)
	}
	length := int64(binary.LittleEndian.Uint32(tail[len(tail)-packLengthSize:]))
	if length > maxPackHeader || length > size-packLengthSize || length < entryPlain+crypto.Overhead {
		return 0, damaged(key, "its header claims %d bytes", length)
	}
	return length, nil
}

// parseTail reads the header from a pack's end, or from the whole pack. size is the pack's.
func (r *Repository) parseTail(key string, size int64, tail []byte) ([]PackedBlob, error) {
	length, err := headerLength(key, size, tail)
	if err != nil {
		return nil, err
	}
	end := int64(len(tail)) - packLengthSize
	if length > end {
		return nil, damaged(key, "its header claims %d bytes", length)
	}
	plain, err := r.cipher.Open(nil, tail[end-length:end])
	if err != nil {
		return nil, damaged(key, "header: %w", err)
	}
	blobs, err := parseHeader(plain)
	if err != nil {
		return nil, damaged(key, "%w", err)
	}
	if want := PackSize(blobs); want != size {
		return nil, damaged(key, "it has %d bytes, by its header it should have %d", size, want)
	}
	return blobs, nil
}

func (r *Repository) packTail(ctx context.Context, key string, size, length int64) ([]byte, error) {
	tail, err := r.store.GetRange(ctx, key, size-length, length)
	if err != nil {
		return nil, fmt.Errorf("read the header of %s: %w", key, err)
	}
	if int64(len(tail)) != length {
		return nil, damaged(key, "the store returned %d bytes instead of %d", len(tail), length)
	}
	return tail, nil
}
