// Command blobdriver shows a store of one's own: all objects of a bucket in one file, "onefile:///folder/file".
package main

import (
	"context"
	"errors"
	"io/fs"
	"net/url"
	"os"

	"gocloud.dev/blob"
	"golang.org/x/sys/unix"

	"example.com/pvcbackup/blobstore"
)

// openers returns the opener of the scheme "onefile", for blobstore.Options.
func openers() map[string]blobstore.Opener { return map[string]blobstore.Opener{"onefile": open} }

// open is called with the URL of blobstore.Open. What it does not understand is an error: a typo must not go unnoticed.
func open(_ context.Context, u *url.URL, _ *blobstore.Options) (*blobstore.Driver, error) {
	if u.Host != "" || u.Path == "" || u.RawQuery != "" {
		return nil, blobstore.Invalid("open", "onefile URL must be onefile:///folder/file, without a host and parameters")
	}
	f, err := os.OpenFile(u.Path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, &blobstore.Error{Op: "open", Kind: classify(err), Err: err}
	}
	b := &bucket{file: f, objects: map[string]object{}}
	// Conditional puts are decided in this process, so there must be no other.
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(blobstore.Invalid("open", "%s is in use: %w", u.Path, err), f.Close())
	}
	if err := b.load(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &blobstore.Driver{Bucket: blob.NewBucket(b), Classify: classify}, nil
}

// classify says what errors mean that gocloud has no code for.
func classify(err error) blobstore.Kind {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return blobstore.KindNoBucket // the folder is missing, and with it everything
	case errors.Is(err, unix.ENOSPC):
		return blobstore.KindFull
	case errors.Is(err, fs.ErrPermission):
		return blobstore.KindPermission
	}
	return blobstore.KindUnknown
}
