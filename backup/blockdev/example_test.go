package blockdev_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"example.com/pvcbackup/backup/blockdev"
	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/backup/repo/repotest"
)

// An image is backed up, a part of it changes, and a second run reads no more than that part. A program would open its
// repository in a bucket, and hold a lock on it.
func Example() {
	ctx := context.Background()
	folder, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(folder)
	repository, err := repo.Init(ctx, repotest.NewMemory(), "password", &repo.InitOptions{KeyOptions: repo.KeyOptions{Scrypt: repo.ScryptParams(repotest.Cheap)}})
	if err != nil {
		log.Fatal(err)
	}
	image := filepath.Join(folder, "volume")
	write := func(text string, offset int64) {
		f, err := os.OpenFile(image, os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			log.Fatal(err)
		}
		defer f.Close()
		if _, err := f.WriteAt([]byte(text), offset); err != nil {
			log.Fatal(err)
		}
	}
	backup := func(o blockdev.Options) *blockdev.Result {
		device, err := blockdev.Open(image)
		if err != nil {
			log.Fatal(err)
		}
		defer device.Close()
		result, err := blockdev.Backup(ctx, repository, device, o)
		if err != nil {
			log.Fatal(err)
		}
		return result
	}

	write("the end", 100<<20)
	first := backup(blockdev.Options{Host: "cluster", Path: "/ns/claim", Handle: "monday"})
	fmt.Printf("%s: %d bytes of %d\n", first.Read, first.BytesRead, first.Size)

	write("changed", 50<<20)
	second := backup(blockdev.Options{
		Host: "cluster", Path: "/ns/claim", Handle: "tuesday", SampleShare: -1,
		Changes: func(_ context.Context, base string) (*blockdev.Changes, error) {
			fmt.Println("what changed since", base)
			return &blockdev.Changes{Kind: blockdev.Delta, Base: base, VolumeSize: first.Size, Ranges: func(yield func(blockdev.Range, error) bool) {
				yield(blockdev.Range{Offset: 50 << 20, Length: 7}, nil)
			}}, nil
		},
	})
	fmt.Printf("%s: %d bytes of %d\n", second.Read, second.BytesRead, second.Size)

	restored, err := blockdev.RestoreToFile(ctx, repository, second.SnapshotID, filepath.Join(folder, "restored"), blockdev.RestoreOptions{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("verified:", restored.Verified)
	// Output:
	// full: 7 bytes of 104857607
	// what changed since monday
	// changed: 1048576 bytes of 104857607
	// verified: true
}
