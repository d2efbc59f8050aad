package restorer_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"example.com/pvcbackup/backup/archiver"
	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/backup/repo/repotest"
	"example.com/pvcbackup/backup/restorer"
)

// prepared returns a repository with a snapshot of one file, a folder to restore into, and what removes both.
func prepared(ctx context.Context) (r *repo.Repository, snapshot repo.ID, target string, cleanUp func(), err error) {
	dir, err := os.MkdirTemp("", "example-")
	if err != nil {
		return nil, repo.ID{}, "", nil, err
	}
	source, target := filepath.Join(dir, "source"), filepath.Join(dir, "target")
	r, err = repo.Init(ctx, repotest.NewMemory(), "a password", &repo.InitOptions{KeyOptions: repo.KeyOptions{Scrypt: repotest.Cheap}})
	err = errors.Join(err, os.Mkdir(source, 0o700), os.WriteFile(filepath.Join(source, "greeting"), []byte("hello"), 0o600))
	if err == nil {
		var done *archiver.Result
		if done, err = archiver.Backup(ctx, r, source, archiver.Options{Host: "cluster", Path: "/ns/claim"}); err == nil {
			snapshot = done.SnapshotID
		}
	}
	return r, snapshot, target, func() { _ = os.RemoveAll(dir) }, err
}

// A snapshot is restored, and read again before the restore is called a success.
func Example() {
	ctx := context.Background()
	r, snapshot, target, cleanUp, err := prepared(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer cleanUp()
	result, err := restorer.Restore(ctx, r, snapshot, target, restorer.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(result.Files, result.Bytes, result.Verified)
	text, err := os.ReadFile(filepath.Join(target, "greeting"))
	fmt.Println(string(text), err)
	// Output:
	// 1 5 true
	// hello <nil>
}
