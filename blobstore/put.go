package blobstore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"

	"gocloud.dev/blob"
)

const chunkSize = 256 << 10

// Put stores what r yields until io.EOF, in constant memory. If r fails, yields
// other than the promised size or digest, or ctx ends, nothing is stored and an
// older object stays. It returns when ctx ends even while r blocks; one Read of r
// may then still be running. A reader that is an io.Seeker is sent again from
// where it stood after a transient error; others are sent once.
//
// On S3 a stream of up to 16 MiB is one request. Longer ones go in parts, of
// equal size if PutOptions.Size is given, else growing from 16 MiB to 1 GiB (each
// held in memory), so that 5 TiB, the largest object, fits. Stores that insist on
// equal parts take streams of up to 15 GiB without a size.
//
// Errors: ErrExists, ErrSource (wrapping r's), ErrCorrupt and the general ones.
func (s *Store) Put(ctx context.Context, key string, r io.Reader, opts *PutOptions) error {
	full, err := s.fullKey("put", key)
	if err != nil {
		return err
	}
	o := opts.orDefault()
	if err := o.check(key, r == nil); err != nil {
		return err
	}
	start, seekable := int64(0), false
	seeker, ok := r.(io.Seeker)
	if ok {
		start, err = seeker.Seek(0, io.SeekCurrent)
		seekable = err == nil
	}
	return s.conditional(ctx, key, &o, func(o *PutOptions) error {
		// Half of a stream that cannot seek is gone: only the caller can send it again.
		return s.run(ctx, "put", key, !seekable, func(actx context.Context, a attempt) error {
			if a.retried() {
				if _, err := seeker.Seek(start, io.SeekStart); err != nil {
					return &Error{Kind: KindSource, Err: err}
				}
			}
			return s.stream(actx, ctx, full, r, o)
		})
	}, nil)
}

// stream sends r once. ctx is the attempt's, caller the whole operation's.
func (s *Store) stream(ctx, caller context.Context, full string, r io.Reader, o *PutOptions) error {
	src := newSource(ctx, caller, r, o)
	defer src.stop()
	var err error
	if s.driver.PutStream != nil {
		err = s.driver.PutStream(ctx, full, src, o)
	} else {
		err = s.write(ctx, full, piecesRead(src), -1, o)
	}
	if src.failed != nil {
		return src.failed // whatever the driver made of it
	}
	return err
}

// PutBytes stores data: one request on S3, GCS and Azure. With SHA256 set the
// digest is verified, by the store itself where it can. data must not change
// until PutBytes returns. If an attempt's answer is lost, OnlyIfAbsent counts an
// object with exactly these bytes as its own. Errors as for Put.
func (s *Store) PutBytes(ctx context.Context, key string, data []byte, opts *PutOptions) error {
	full, err := s.fullKey("put", key)
	if err != nil {
		return err
	}
	o := opts.orDefault()
	if err := o.check(key, false); err != nil {
		return err
	}
	o.Size = int64(len(data))
	send, err := s.sender(full, key, data, &o)
	if err != nil {
		return err
	}
	same := func() (bool, error) { return s.holds(ctx, key, data) }
	return s.conditional(ctx, key, &o, func(o *PutOptions) error {
		return s.do(ctx, "put", key, func(actx context.Context, a attempt) error {
			err := send(actx, o)
			if err != nil && o.OnlyIfAbsent && a.retried() && s.classify(err) == KindExists {
				if mine, serr := same(); serr != nil || mine {
					return serr
				}
			}
			return err
		})
	}, same)
}

// sender chooses how to send data, and verifies its digest unless the store does.
func (s *Store) sender(full, key string, data []byte, o *PutOptions) (func(context.Context, *PutOptions) error, error) {
	hashed := s.driver.PutHashed != nil && len(data) <= maxSingle
	verified := o.SHA256 != nil && (o.SHA256Computed || hashed && !s.facts.digestIgnored.Load())
	if !verified && (hashed || o.SHA256 != nil) {
		sum := sha256.Sum256(data)
		if o.SHA256 != nil && sum != *o.SHA256 {
			return nil, &Error{Op: "put", Key: key, Kind: KindCorrupt, Err: errDigest}
		}
		o.SHA256 = &sum
	}
	if hashed {
		sum := *o.SHA256
		return func(ctx context.Context, o *PutOptions) error {
			return s.driver.PutHashed(ctx, full, data, sum, o)
		}, nil
	}
	return func(ctx context.Context, o *PutOptions) error {
		return s.write(ctx, full, piecesOf(data), int64(len(data)), o)
	}, nil
}

