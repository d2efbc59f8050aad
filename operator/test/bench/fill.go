package main

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"time"

	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/blobstore"
	"example.com/pvcbackup/blobstore/drivers/file"
)

// fillers bring a repository to a size. A real one of that size would take hours to make.
var fillers = map[string]func(ctx context.Context, r *repo.Repository, n int) error{
	"add-snapshots": addSnapshots,
	"add-index":     addIndex,
}

func fill(ctx context.Context, how, dir string, n int) error {
	store, err := blobstore.Open(ctx, "file://"+dir, &blobstore.Options{Openers: file.Openers()})
	if err != nil {
		return err
	}
	r, err := repo.Open(ctx, store, password, nil)
	if err == nil {
		err = fillers[how](ctx, r, n)
	}
	return errors.Join(err, store.Close())
}

// addSnapshots repeats the only snapshot, one day earlier each.
func addSnapshots(ctx context.Context, r *repo.Repository, n int) error {
	all, err := r.Snapshots(ctx)
	if err != nil {
		return err
	}
	if err := r.LoadIndex(ctx); err != nil {
		return err
	}
	for i := 1; i < n; i++ {
		sn := all[0].Snapshot
		sn.Time = sn.Time.Add(-time.Duration(i) * 24 * time.Hour)
		if _, err := r.SaveSnapshot(ctx, &sn); err != nil {
			return err
		}
	}
	return nil
}

// addIndex lists blobs of a MiB in packs that are not there: a backup does not miss what it does not need.
func addIndex(ctx context.Context, r *repo.Repository, n int) error {
	const perPack, length = 15, mib
	packs := iter.Seq[repo.IndexedPack](func(yield func(repo.IndexedPack) bool) {
		for i := 0; i < n; i += perPack {
			p := repo.IndexedPack{ID: numbered("pack", i)}
			for k := range min(perPack, n-i) {
				h := repo.BlobHandle{Type: repo.DataBlob, ID: numbered("blob", i+k)}
				p.Blobs = append(p.Blobs, repo.PackedBlob{BlobHandle: h, Offset: uint32(k * length), Length: length, PlainLength: length})
			}
			if !yield(p) {
				return
			}
		}
	})
	files, err := r.SaveIndex(ctx, packs)
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("no index was written for %d blobs", n)
	}
	return err
}

func numbered(kind string, n int) repo.ID {
	return sha256.Sum256(binary.BigEndian.AppendUint64([]byte(kind), uint64(n)))
}
