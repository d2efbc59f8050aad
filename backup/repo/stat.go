package repo

import (
	"context"
	"fmt"
)

// StatFile asks the store for one file; ErrNotFound when it is not there.
func (r *Repository) StatFile(ctx context.Context, t FileType, id ID) (FileInfo, error) {
	o, err := r.store.Stat(ctx, t.Key(id))
	if err != nil {
		return FileInfo{}, fmt.Errorf("look for %s: %w", t.Key(id), err)
	}
	return FileInfo{ID: id, Size: o.Size, ModTime: o.ModTime}, nil
}
