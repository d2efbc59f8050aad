package archiver_test

import (
	"context"
	"errors"
	"fmt"
	"os"

	"example.com/pvcbackup/backup/archiver"
	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/backup/repo/repotest"
)

// An empty folder is backed up, and its snapshot never displaces a full one.
func ExampleBackup() {
	ctx := context.Background()
	folder, err := os.MkdirTemp("", "example-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(folder)
	r, _ := repo.Init(ctx, repotest.NewMemory(), "a password", &repo.InitOptions{KeyOptions: repo.KeyOptions{Scrypt: repotest.Cheap}})
	result, err := archiver.Backup(ctx, r, folder, archiver.Options{Host: "cluster", Path: "/ns/claim"})
	fmt.Println(result.Empty, err)
	_, err = archiver.Backup(ctx, r, folder, archiver.Options{Host: "cluster", Path: "/ns/claim", RefuseEmpty: true})
	fmt.Println(errors.Is(err, archiver.ErrEmpty))
	_, err = archiver.Backup(ctx, r, folder, archiver.Options{Host: "cluster", Path: "claim"})
	fmt.Println(err)
	// Output:
	// true <nil>
	// true
	// invalid backup option: path is "claim": use a clean absolute path such as /namespace/claim
}

func ExampleComplete() {
	fmt.Println(archiver.Complete([]string{"slot=1"}), archiver.Complete([]string{archiver.TagPartial}))
	// Output: true false
}

func ExampleChunkerOf() {
	fmt.Println(archiver.ChunkerOf(nil)) // of a snapshot that restic wrote
	// Output: rabin
}
