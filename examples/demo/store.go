package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"example.com/pvcbackup/backup"
	"example.com/pvcbackup/blobstore"
	"example.com/pvcbackup/blobstore/blobtest"
	"example.com/pvcbackup/blobstore/drivers/all"
)

// bucket is the bucket of the demo's own S3 server.
const bucket = "demo-backups"

// store is where the demo backs up to.
type store struct {
	describe string
	// spec is the part of the manifest that names the store.
	spec string
	// env are the credentials.
	env map[string]string
	// operatorArgs complete bare bucket names.
	operatorArgs []string
	// volume is set for a file: store, which is a claim.
	volume bool
	// resticURL is how restic names the store; empty when it cannot.
	resticURL string
	// url is the whole store's URL for the data tool, without the repository's prefix.
	url string
}

// prefix is where in the store the repository of the demo's claim is.
const prefix = clusterID + "/" + namespace + "/" + claim

func (d *demo) openStore() (*store, error) {
	switch {
	case d.url == "":
		return d.ownS3()
	case strings.HasPrefix(d.url, "file:"):
		place := "file://" + backup.DestinationPath
		return &store{describe: "a claim of its own", spec: "storage: {url: " + quoted(place) + ", volume: backups}", volume: true}, nil
	}
	return foreignStore(d.url)
}

// ownS3 starts a real S3 server on loopback.
func (d *demo) ownS3() (*store, error) {
	if err := os.Setenv("PVCBACKUP_TOOLS", filepath.Join(d.root, ".cache/tools")); err != nil {
		return nil, err
	}
	server, stop, err := blobtest.LaunchS3(filepath.Join(d.dir, "s3"))
	if err != nil {
		return nil, err
	}
	d.closers = append(d.closers, func() error { stop(); return nil })
	u, err := server.BucketURL(bucket)
	if err != nil {
		return nil, err
	}
	_, query, _ := strings.Cut(u, "?")
	return &store{
		describe:     "an S3 server at " + server.Endpoint,
		spec:         "s3Bucket: " + bucket,
		env:          map[string]string{"AWS_ACCESS_KEY_ID": server.AccessKey, "AWS_SECRET_ACCESS_KEY": server.SecretKey},
		operatorArgs: []string{"--store-parameters=s3=" + query},
		resticURL:    "s3:" + server.Endpoint + "/" + bucket + "/" + prefix,
		url:          u,
	}, nil
}

// foreignStore uses a store that is there already, with the caller's credentials.
func foreignStore(rawURL string) (*store, error) {
	u, err := url.Parse(rawURL)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("URL %q: write it like gs://bucket, s3://bucket?endpoint=…, or file:", blobstore.Redact(rawURL))
	}
	s := &store{describe: blobstore.Redact(rawURL), spec: "storage: {url: " + quoted(rawURL) + "}", env: map[string]string{}, url: rawURL}
	for _, kv := range os.Environ() {
		name, value, _ := strings.Cut(kv, "=")
		for _, start := range []string{"AWS_", "GOOGLE_", "AZURE_", "STORAGE_EMULATOR_HOST"} {
			if strings.HasPrefix(name, start) {
				s.env[name] = value
			}
		}
	}
	return s, nil
}

func quoted(text string) string { return `"` + text + `"` }

// localCopy copies the repository's objects into a folder, for a restic that cannot address the store.
func (d *demo) localCopy(ctx context.Context) (string, error) {
	if d.store.volume {
		dir, err := d.claimDir(ctx, "backups")
		return filepath.Join(dir, prefix), err
	}
	for name, value := range d.store.env {
		if err := os.Setenv(name, value); err != nil {
			return "", err
		}
	}
	from, err := blobstore.Open(ctx, d.store.url, &blobstore.Options{Openers: all.Openers()})
	if err != nil {
		return "", err
	}
	defer from.Close()
	target := filepath.Join(d.dir, "copy")
	return target, copyAll(ctx, from.Sub(prefix), target)
}

func copyAll(ctx context.Context, from *blobstore.Store, target string) error {
	for object, err := range from.List(ctx, "") {
		if err != nil {
			return err
		}
		if err := copyOne(ctx, from, object.Key, filepath.Join(target, filepath.FromSlash(object.Key))); err != nil {
			return err
		}
	}
	return nil
}

func copyOne(ctx context.Context, from *blobstore.Store, key, path string) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	r, err := from.Get(ctx, key)
	if err != nil {
		return err
	}
	defer r.Close()
	w, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, r)
	return errors.Join(err, w.Close())
}