const (
	maxSingle = 5 << 30 // bytes that one S3 request may carry
	// portableSingle is just below the 16 MiB from which some clients send an object in parts.
	portableSingle = 16<<20 - 4<<10
)

// MaxSingle returns how large an object may be, in bytes, so that PutBytes surely takes one request.
func (s *Store) MaxSingle() int64 {
	if s.driver.PutHashed != nil {
		return maxSingle
	}
	return portableSingle
}

var errDigest = errors.New("the content does not have the given SHA-256")

// piecesOf yields data, a piece at a time.
func piecesOf(data []byte) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for piece := range slices.Chunk(data, chunkSize) {
			if !yield(piece, nil) {
				return
			}
		}
	}
}

// piecesRead yields what r yields until io.EOF; an error of r ends it.
func piecesRead(r io.Reader) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		buf := make([]byte, chunkSize)
		for {
			n, err := r.Read(buf)
			if n > 0 && !yield(buf[:n], nil) {
				return
			}
			if err != nil {
				if !errors.Is(err, io.EOF) {
					yield(nil, err)
				}
				return
			}
		}
	}
}

// write is the portable way: a gocloud writer whose context is cancelled before
// it is closed whenever anything went wrong, because Close commits.
func (s *Store) write(ctx context.Context, full string, pieces iter.Seq2[[]byte, error], size int64, o *PutOptions) error {
	w := watchOf(ctx)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	wo := &blob.WriterOptions{ContentType: o.ContentType, DisableContentTypeDetection: true, IfNotExist: o.OnlyIfAbsent}
	if s.driver.Tune != nil {
		s.driver.Tune(size, wo)
	}
	end := s.ending(cancel, wo)
	bw, err := s.driver.Bucket.NewWriter(ctx, full, wo)
	if err != nil {
		return err
	}
	for piece, err := range pieces {
		if err == nil {
			_, err = bw.Write(piece)
		}
		if err != nil {
			return abort(end, bw, err)
		}
		w.tick()
	}
	if err := ctx.Err(); err != nil {
		return abort(end, bw, err)
	}
	return bw.Close()
}

// ending returns what makes a writer fail that is opened with these options.
func (s *Store) ending(cancel context.CancelFunc, wo *blob.WriterOptions) func(cause error) {
	if s.driver.Fail == nil {
		return func(error) { cancel() }
	}
	var begun func(any) bool
	tuned := wo.BeforeWrite
	wo.BeforeWrite = func(as func(any) bool) error {
		begun = as
		if tuned == nil {
			return nil
		}
		return tuned(as)
	}
	return func(cause error) {
		if begun != nil {
			s.driver.Fail(begun, cause)
		}
		cancel()
	}
}

// abort ends a writer without storing. A pipe that broke because the upload had
// ended tells nothing; the writer's own error then does.
func abort(end func(error), w io.Closer, err error) error {
	end(err)
	cerr := w.Close()
	if errors.Is(err, io.ErrClosedPipe) && cerr != nil {
		return cerr
	}
	return err
}

// conditional runs put, and replaces a condition that the store does not honour
// by look, write, look: best effort, since two writers may both pass the first look.
// same says whether the object is what was put; nil compares nothing but presence.
func (s *Store) conditional(ctx context.Context, key string, o *PutOptions, put func(*PutOptions) error, same func() (bool, error)) error {
	if !o.OnlyIfAbsent {
		return put(o)
	}
	if !s.facts.conditionIgnored.Load() {
		err := put(o)
		if !errors.Is(err, ErrUnsupported) {
			return err
		}
		s.facts.conditionIgnored.Store(true)
		if same == nil {
			return err // a stream that was begun cannot be sent again
		}
	}
	_, err := s.Stat(ctx, key)
	if err == nil {
		return &Error{Op: "put", Key: key, Kind: KindExists}
	}
	if !errors.Is(err, ErrNotFound) {
		return err
	}
	plain := *o
	plain.OnlyIfAbsent = false
	if err := put(&plain); err != nil || same == nil {
		return err
	}
	mine, err := same()
	if err == nil && !mine {
		err = &Error{Op: "put", Key: key, Kind: KindExists, Err: errors.New("another writer came in between")}
	}
	return err
}

// holds says whether the object under key consists of data.
func (s *Store) holds(ctx context.Context, key string, data []byte) (bool, error) {
	got, err := s.GetBytes(ctx, key, int64(len(data)))
	if errors.Is(err, ErrTooLarge) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("looking whether an earlier attempt stored it: %w", err)
	}
	return bytes.Equal(got, data), nil
}
