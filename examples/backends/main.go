// Command backends does the same with every store it is given. Nothing but the URL differs.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"example.com/pvcbackup/blobstore"
	"example.com/pvcbackup/blobstore/drivers/all"
)

func main() {
	for _, url := range os.Args[1:] {
		if err := try(context.Background(), url, os.Stdout); err != nil {
			fmt.Fprintf(os.Stderr, "backends: %s: %s\n", blobstore.Redact(url), err)
			os.Exit(1)
		}
	}
}

// try puts, reads, lists and deletes one object, and shows what it found.
func try(ctx context.Context, url string, out io.Writer) (err error) {
	// A program that needs only some stores takes their Openers alone, and links only their SDKs.
	store, err := blobstore.Open(ctx, url, &blobstore.Options{Openers: all.Openers()})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()

	report, err := store.Probe(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "the store honours conditional puts:", report.ConditionalPut.OK)

	once := &blobstore.PutOptions{OnlyIfAbsent: true}
	if err := store.PutBytes(ctx, "greetings/first", []byte("hello"), once); err != nil {
		return err
	}
	if err := store.PutBytes(ctx, "greetings/first", []byte("again"), once); !errors.Is(err, blobstore.ErrExists) {
		return fmt.Errorf("a second writer should lose, and got: %w", err)
	}
	part, err := store.GetRange(ctx, "greetings/first", 1, 3)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "bytes 1 to 3: %s\n", part)
	for object, err := range store.List(ctx, "greetings/") {
		if err != nil {
			return err
		}
		fmt.Fprintln(out, object.Key, object.Size)
	}
	return store.Delete(ctx, "greetings/first")
}
