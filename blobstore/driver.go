package blobstore

import (
	"context"
	"io"
	"iter"
	"net/url"
	"strings"

	"gocloud.dev/blob"
)

// Opener opens the bucket that a URL names. The URL comes without the prefix
// parameter, which [Open] handles. Unknown parameters must be errors.
type Opener func(ctx context.Context, u *url.URL, opts *Options) (*Driver, error)

// Driver is an opened bucket with what its storage can do beyond the portable
// interface. Only Bucket is required. Keys given to the functions are complete:
// prefixes are already in front.
type Driver struct {
	Bucket *blob.Bucket

	// Prefix is put in front of every key; see [PathPrefix].
	Prefix string

	// Classify finds the kind of an error of this driver; KindUnknown leaves it
	// to the portable error codes. It must tell a missing bucket from a missing
	// object.
	Classify func(error) Kind

	// PutHashed stores data in one request in which the store itself verifies
	// sum, the SHA-256 of data.
	PutHashed func(ctx context.Context, key string, data []byte, sum [32]byte, o *PutOptions) error

	// PutStream stores what r yields until io.EOF, and nothing if r fails.
	PutStream func(ctx context.Context, key string, r io.Reader, o *PutOptions) error

	// Tune adapts the writer to size bytes that are all in memory, or to a stream, which is -1. A stream may fail at its
	// very end, so what was sent of it until then must not be taken for an object.
	Tune func(size int64, o *blob.WriterOptions)
	// Fail makes a writer fail that was begun, before it is closed. It is for stores whose writer may take being closed
	// for the end of the content although its context was cancelled just before. begun is what gocloud's BeforeWrite
	// hands out. Nil: cancelling the context is enough.
	Fail func(begun func(any) bool, cause error)

	// List yields the objects below a plain string prefix, sorted.
	List func(ctx context.Context, prefix string) iter.Seq2[Object, error]

	// Delete removes an object without asking first whether it exists.
	Delete func(ctx context.Context, key string) error

	// CheckKey refuses keys that this storage cannot hold.
	CheckKey func(key string) error

	// Close releases the bucket; nil means Bucket.Close.
	Close func() error
}

// PathPrefix returns the path of u as a prefix: no slash in front, one behind,
// or empty.
func PathPrefix(u *url.URL) string { return folder(u.Path) }

// folder makes a key prefix of a path: "" or "a/b/".
func folder(p string) string {
	p = strings.Trim(p, "/")
	if p == "" {
		return ""
	}
	return p + "/"
}
