package blobstore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"example.com/pvcbackup/blobstore"
	"example.com/pvcbackup/blobstore/drivers/mem"
)

func Example() {
	ctx := context.Background()
	s, err := blobstore.Open(ctx, "mem://example/backups/db", &blobstore.Options{Openers: mem.Openers()})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()

	if err := s.Put(ctx, "notes/today", strings.NewReader("hello"), nil); err != nil {
		fmt.Println(err)
		return
	}
	err = s.PutBytes(ctx, "notes/today", []byte("too late"), &blobstore.PutOptions{OnlyIfAbsent: true})
	fmt.Println(errors.Is(err, blobstore.ErrExists))

	for o, err := range s.List(ctx, "notes/") {
		fmt.Println(o.Key, o.Size, err)
	}
	// Output:
	// true
	// notes/today 5 <nil>
}

func ExampleRedact() {
	fmt.Println(blobstore.Redact("azblob://backups/db?storage_account=acme&sig=c2VjcmV0"))
	// Output: azblob://backups/db?sig=redacted&storage_account=acme
}
