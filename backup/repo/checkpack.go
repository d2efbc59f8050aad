package repo

import (
	"context"
	"errors"
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
	header, err := r.parseTail(PackFile.Key(pack.ID), int64(len(data)), data)
	if err != nil {
		return err, ctx.Err()
	}
	if !slices.Equal(header, pack.Blobs) {
		return damaged(PackFile.Key(pack.ID), "its header and the index list different blobs"), nil
	}
	var damages []error
	var buf []byte
	for _, b := range header { // which lie one behind the other, so that each can be decrypted where it is
		if ctx.Err() != nil {
			return errors.Join(damages...), context.Cause(ctx)
		}
		plain, err := r.openBlob(pack.ID, b, data[b.Offset:][:b.Length], buf)
		damages = append(damages, err)
		if b.PlainLength > 0 && cap(plain) > cap(buf) {
			buf = plain
		}
	}
	return errors.Join(damages...), nil
}
