package blobstore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"example.com/pvcbackup/blobstore"
	"example.com/pvcbackup/blobstore/drivers/mem"
)

// counter keeps a number that several writers agree on, although a store can only create and replace whole objects.
type counter struct{ store *blobstore.Store }

// next claims the next number: of several writers, one gets it.
func (c counter) next(ctx context.Context) (int, error) {
	for n := 1; ; n++ {
		err := c.store.PutBytes(ctx, fmt.Sprintf("numbers/%06d", n), nil, &blobstore.PutOptions{OnlyIfAbsent: true})
		if !errors.Is(err, blobstore.ErrExists) {
			return n, err
		}
	}
}

// A store is opened by its URL. Another storage is another URL and another driver.
func Example() {
	ctx := context.Background()
	store, err := blobstore.Open(ctx, "mem://example/backups/db", &blobstore.Options{Openers: mem.Openers()})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()

	if err := store.Put(ctx, "notes/today", strings.NewReader("hello"), nil); err != nil {
		fmt.Println(err)
		return
	}
	for range 2 {
		fmt.Println(counter{store}.next(ctx))
	}
	for object, err := range store.List(ctx, "") {
		fmt.Println(object.Key, object.Size, err)
	}
	// Output:
	// 1 <nil>
	// 2 <nil>
	// notes/today 5 <nil>
	// numbers/000001 0 <nil>
	// numbers/000002 0 <nil>
}
