package repo

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
)

// IndexRewrite is an index that was written anew, next to the old one.
type IndexRewrite struct {
	Written []FileInfo // the new index files
	Old     []ID       // what they replace
	repo    *Repository
}

// RewriteIndex writes what the loaded index says, but for the packs that drop names, to new index files, each with many
// packs. It deletes nothing: RemoveOld does that, and only after it may the dropped packs be deleted. A crash in between
// leaves a consistent repository. Index files that appeared after LoadIndex are left alone. Call it under the exclusive
// lock, with no writer at work; call LoadIndex before anything is written afterwards.
func (r *Repository) RewriteIndex(ctx context.Context, drop func(pack ID) bool) (*IndexRewrite, error) {
	r.mu.Lock()
	idx := r.idx
	old := slices.Collect(maps.Keys(r.indexFiles))
	r.mu.Unlock()
	return r.ReplaceIndex(ctx, kept(idx, drop), old)
}

// ReplaceIndex writes new index files, which are to take the place of old ones. Otherwise it is like RewriteIndex.
func (r *Repository) ReplaceIndex(ctx context.Context, packs iter.Seq[IndexedPack], old []ID) (*IndexRewrite, error) {
	written, err := r.SaveIndex(ctx, packs)
	if err != nil {
		return nil, fmt.Errorf("write the new index: %w", err)
	}
	return &IndexRewrite{Written: written, Old: old, repo: r}, nil
}

func kept(idx *index, drop func(ID) bool) iter.Seq[IndexedPack] {
	return func(yield func(IndexedPack) bool) {
		for pack, blobs := range idx.byPack() {
			if len(blobs) > 0 && !drop(pack) && !yield(IndexedPack{pack, blobs}) {
				return
			}
		}
	}
}

// RemoveOld reads the new index files back, and then deletes the old ones.
func (rw *IndexRewrite) RemoveOld(ctx context.Context) error {
	for _, f := range rw.Written {
		if _, err := rw.repo.LoadIndexFile(ctx, f.ID); err != nil {
			return fmt.Errorf("no old index file was removed, because the new one cannot be read back: %w", err)
		}
	}
	return forEach(ctx, rw.repo.connections, rw.Old, func(ctx context.Context, old ID) error {
		return rw.repo.RemoveFile(ctx, IndexFile, old)
	})
}
