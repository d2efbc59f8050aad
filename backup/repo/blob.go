package repo

import (
	"fmt"

	"example.com/pvcbackup/backup/repo/internal/crypto"
)

// BlobType tells file content from directory listings. Blobs of different types are different blobs even when their
// content, and so their ID, is equal.
type BlobType uint8

// The types of blobs.
const (
	DataBlob BlobType = iota
	TreeBlob
)

// String returns the name that index files use.
func (t BlobType) String() string {
	switch t {
	case DataBlob:
		return "data"
	case TreeBlob:
		return "tree"
	}
	return fmt.Sprintf("blob type %d", uint8(t))
}

// MarshalText implements encoding.TextMarshaler.
func (t BlobType) MarshalText() ([]byte, error) {
	if t > TreeBlob {
		return nil, fmt.Errorf("%v does not exist", t)
	}
	return []byte(t.String()), nil
}

// UnmarshalText implements encoding.TextUnmarshaler.
func (t *BlobType) UnmarshalText(text []byte) error {
	switch string(text) {
	case "data":
		*t = DataBlob
	case "tree":
		*t = TreeBlob
	default:
		return fmt.Errorf("blob type %.20q is neither data nor tree", text)
	}
	return nil
}

// BlobHandle identifies a blob.
type BlobHandle struct {
	Type BlobType
	ID   ID
}

// String returns the type and the short ID.
func (h BlobHandle) String() string { return h.Type.String() + " blob " + h.ID.Short() }

// PackedBlob says where in a pack a blob is, in bytes.
type PackedBlob struct {
	BlobHandle
	Offset, Length uint32 // of the sealed blob
	PlainLength    uint32 // before compression; 0: stored uncompressed
}

// Size returns the length of the blob's plaintext in bytes.
func (b PackedBlob) Size() uint32 {
	if b.PlainLength > 0 {
		return b.PlainLength
	}
	return b.Length - min(b.Length, crypto.Overhead)
}

// maxBlob bounds what reading one blob may allocate: listings of huge directories are the largest blobs there are.
const maxBlob = 1 << 30

func (b PackedBlob) check() error {
	switch {
	case b.Length < crypto.Overhead:
		return fmt.Errorf("%v has a length of %d bytes, at least %d are needed", b.BlobHandle, b.Length, crypto.Overhead)
	case b.Length > maxBlob || b.PlainLength > maxBlob:
		return fmt.Errorf("%v has lengths of %d and %d bytes, more than %d", b.BlobHandle, b.Length, b.PlainLength, maxBlob)
	case uint64(b.Offset)+uint64(b.Length) > 1<<32-1:
		return fmt.Errorf("%v ends beyond 4 GiB", b.BlobHandle)
	}
	return nil
}
