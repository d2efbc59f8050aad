package archiver_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"example.com/pvcbackup/backup/archiver"
	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/backup/repo/repotest"
)

// backUp backs a folder up under a lock.
func backUp(ctx context.Context, r *repo.Repository, folder string) (*archiver.Result, error) {
	lock, err := r.Lock(ctx, repo.LockOptions{Host: "pod-1/uid-1"})
	if err != nil {
		return nil, err
	}
	result, err := archiver.Backup(lock.Context(), r, folder, archiver.Options{Host: "cluster", Path: "/ns/claim"})
	return result, errors.Join(err, lock.Unlock(ctx))
}

// The second backup reads only what changed.
func Example() {
	ctx := context.Background()
	folder, err := os.MkdirTemp("", "example-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(folder)
	r, err := repo.Init(ctx, repotest.NewMemory(), "a password", &repo.InitOptions{KeyOptions: repo.KeyOptions{Scrypt: repotest.Cheap}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, name := range []string{"a", "b"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte("hello "+name), 0o600); err != nil {
			fmt.Println(err)
			return
		}
		result, err := backUp(ctx, r, folder)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%+v\n", result.Files)
	}
	// Output:
	// {New:1 Changed:0 Unmodified:0}
	// {New:1 Changed:0 Unmodified:1}
}
