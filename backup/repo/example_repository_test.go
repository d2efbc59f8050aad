package repo_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/blobstore"
	"example.com/pvcbackup/blobstore/drivers/mem"
)

// openOrCreate opens the repository in a store, and creates it only where it is proven absent.
func openOrCreate(ctx context.Context, store repo.Store, password string) (*repo.Repository, error) {
	r, err := repo.Open(ctx, store, password, nil)
	if errors.Is(err, repo.ErrAbsent) {
		return repo.Init(ctx, store, password, nil)
	}
	return r, err
}

// commit stores an empty directory as a snapshot. Package archiver does that for real ones.
func commit(ctx context.Context, r *repo.Repository) (repo.ID, error) {
	lock, err := r.Lock(ctx, repo.LockOptions{Host: "example-1"})
	if err != nil {
		return repo.ID{}, err
	}
	id, err := write(lock.Context(), r)
	return id, errors.Join(err, lock.Unlock(ctx))
}

func write(ctx context.Context, r *repo.Repository) (repo.ID, error) {
	if err := r.LoadIndex(ctx); err != nil {
		return repo.ID{}, err
	}
	w := r.NewWriter(ctx, nil)
	defer w.Abort()
	tree, _, err := w.SaveBlob(ctx, repo.TreeBlob, []byte("{\"nodes\":[]}\n"))
	if err != nil {
		return repo.ID{}, err
	}
	if err := w.Flush(ctx); err != nil { // packs first, then the index that lists them
		return repo.ID{}, err
	}
	return r.SaveSnapshot(ctx, &repo.Snapshot{Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Tree: &tree, Paths: []string{"/data"}})
}

// A repository is created, written to under a lock, and read.
func Example() {
	ctx := context.Background()
	store, err := blobstore.Open(ctx, "mem://example", &blobstore.Options{Openers: mem.Openers()})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()
	r, err := openOrCreate(ctx, store, "a password")
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := commit(ctx, r); err != nil {
		fmt.Println(err)
		return
	}
	snapshots, err := r.Snapshots(ctx)
	for _, s := range snapshots {
		fmt.Println(s.Time, s.Paths)
	}
	fmt.Println(err)
	// Output:
	// 2026-01-02 03:04:05 +0000 UTC [/data]
	// <nil>
}
