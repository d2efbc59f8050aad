// Package mem keeps objects in memory, for tests: "mem://name/prefix".
//
// # What it does
//
// The map that Openers returns owns the buckets: opening mem://name twice
// through the same map shows the same objects, another call of Openers starts
// with none. There is no global state, and nothing survives the process.
//
// # Minimal use
//
//	opts := &blobstore.Options{Openers: mem.Openers()}
//	s, err := blobstore.Open(ctx, "mem://test", opts)
//
// # Guarantees
//
// Those of blobstore, conditional writes included.
//
// # What it never does
//
// It never frees a bucket while its map is in use; closing a store keeps the data.
package mem

import (
	"context"
	"net/url"
	"sync"

	"gocloud.dev/blob"
	"gocloud.dev/blob/memblob"

	"example.com/pvcbackup/blobstore"
)

// Openers returns the opener of the scheme "mem", with buckets of its own.
func Openers() map[string]blobstore.Opener {
	var mu sync.Mutex
	buckets := map[string]*blob.Bucket{}
	return map[string]blobstore.Opener{"mem": func(_ context.Context, u *url.URL, _ *blobstore.Options) (*blobstore.Driver, error) {
		for name := range u.Query() {
			return nil, blobstore.Invalid("open", "mem URL has the unknown parameter %q; it takes only prefix", name)
		}
		if u.Host == "" {
			return nil, blobstore.Invalid("open", "mem URL names no bucket: write mem://name")
		}
		mu.Lock()
		defer mu.Unlock()
		b, ok := buckets[u.Host]
		if !ok {
			b = memblob.OpenBucket(&memblob.Options{NoMD5: true})
			buckets[u.Host] = b
		}
		return &blobstore.Driver{
			Bucket: b,
			Prefix: blobstore.PathPrefix(u),
			Close:  func() error { return nil }, // the next Open must find it open
		}, nil
	}}
}
