package blobstore

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

// watch cancels an attempt in which no byte moves for too long.
type watch struct {
	stall  time.Duration
	start  time.Time
	last   atomic.Int64 // nanoseconds since start
	paused atomic.Int32
	timer  *time.Timer
	cancel context.CancelCauseFunc
}

type watchKey struct{}

// newWatch returns the attempt's context, and a watch that the caller stops.
func newWatch(ctx context.Context, stall time.Duration) (context.Context, *watch) {
	ctx, cancel := context.WithCancelCause(ctx)
	w := &watch{stall: stall, start: time.Now(), cancel: cancel}
	ctx = context.WithValue(ctx, watchKey{}, w)
	if stall > 0 {
		w.timer = time.AfterFunc(stall, w.look)
	}
	return ctx, w
}

func (w *watch) look() {
	quiet := time.Since(w.start) - time.Duration(w.last.Load())
	if w.paused.Load() > 0 {
		quiet = 0
	}
	if quiet >= w.stall {
		w.cancel(&Error{Kind: KindUnavailable, Err: fmt.Errorf("no byte moved for %s", w.stall)})
		return
	}
	w.timer.Reset(w.stall - quiet)
}

func (w *watch) tick() {
	if w != nil {
		w.last.Store(int64(time.Since(w.start)))
	}
}

// pause and resume bracket waits that are not the store's fault.
func (w *watch) pause() {
	if w != nil {
		w.paused.Add(1)
	}
}

func (w *watch) resume() {
	if w != nil {
		w.tick()
		w.paused.Add(-1)
	}
}

func (w *watch) stop() {
	if w.timer != nil {
		w.timer.Stop()
	}
	w.cancel(context.Canceled)
}

func watchOf(ctx context.Context) *watch {
	w, _ := ctx.Value(watchKey{}).(*watch)
	return w
}

// WatchTransport lets the watchdog see the bytes that HTTP requests and answers
// move. Drivers wrap their transport in it. Without it a slow upload that the
// SDK has buffered would look like a stalled one.
func WatchTransport(next http.RoundTripper) http.RoundTripper { return watchTransport{next} }

type watchTransport struct{ next http.RoundTripper }

func (t watchTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	w := watchOf(req.Context())
	if w == nil {
		return t.next.RoundTrip(req)
	}
	if req.Body != nil && req.Body != http.NoBody {
		seen := *req
		seen.Body = watchedBody{req.Body, w}
		if get := req.GetBody; get != nil {
			seen.GetBody = func() (io.ReadCloser, error) {
				b, err := get()
				return watchedBody{b, w}, err
			}
		}
		req = &seen
	}
	resp, err := t.next.RoundTrip(req)
	if err == nil {
		w.tick()
		if resp.Body != nil && resp.Body != http.NoBody {
			resp.Body = watchedBody{resp.Body, w}
		}
	}
	return resp, err
}

type watchedBody struct {
	io.ReadCloser
	w *watch
}

func (b watchedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		b.w.tick()
	}
	return n, err
}
