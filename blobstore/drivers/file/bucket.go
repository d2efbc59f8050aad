package file

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"

	"gocloud.dev/blob/driver"
	"gocloud.dev/gcerrors"
)

const contentType = "application/octet-stream"

// bucket is a gocloud driver over one folder.
type bucket struct{ root *os.Root }

var _ driver.Bucket = (*bucket)(nil)

// ErrorCode implements driver.Bucket.
func (b *bucket) ErrorCode(err error) gcerrors.ErrorCode { return code(err) }

// As implements driver.Bucket: it offers the *os.Root.
func (b *bucket) As(i any) bool {
	p, ok := i.(**os.Root)
	if ok {
		*p = b.root
	}
	return ok
}

// ErrorAs implements driver.Bucket.
func (b *bucket) ErrorAs(err error, i any) bool { return errors.As(err, i) }

// Attributes implements driver.Bucket.
func (b *bucket) Attributes(_ context.Context, key string) (*driver.Attributes, error) {
	info, err := b.root.Stat(key)
	if err != nil {
		return nil, absent(err)
	}
	if !info.Mode().IsRegular() {
		return nil, notExist(key)
	}
	return &driver.Attributes{
		ContentType: contentType,
		ModTime:     info.ModTime(),
		Size:        info.Size(),
		ETag:        fmt.Sprintf("\"%x-%x\"", info.ModTime().UnixNano(), info.Size()),
	}, nil
}

func notExist(key string) error {
	return &fs.PathError{Op: "open", Path: key, Err: fs.ErrNotExist}
}

// absent is for reads: a path through a file leads to no object.
func absent(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) && code(err) == gcerrors.InvalidArgument {
		return fmt.Errorf("%w: %w", fs.ErrNotExist, errors.New(err.Error()))
	}
	return err
}

func (b *bucket) open(key string) (*os.File, os.FileInfo, error) {
	f, err := b.root.Open(key)
	if err != nil {
		return nil, nil, absent(err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = notExist(key)
	}
	if err != nil {
		_ = f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

type reader struct {
	io.Reader
	f     *os.File
	attrs driver.ReaderAttributes
}

// NewRangeReader implements driver.Bucket.
func (b *bucket) NewRangeReader(ctx context.Context, key string, offset, length int64, opts *driver.ReaderOptions) (driver.Reader, error) {
	if opts.BeforeRead != nil {
		if err := opts.BeforeRead(func(any) bool { return false }); err != nil {
			return nil, err
		}
	}
	f, info, err := b.open(key)
	if err != nil {
		return nil, err
	}
	if length < 0 {
		length = max(0, info.Size()-offset)
	}
	return &reader{
		Reader: &ctxReader{ctx, io.NewSectionReader(f, offset, length)},
		f:      f,
		attrs:  driver.ReaderAttributes{ContentType: contentType, ModTime: info.ModTime(), Size: info.Size()},
	}, nil
}

func (r *reader) Close() error                         { return r.f.Close() }
func (r *reader) Attributes() *driver.ReaderAttributes { return &r.attrs }
func (r *reader) As(any) bool                          { return false }

type ctxReader struct {
	ctx context.Context
	r   io.Reader
}

func (r *ctxReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}

// Delete implements driver.Bucket. Folders that it empties go too, since
// buckets have none.
func (b *bucket) Delete(_ context.Context, key string, opts *driver.DeleteOptions) error {
	if opts != nil && opts.BeforeDelete != nil {
		if err := opts.BeforeDelete(func(any) bool { return false }); err != nil {
			return err
		}
	}
	info, err := b.root.Lstat(key)
	if err != nil {
		return absent(err)
	}
	if info.IsDir() {
		return notExist(key) // Remove would take an empty folder
	}
	if err := b.root.Remove(key); err != nil {
		return err
	}
	dir := path.Dir(key)
	if err := b.sync(dir); err != nil {
		return err
	}
	for dir != "." && b.root.Remove(dir) == nil { // until one is not empty
		dir = path.Dir(dir)
	}
	return nil
}

// SignedURL implements driver.Bucket: files have none.
func (b *bucket) SignedURL(context.Context, string, *driver.SignedURLOptions) (string, error) {
	return "", errNotSupported
}

// Close implements driver.Bucket.
func (b *bucket) Close() error {
	_ = b.root.Remove(tempDir) // fails, and should, while somebody writes
	return b.root.Close()
}
