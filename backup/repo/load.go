package repo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"example.com/pvcbackup/backup/repo/id"
	"example.com/pvcbackup/blobstore"
)

const (
	readGap = 256 << 10 // blobs that are at most so far apart are read together, in bytes
	readMax = 16 << 20  // no more than this is read together
)

// LoadBlob returns the content of a blob, compared with its hash. Damaged or missing copies are passed over as long as
// another copy is good. buf may be used for the result, which is valid until buf is used again; nil is fine.
// Errors: ErrNotFound when no index lists the blob, ErrDamaged when a copy is damaged and no other is good.
func (r *Repository) LoadBlob(ctx context.Context, h BlobHandle, buf []byte) ([]byte, error) {
	return r.loadAny(ctx, h, r.Locations(h), buf, nil)
}

// loadAny tries the places in turn; failures are of places that were tried before.
func (r *Repository) loadAny(ctx context.Context, h BlobHandle, places []Location, buf []byte, failures []error) ([]byte, error) {
	for _, place := range places {
		plain, err := r.loadCopy(ctx, place, buf)
		if err == nil {
			return plain, nil
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		failures = append(failures, err)
	}
	if len(failures) == 0 {
		return nil, fmt.Errorf("%v (%s): %w in the index", h, h.ID, ErrNotFound)
	}
	return nil, fmt.Errorf("read %v: %w", h, errors.Join(failures...))
}

// loadCopy reads one copy, and once more if it comes damaged: transfers fail more often than disks.
func (r *Repository) loadCopy(ctx context.Context, place Location, buf []byte) ([]byte, error) {
	for attempt := 1; ; attempt++ {
		sealed, err := r.sealed(ctx, place, attempt == 1)
		if err != nil {
			return nil, err
		}
		plain, err := r.openBlob(place.Pack, place.PackedBlob, sealed, buf)
		if err == nil || attempt == 2 {
			return plain, err
		}
	}
}

func (r *Repository) sealed(ctx context.Context, place Location, first bool) ([]byte, error) {
	if first && place.Type == TreeBlob {
		return r.trees.sealed(ctx, r, place)
	}
	return r.readRange(ctx, place.Pack, place.Offset, place.Length)
}

func (r *Repository) readRange(ctx context.Context, pack ID, offset, length uint32) ([]byte, error) {
	key := PackFile.Key(pack)
	data, err := r.store.GetRange(ctx, key, int64(offset), int64(length))
	if errors.Is(err, ErrNotFound) {
		return nil, damaged(key, "an index lists it: %w", err)
	}
	if errors.Is(err, blobstore.ErrCorrupt) {
		return nil, damaged(key, "%d bytes at %d cannot be read: %w", length, offset, err)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", key, err)
	}
	if len(data) != int(length) {
		return nil, damaged(key, "the store returned %d bytes at %d instead of %d", len(data), offset, length)
	}
	return data, nil
}

// openBlob decrypts, decompresses and verifies a blob; it uses sealed up.
func (r *Repository) openBlob(pack ID, b PackedBlob, sealed, buf []byte) ([]byte, error) {
	plain, err := r.cipher.OpenInPlace(sealed)
	return r.decodeBlob(pack, b, plain, err, buf)
}

// decodeBlob goes on with what decryption returned.
func (r *Repository) decodeBlob(pack ID, b PackedBlob, plain []byte, err error, buf []byte) ([]byte, error) {
	if err == nil && b.PlainLength > 0 {
		plain, err = r.codec.decompress(plain, b.PlainLength, buf)
	}
	if err != nil {
		return nil, damaged(PackFile.Key(pack), "%v at %d: %w", b.BlobHandle, b.Offset, err)
	}
	if got := id.Hash(plain); got != b.ID {
		return nil, damaged(PackFile.Key(pack), "%v at %d has the content of %s", b.BlobHandle, b.Offset, got.Short())
	}
	return plain, nil
}

// opener opens blobs one after the other, with the same buffers.
type opener struct {
	repo         *Repository
	packed, data []byte
}

// open returns the content of a sealed blob, which stays as it is. The content is valid until the next call.
func (o *opener) open(pack ID, b PackedBlob, sealed []byte) ([]byte, error) {
	into := &o.data
	if b.PlainLength > 0 {
		into = &o.packed
	}
	opened, err := o.repo.cipher.Open(*into, sealed)
	if err == nil {
		*into = opened
	}
	plain, err := o.repo.decodeBlob(pack, b, opened, err, o.data)
	if err == nil && b.PlainLength > 0 {
		o.data = plain
	}
	return plain, err
}

// LoadBlobs calls fn with each of the blobs once, pack by pack and by offset rather than in the order given; a blob
// that is given twice is loaded once. Neighbours are fetched with one request. The content is verified as by LoadBlob,
// and is valid until fn returns. fn is called from this goroutine; call LoadBlobs from several for more speed. The first
// error ends it.
func (r *Repository) LoadBlobs(ctx context.Context, handles []BlobHandle, fn func(BlobHandle, []byte) error) error {
	wanted, err := r.firstPlaces(handles)
	if err != nil {
		return err
	}
	for len(wanted) > 0 {
		n := 1
		for n < len(wanted) && wanted[n].Pack == wanted[0].Pack {
			n++
		}
		blobs := make([]PackedBlob, n)
		for i := range blobs {
			blobs[i] = wanted[i].PackedBlob
		}
		err := r.ReadPack(ctx, wanted[0].Pack, blobs, func(b PackedBlob, plain []byte, err error) error {
			if err != nil {
				if plain, err = r.loadAny(ctx, b.BlobHandle, r.Locations(b.BlobHandle), nil, nil); err != nil {
					return err
				}
			}
			return fn(b.BlobHandle, plain)
		})
		if err != nil {
			return err
		}
		wanted = wanted[n:]
	}
	return nil
}

// firstPlaces returns one place for each blob, sorted by pack and offset.
func (r *Repository) firstPlaces(handles []BlobHandle) ([]Location, error) {
	wanted := make([]Location, 0, len(handles))
	for _, h := range handles {
		places := r.Locations(h)
		if len(places) == 0 {
			return nil, fmt.Errorf("%v (%s): %w in the index", h, h.ID, ErrNotFound)
		}
		wanted = append(wanted, places[0])
	}
	slices.SortFunc(wanted, func(a, b Location) int {
		return cmp.Or(slices.Compare(a.Pack[:], b.Pack[:]), cmp.Compare(a.Offset, b.Offset))
	})
	return slices.Compact(wanted), nil
}

// ReadPack reads these copies of blobs, which must be sorted by offset, from one pack, and no others. fn gets each with
// its verified content, or with the error that its reading ended in; an error of fn ends it. The content is valid until
// fn returns. Up to 16 MiB, or one blob, are held at once.
func (r *Repository) ReadPack(ctx context.Context, pack ID, blobs []PackedBlob, fn func(PackedBlob, []byte, error) error) error {
	o := &opener{repo: r}
	for len(blobs) > 0 {
		n, end := mergeReads(blobs)
		start := blobs[0].Offset
		data, readErr := r.readRange(ctx, pack, start, uint32(end-uint64(start)))
		for _, b := range blobs[:n] {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			var plain []byte
			err := readErr
			if err == nil {
				plain, err = o.open(pack, b, data[b.Offset-start:][:b.Length])
			}
			if err := fn(b, plain, err); err != nil {
				return err
			}
		}
		blobs = blobs[n:]
	}
	return nil
}

// mergeReads returns how many of the blobs are read together, and where the last one ends.
func mergeReads(blobs []PackedBlob) (n int, end uint64) {
	start := uint64(blobs[0].Offset)
	end = start + uint64(blobs[0].Length)
	for n = 1; n < len(blobs); n++ {
		next := uint64(blobs[n].Offset)
		nextEnd := max(end, next+uint64(blobs[n].Length))
		if next < start || next > end+readGap || nextEnd-start > readMax {
			break
		}
		end = nextEnd
	}
	return n, end
}
