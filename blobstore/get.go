package blobstore

import (
	"context"
	"errors"
	"fmt"
	"io"

	"gocloud.dev/blob"
)

// Stat returns size and time of an object. Errors: ErrNotFound and the general ones.
func (s *Store) Stat(ctx context.Context, key string) (Object, error) {
	full, err := s.fullKey("stat", key)
	if err != nil {
		return Object{}, err
	}
	var out Object
	err = s.do(ctx, "stat", key, func(ctx context.Context, _ attempt) error {
		a, err := s.driver.Bucket.Attributes(ctx, full)
		if err == nil {
			out = Object{Key: key, Size: a.Size, ModTime: a.ModTime}
		}
		return err
	})
	return out, err
}

// GetBytes returns a whole object of at most max bytes; a larger one is ErrTooLarge.
func (s *Store) GetBytes(ctx context.Context, key string, max int64) ([]byte, error) {
	if max < 0 {
		return nil, &Error{Op: "get", Key: key, Kind: KindInvalid, Err: fmt.Errorf("limit %d is negative", max)}
	}
	r, err := s.open(ctx, key, 0, -1)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if r.size > max {
		return nil, &Error{Op: "get", Key: key, Kind: KindTooLarge, Err: fmt.Errorf("it has %d bytes, the limit is %d", r.size, max)}
	}
	buf := make([]byte, r.size)
	if _, err := io.ReadFull(r, buf); err != nil {
		return nil, err
	}
	return buf, nil
}

// GetRange returns exactly length bytes from offset on. An object that ends
// earlier is ErrCorrupt. A length of 0 returns no bytes and asks nobody.
func (s *Store) GetRange(ctx context.Context, key string, offset, length int64) ([]byte, error) {
	if offset < 0 || length < 0 || offset+length < 0 {
		return nil, &Error{Op: "get", Key: key, Kind: KindInvalid, Err: fmt.Errorf("range of %d bytes at %d is impossible", length, offset)}
	}
	if _, err := s.fullKey("get", key); err != nil {
		return nil, err
	}
	if length == 0 {
		return []byte{}, nil
	}
	r, err := s.open(ctx, key, offset, length)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	buf := make([]byte, length) // not before it is known that the object is that long
	if _, err := io.ReadFull(r, buf); err != nil {
		return nil, err
	}
	return buf, nil
}

// Get returns a reader of a whole object. It continues where it was when the
// connection breaks, and never ends early without an error. It must be closed;
// ctx must live as long as it is read. A slow caller is not a stalled store.
func (s *Store) Get(ctx context.Context, key string) (io.ReadCloser, error) {
	r, err := s.open(ctx, key, 0, -1)
	if err != nil {
		return nil, err
	}
	return r, nil
}

// reader reads [pos, end) of an object over as many requests as it takes.
type reader struct {
	s         *Store
	ctx       context.Context
	key, full string
	size      int64 // of the object
	pos, end  int64
	body      *body // nil when the next Read must open one
	err       error // for good
}

// body is one request's answer with the context that it lives in.
type body struct {
	*blob.Reader
	ctx context.Context
	w   *watch
}

func (b *body) Close() error {
	err := b.Reader.Close()
	b.w.stop()
	return err
}

func (s *Store) open(ctx context.Context, key string, offset, length int64) (*reader, error) {
	full, err := s.fullKey("get", key)
	if err != nil {
		return nil, err
	}
	r := &reader{s: s, ctx: ctx, key: key, full: full, pos: offset, end: -1, size: -1}
	if length >= 0 {
		r.end = offset + length
	}
	err = s.do(ctx, "get", key, func(context.Context, attempt) error { return r.connect() })
	if err != nil {
		return nil, err
	}
	return r, nil
}

// connect opens a body at pos and checks it against what is known of the object.
func (r *reader) connect() error {
	// The body outlives this call, and so does its watch.
	ctx, w := newWatch(r.ctx, r.s.opts.StallTimeout)
	length := int64(-1)
	if r.end >= 0 {
		length = r.end - r.pos
	}
	br, err := r.s.driver.Bucket.NewRangeReader(ctx, r.full, r.pos, length, nil)
	if err != nil {
		err = stalled(ctx, err)
		w.stop()
		return err
	}
	w.pause()
	b := &body{br, ctx, w}
	if err := r.check(br.Size()); err != nil {
		_ = b.Close()
		return err
	}
	r.body = b
	return nil
}

func (r *reader) check(size int64) error {
	corrupt := func(format string, args ...any) error {
		return &Error{Kind: KindCorrupt, Err: fmt.Errorf(format, args...)}
	}
	switch {
	case size < 0:
		return corrupt("the store does not tell the object's size")
	case r.size >= 0 && size != r.size:
		return corrupt("the object changed from %d to %d bytes while it was read", r.size, size)
	case r.end > size:
		return corrupt("the object has %d bytes, the range ends at %d", size, r.end)
	}
	r.size = size
	if r.end < 0 {
		r.end = size
	}
	return nil
}

// Read implements io.Reader.
func (r *reader) Read(p []byte) (int, error) {
	if r.err != nil {
		return 0, r.err
	}
	if r.pos >= r.end {
		return 0, io.EOF
	}
	if len(p) == 0 {
		return 0, nil
	}
	p = p[:min(int64(len(p)), r.end-r.pos)]
	if r.body != nil {
		if n, err := r.read(p); err == nil {
			r.pos += int64(n)
			return n, nil
		}
	}
	var n int
	err := r.s.do(r.ctx, "get", r.key, func(context.Context, attempt) error {
		if r.body == nil {
			if err := r.connect(); err != nil {
				return err
			}
		}
		var err error
		n, err = r.read(p)
		return err
	})
	r.pos += int64(n)
	r.err = err
	return n, err
}

// read reads at least one byte, or drops the body and says why.
func (r *reader) read(p []byte) (int, error) {
	b := r.body
	b.w.resume()
	n, err := b.Read(p)
	b.w.pause()
	if n > 0 {
		if err != nil {
			r.drop() // what came is good; the rest comes from a new body
		}
		return n, nil
	}
	if err == nil {
		return 0, &Error{Kind: KindUnavailable, Err: io.ErrNoProgress}
	}
	err = stalled(b.ctx, err)
	r.drop()
	if errors.Is(err, io.EOF) {
		err = &Error{Kind: KindUnavailable, Err: fmt.Errorf("the answer ended %d bytes early: %w", r.end-r.pos, io.ErrUnexpectedEOF)}
	}
	return 0, err
}

func (r *reader) drop() {
	if r.body != nil {
		_ = r.body.Close()
		r.body = nil
	}
}

// Close releases the connection.
func (r *reader) Close() error {
	r.drop()
	if r.err == nil {
		r.err = &Error{Op: "get", Key: r.key, Kind: KindInvalid, Err: errors.New("the reader is closed")}
	}
	return nil
}
