package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"example.com/pvcbackup/blobstore"
)

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "blobdriver:", err)
		os.Exit(1)
	}
}

var errUsage = errors.New("usage: blobdriver onefile:///folder/file list | put KEY | get KEY")

// run is an ordinary user of a store: nothing in it knows of the driver but the map of openers.
func run(ctx context.Context, args []string, in io.Reader, out io.Writer) (err error) {
	if len(args) < 2 {
		return errUsage
	}
	store, err := blobstore.Open(ctx, args[0], &blobstore.Options{Openers: openers()})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	switch {
	case args[1] == "list":
		for object, err := range store.List(ctx, "") {
			if err != nil {
				return err
			}
			fmt.Fprintln(out, object.Key, object.Size)
		}
		return nil
	case args[1] == "put" && len(args) == 3:
		return store.Put(ctx, args[2], in, nil)
	case args[1] == "get" && len(args) == 3:
		r, err := store.Get(ctx, args[2])
		if err != nil {
			return err
		}
		_, err = io.Copy(out, r)
		return errors.Join(err, r.Close())
	}
	return errUsage
}
