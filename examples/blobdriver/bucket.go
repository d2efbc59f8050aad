package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gocloud.dev/blob/driver"
	"gocloud.dev/gcerrors"
)

// bucket implements gocloud's driver interface. Its Before hooks, which blobstore does not use, are left out.
var _ driver.Bucket = (*bucket)(nil)

var (
	errMissing     = errors.New("there is no such object")
	errUnsupported = errors.New("not supported")
)

// ErrorCode tells what an error means in gocloud's words.
func (b *bucket) ErrorCode(err error) gcerrors.ErrorCode {
	switch {
	case errors.Is(err, errMissing):
		return gcerrors.NotFound
	case errors.Is(err, errExists):
		return gcerrors.FailedPrecondition
	case errors.Is(err, errUnsupported):
		return gcerrors.Unimplemented
	}
	return gcerrors.Unknown
}

func (b *bucket) As(any) bool             { return false }
func (b *bucket) ErrorAs(error, any) bool { return false }
func (b *bucket) Close() error            { return b.file.Close() }

func (b *bucket) find(key string) (object, error) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	o, found := b.objects[key]
	if !found {
		return o, errMissing
	}
	return o, nil
}

// Attributes describes an object.
func (b *bucket) Attributes(_ context.Context, key string) (*driver.Attributes, error) {
	o, err := b.find(key)
	if err != nil {
		return nil, err
	}
	return &driver.Attributes{Size: o.Size, ModTime: o.Time}, nil
}

// ListPaged lists in the order of keys. A page's token is its last key.
func (b *bucket) ListPaged(ctx context.Context, opts *driver.ListOptions) (*driver.ListPage, error) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	page := &driver.ListPage{}
	for _, key := range slices.Sorted(maps.Keys(b.objects)) {
		if !strings.HasPrefix(key, opts.Prefix) || key <= string(opts.PageToken) {
			continue
		}
		if opts.PageSize > 0 && len(page.Objects) == opts.PageSize {
			page.NextPageToken = []byte(page.Objects[len(page.Objects)-1].Key)
			break
		}
		o := b.objects[key]
		page.Objects = append(page.Objects, &driver.ListObject{Key: key, Size: o.Size, ModTime: o.Time})
	}
	return page, ctx.Err()
}

type reader struct {
	io.Reader
	attributes driver.ReaderAttributes
}

func (r *reader) Attributes() *driver.ReaderAttributes { return &r.attributes }
func (r *reader) As(any) bool                          { return false }
func (r *reader) Close() error                         { return nil }

// NewRangeReader reads what is in the log, which never changes.
func (b *bucket) NewRangeReader(ctx context.Context, key string, offset, length int64, _ *driver.ReaderOptions) (
	driver.Reader, error,
) {
	o, err := b.find(key)
	if err != nil {
		return nil, err
	}
	if rest := max(o.Size-offset, 0); length < 0 || length > rest {
		length = rest
	}
	return &reader{
		Reader:     io.NewSectionReader(b.file, o.offset+offset, length),
		attributes: driver.ReaderAttributes{Size: o.Size, ModTime: o.Time},
	}, ctx.Err()
}

// writer collects the content in a file of its own, so that nothing unfinished gets into the log.
type writer struct {
	*os.File
	ctx          context.Context
	bucket       *bucket
	key          string
	onlyIfAbsent bool
}

// NewTypedWriter stores an object when the writer is closed.
func (b *bucket) NewTypedWriter(ctx context.Context, key, _ string, opts *driver.WriterOptions) (driver.Writer, error) {
	f, err := os.CreateTemp(filepath.Dir(b.file.Name()), "unfinished-")
	return &writer{f, ctx, b, key, opts.IfNotExist}, err
}

// Close stores what was written, unless the context has ended: that is how a writer is told to give up.
func (w *writer) Close() error {
	defer os.Remove(w.Name())
	defer w.File.Close()
	if err := w.ctx.Err(); err != nil {
		return err
	}
	size, err := w.Seek(0, io.SeekCurrent)
	if err != nil {
		return err
	}
	content := io.NewSectionReader(w.File, 0, size)
	return w.bucket.add(header{Key: w.key, Size: size, Time: time.Now()}, content, w.onlyIfAbsent)
}

// Delete appends a record that says so. The space is not used again.
func (b *bucket) Delete(_ context.Context, key string, _ *driver.DeleteOptions) error {
	if _, err := b.find(key); err != nil {
		return err
	}
	return b.add(header{Key: key, Time: time.Now(), Deleted: true}, bytes.NewReader(nil), false)
}

func (b *bucket) Copy(context.Context, string, string, *driver.CopyOptions) error {
	return errUnsupported
}

func (b *bucket) SignedURL(context.Context, string, *driver.SignedURLOptions) (string, error) {
	return "", errUnsupported
}
