package blobstore

import (
	"context"
	"errors"
	"net/url"
	"sync/atomic"
	"time"

	"gocloud.dev/blob"
)

// Object describes a stored object.
type Object struct {
	Key     string    // relative to the store
	Size    int64     // bytes
	ModTime time.Time // by the store's clock
}

// Store is a bucket, or the part of one below a prefix. Open one with [Open] or
// [New]; close it with Close.
type Store struct {
	driver *Driver
	prefix string // "" or "a/b/"
	url    string // redacted
	opts   Options
	facts  *facts
	sub    bool
}

// facts are what is learned about the store while using it.
type facts struct {
	conditionIgnored atomic.Bool // it stores in spite of OnlyIfAbsent, or refuses the condition
	digestIgnored    atomic.Bool // it stores content that differs from the signed digest
	bucketSeen       atomic.Bool // something worked, so the bucket is there
}

// Open opens the bucket that rawURL names with the driver for its scheme:
//
//	s3://bucket/prefix?region=…      gs://bucket/prefix
//	azblob://container/prefix        file:///folder/prefix        mem://name/prefix
//
// A prefix is a folder: "a" and "a/" are the same and hold nothing of "ab". It
// may also be given as the parameter prefix, below the path's. Open itself may
// not talk to the store; see Probe. Errors: *SchemeError, ErrInvalid,
// ErrNoBucket, ErrPermission.
func Open(ctx context.Context, rawURL string, opts *Options) (*Store, error) {
	o := opts.orDefault()
	u, err := url.Parse(rawURL)
	if err != nil || u.Scheme == "" || u.Opaque != "" {
		// The parser's message quotes the URL, credentials included.
		return nil, Invalid("open", "storage URL %s cannot be read: it must look like scheme://bucket/prefix", Redact(rawURL))
	}
	if u.User != nil {
		return nil, Invalid("open", "storage URL %s has a user or password in it: pass credentials by the environment", Redact(rawURL))
	}
	opener := o.Openers[u.Scheme]
	if opener == nil {
		return nil, schemeError(u.Scheme, o.Openers)
	}
	q, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, Invalid("open", "storage URL %s has unreadable parameters", Redact(rawURL))
	}
	prefix := folder(q.Get("prefix"))
	q.Del("prefix")
	u.RawQuery = q.Encode()
	d, err := opener(ctx, u, &o)
	if err == nil && (d == nil || d.Bucket == nil) {
		err = errors.New("the driver returned no bucket")
	}
	if err != nil {
		return nil, openError(ctx, rawURL, err)
	}
	s := newStore(d, o)
	s.url = Redact(rawURL)
	s.prefix += prefix
	if s.prefix != "" {
		if err := CheckKey(s.prefix + "x"); err != nil {
			return nil, errors.Join(Invalid("open", "storage URL %s: prefix: %w", s.url, err), s.Close())
		}
	}
	return s, nil
}

func openError(ctx context.Context, rawURL string, err error) error {
	var own *Error
	if errors.As(err, &own) {
		return own
	}
	if ctx.Err() != nil {
		return ended("open", "", ctx.Err(), err)
	}
	return Invalid("open", "storage URL %s: %w", Redact(rawURL), err)
}

// New makes a Store of an open gocloud bucket, which must not be nil. Only the portable error codes
// are known then, so a missing bucket may look like a missing object; prefer
// [FromDriver] with the driver's Classify. Close closes the bucket.
func New(b *blob.Bucket, opts *Options) *Store {
	return FromDriver(&Driver{Bucket: b}, opts)
}

// FromDriver makes a Store of an opened driver, for clients that were built by
// the caller. The driver and its Bucket must not be nil.
func FromDriver(d *Driver, opts *Options) *Store { return newStore(d, opts.orDefault()) }

func newStore(d *Driver, o Options) *Store {
	return &Store{driver: d, prefix: d.Prefix, opts: o, facts: new(facts)}
}

// Sub returns the part of the store below prefix, which is a folder: "a" and
// "a/" are the same. It shares everything with s; closing it does nothing. A
// prefix that no key could have makes every operation return ErrInvalid.
func (s *Store) Sub(prefix string) *Store {
	out := *s
	out.sub = true
	out.prefix += folder(prefix)
	out.url = subURL(s.url, folder(prefix))
	return &out
}

func subURL(redacted, prefix string) string {
	u, err := url.Parse(redacted)
	if err != nil || redacted == "" {
		return ""
	}
	if q := u.Query(); q.Has("prefix") {
		q.Set("prefix", folder(q.Get("prefix"))+prefix)
		u.RawQuery = redactQuery(q)
		return u.String()
	}
	return u.JoinPath(prefix).String()
}

// URL returns the URL that the store was opened with, free of credentials. It
// is empty for stores made by [New].
func (s *Store) URL() string { return s.url }

// Close releases the bucket. Nothing may be called afterwards.
func (s *Store) Close() error {
	if s.sub {
		return nil
	}
	if s.driver.Close != nil {
		return s.driver.Close()
	}
	return s.driver.Bucket.Close()
}
