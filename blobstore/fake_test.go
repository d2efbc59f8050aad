package blobstore

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"testing"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/blob/driver"
	"gocloud.dev/gcerrors"
)

// fake is a gocloud driver whose steps a test can replace.
type fake struct {
	driver.Bucket // what is not there panics

	mu      sync.Mutex
	objects map[string][]byte

	onRead  func(n int, body io.Reader) (io.Reader, error) // n counts from 1
	onWrite func(n int) error                              // before it stores
	onAck   func(n int) error                              // after it stored
	onList  func(n int) error
	reads   int
	writes  int
	lists   int
	ignore  bool // ignores conditions
}

type coded struct {
	code gcerrors.ErrorCode
	text string
}

func (c coded) Error() string { return c.text }

var (
	errAbsent  = coded{gcerrors.NotFound, "absent"}
	errThere   = coded{gcerrors.FailedPrecondition, "there"}
	errFlaky   = coded{gcerrors.Unknown, "connection reset"}
	errRefused = coded{gcerrors.PermissionDenied, "refused"}
)

func newFake() *fake { return &fake{objects: map[string][]byte{}} }

func (f *fake) store(t *testing.T, o Options) *Store {
	t.Helper()
	if o.RetryDelay == 0 {
		o.RetryDelay = time.Microsecond
	}
	s := New(blob.NewBucket(f), &o)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func (f *fake) ErrorCode(err error) gcerrors.ErrorCode {
	var c coded
	if errors.As(err, &c) {
		return c.code
	}
	return gcerrors.Unknown
}
func (f *fake) ErrorAs(error, any) bool { return false }
func (f *fake) Close() error            { return nil }

func (f *fake) get(key string) ([]byte, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	b, ok := f.objects[key]
	return b, ok
}

func (f *fake) Attributes(_ context.Context, key string) (*driver.Attributes, error) {
	b, ok := f.get(key)
	if !ok {
		return nil, errAbsent
	}
	return &driver.Attributes{Size: int64(len(b)), ModTime: time.Now()}, nil
}

func (f *fake) ListPaged(_ context.Context, o *driver.ListOptions) (*driver.ListPage, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lists++
	if f.onList != nil {
		if err := f.onList(f.lists); err != nil {
			return nil, err
		}
	}
	page := &driver.ListPage{}
	for k, b := range f.objects {
		if len(k) >= len(o.Prefix) && k[:len(o.Prefix)] == o.Prefix {
			page.Objects = append(page.Objects, &driver.ListObject{Key: k, Size: int64(len(b))})
		}
	}
	slices.SortFunc(page.Objects, func(a, b *driver.ListObject) int { return bytes.Compare([]byte(a.Key), []byte(b.Key)) })
	return page, nil
}

type fakeReader struct {
	io.Reader
	size int64
}

func (r *fakeReader) Close() error { return nil }
func (r *fakeReader) As(any) bool  { return false }
func (r *fakeReader) Attributes() *driver.ReaderAttributes {
	return &driver.ReaderAttributes{Size: r.size}
}

func (f *fake) NewRangeReader(ctx context.Context, key string, offset, length int64, _ *driver.ReaderOptions) (driver.Reader, error) {
	b, ok := f.get(key)
	if !ok {
		return nil, errAbsent
	}
	rest := b[min(offset, int64(len(b))):]
	if length >= 0 {
		rest = rest[:min(length, int64(len(rest)))]
	}
	f.reads++
	r := io.Reader(bytes.NewReader(rest))
	if f.onRead != nil {
		var err error
		if r, err = f.onRead(f.reads, r); err != nil {
			return nil, err
		}
	}
	return &fakeReader{&ctxReader{ctx, r}, int64(len(b))}, nil
}

// ctxReader turns a reader that returns errHang into one that hangs.
type ctxReader struct {
	ctx context.Context
	r   io.Reader
}

var errHang = errors.New("hang")

func (c *ctxReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	if errors.Is(err, errHang) {
		<-c.ctx.Done()
		return n, c.ctx.Err()
	}
	return n, err
}

type fakeWriter struct {
	bytes.Buffer
	f      *fake
	ctx    context.Context
	key    string
	absent bool
}

func (f *fake) NewTypedWriter(ctx context.Context, key, _ string, o *driver.WriterOptions) (driver.Writer, error) {
	return &fakeWriter{f: f, ctx: ctx, key: key, absent: o.IfNotExist}, nil
}

func (w *fakeWriter) Close() error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	w.f.mu.Lock()
	defer w.f.mu.Unlock()
	w.f.writes++
	if w.f.onWrite != nil {
		if err := w.f.onWrite(w.f.writes); err != nil {
			if errors.Is(err, errHang) {
				<-w.ctx.Done()
				return w.ctx.Err()
			}
			return err
		}
	}
	if _, ok := w.f.objects[w.key]; ok && w.absent && !w.f.ignore {
		return errThere
	}
	w.f.objects[w.key] = bytes.Clone(w.Bytes())
	if w.f.onAck != nil {
		return w.f.onAck(w.f.writes)
	}
	return nil
}

func (f *fake) Delete(_ context.Context, key string, _ *driver.DeleteOptions) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, ok := f.objects[key]; !ok {
		return errAbsent
	}
	delete(f.objects, key)
	f.writes++
	if f.onAck != nil {
		return f.onAck(f.writes)
	}
	return nil
}
