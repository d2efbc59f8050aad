package blobstore

import (
	"context"
	"crypto/sha256"
	"fmt"
	"hash"
	"io"
)

// source reads the caller's reader in a goroutine of its own, so that the end
// of the context is noticed while the reader blocks, and verifies size and digest
// before it says io.EOF.
type source struct {
	ctx    context.Context
	cancel context.CancelFunc
	caller context.Context // of the whole operation
	chunks chan chunk
	spare  chan []byte
	done   chan struct{} // closed when the reader is no longer used
	cur    chunk
	used   []byte // the buffer of cur
	opts   *PutOptions
	sum    hash.Hash // nil when no digest is asked for
	size   int64
	failed error // what kept the content from being complete
}

type chunk struct {
	data []byte
	err  error
}

func newSource(ctx, caller context.Context, r io.Reader, o *PutOptions) *source {
	s := &source{caller: caller, chunks: make(chan chunk), spare: make(chan []byte, 2), done: make(chan struct{}), opts: o}
	s.ctx, s.cancel = context.WithCancel(ctx)
	if o.SHA256 != nil {
		s.sum = sha256.New()
	}
	s.spare <- make([]byte, chunkSize)
	s.spare <- make([]byte, chunkSize)
	go s.pump(r)
	return s
}

func (s *source) pump(r io.Reader) {
	defer close(s.done)
	for {
		var buf []byte
		select {
		case buf = <-s.spare:
		case <-s.ctx.Done():
			return
		}
		n, err := r.Read(buf)
		select {
		case s.chunks <- chunk{buf[:n], err}:
		case <-s.ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// Read implements io.Reader.
func (s *source) Read(p []byte) (int, error) {
	for len(s.cur.data) == 0 {
		if s.failed != nil {
			return 0, s.failed
		}
		if s.cur.err != nil {
			return 0, s.end(s.cur.err)
		}
		if err := s.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, s.cur.data)
	s.cur.data = s.cur.data[n:]
	s.size += int64(n)
	if s.sum != nil {
		s.sum.Write(p[:n])
	}
	return n, nil
}

func (s *source) next() error {
	if s.used != nil {
		s.spare <- s.used[:chunkSize]
		s.used = nil
	}
	w := watchOf(s.ctx)
	w.pause() // waiting for the caller's reader is not the store's silence
	defer w.resume()
	select {
	case s.cur = <-s.chunks:
		s.used = s.cur.data[:0]
		return nil
	case <-s.ctx.Done():
		return s.ctx.Err()
	}
}

// end decides at the end of the content whether it is the one that was promised.
func (s *source) end(err error) error {
	switch {
	case err != io.EOF: //nolint:errorlint // a reader ends with io.EOF itself; wrapped, it is a failure
		s.failed = &Error{Kind: KindSource, Err: err}
	case s.opts.Size > 0 && s.size != s.opts.Size:
		s.failed = &Error{Kind: KindCorrupt, Err: fmt.Errorf("the reader had %d bytes, not the given %d", s.size, s.opts.Size)}
	case s.sum != nil && [32]byte(s.sum.Sum(nil)) != *s.opts.SHA256:
		s.failed = &Error{Kind: KindCorrupt, Err: errDigest}
	default:
		return io.EOF
	}
	return s.failed
}

// stop waits until the reader is left alone, unless the caller's context ends first.
func (s *source) stop() {
	s.cancel()
	select {
	case <-s.done:
	case <-s.caller.Done():
	}
}
