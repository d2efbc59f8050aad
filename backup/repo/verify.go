package repo

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
)

// statLimit is how many files are looked for one by one; more are looked for by listing.
const statLimit = 100

// VerifyWritten looks for everything a writer wrote: every pack and index is there with its exact size, every index
// reads back, and of sample packs, chosen by chance, the header and one blob are fetched and verified. The error,
// ErrUnverified or ErrDamaged, names what is wrong.
func (r *Repository) VerifyWritten(ctx context.Context, w Written, sample int) error {
	if err := r.verifySizes(ctx, w); err != nil {
		return err
	}
	err := forEach(ctx, r.connections, w.Indexes, func(ctx context.Context, f FileInfo) error {
		_, err := r.LoadIndexFile(ctx, f.ID)
		return err
	})
	if err != nil {
		return fmt.Errorf("read back: %w", err)
	}
	var chosen []FileInfo
	for _, n := range rand.Perm(len(w.Packs))[:min(max(sample, 0), len(w.Packs))] {
		chosen = append(chosen, w.Packs[n])
	}
	return forEach(ctx, r.connections, chosen, r.verifySample)
}

func (r *Repository) verifySizes(ctx context.Context, w Written) error {
	missing := map[string]int64{}
	for t, files := range map[FileType][]FileInfo{PackFile: w.Packs, IndexFile: w.Indexes} {
		for _, f := range files {
			missing[t.Key(f.ID)] = f.Size
		}
		if len(files) <= statLimit {
			continue
		}
		for f, err := range r.ListFiles(ctx, t) {
			if err != nil {
				return err
			}
			if size, ok := missing[t.Key(f.ID)]; ok && size == f.Size {
				delete(missing, t.Key(f.ID))
			}
		}
	}
	// A listing may lag behind, so what it does not show is asked for.
	keys := make([]string, 0, len(missing))
	for key := range missing {
		keys = append(keys, key)
	}
	return forEach(ctx, r.connections, keys, func(ctx context.Context, key string) error {
		err := statSize(ctx, r.store, key, missing[key])
		if errors.Is(err, ErrNotFound) || errors.Is(err, ErrDamaged) {
			return fmt.Errorf("%w: %w", ErrUnverified, err)
		}
		return err
	})
}

// verifySample reads a pack's header and one of its blobs.
func (r *Repository) verifySample(ctx context.Context, f FileInfo) error {
	blobs, err := r.PackHeader(ctx, f.ID, f.Size)
	if err != nil {
		return fmt.Errorf("read back: %w", err)
	}
	b := blobs[rand.IntN(len(blobs))]
	if _, err := r.loadCopy(ctx, Location{f.ID, b}, nil); err != nil {
		return fmt.Errorf("read back: %w", err)
	}
	for _, place := range r.Locations(b.BlobHandle) {
		if place == (Location{f.ID, b}) {
			return nil
		}
	}
	return damaged(PackFile.Key(f.ID), "the index does not list %v where the header has it", b.BlobHandle)
}
