package repo

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// CheckPack reads a whole pack, once, and compares everything with everything: its bytes with its name, its header with
// what the index says, and every blob with its hash. damage is what is wrong with the pack; err is why it could not be
// read at all. It holds the pack in memory.
func (r *Repository) CheckPack(ctx context.Context, pack IndexedPack) (damage, err error) {
	size := PackSize(pack.Blobs)
	data, err := loadRaw(ctx, r.store, PackFile, pack.ID, size)
	if errors.Is(err, ErrDamaged) || errors.Is(err, ErrNotFound) {
		return err, nil
	}
	if err != nil {
		return nil, err
	}
	read := &Repository{store: onePack{key: PackFile.Key(pack.ID), data: data}, config: r.config, cipher: r.cipher, codec: r.codec}
	header, err := read.PackHeader(ctx, pack.ID, int64(len(data)))
	if err != nil {
		return err, ctx.Err()
	}
	if !slices.Equal(header, pack.Blobs) {
		return damaged(PackFile.Key(pack.ID), "its header and the index list different blobs"), nil
	}
	var damages []error
	err = read.ReadPack(ctx, pack.ID, pack.Blobs, func(_ PackedBlob, _ []byte, err error) error {
		damages = append(damages, err)
		return nil
	})
	return errors.Join(damages...), err
}

// onePack is a store that holds one object and can only be read by ranges.
type onePack struct {
	Store
	key  string
	data []byte
}

func (p onePack) GetRange(_ context.Context, key string, offset, length int64) ([]byte, error) {
	if key != p.key || offset < 0 || length < 0 || offset+length > int64(len(p.data)) {
		return nil, fmt.Errorf("%s has no %d bytes at %d", key, length, offset)
	}
	return slices.Clone(p.data[offset:][:length]), nil
}
