package gcs

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"time"

	"cloud.google.com/go/storage"
	"gocloud.dev/blob"
	"gocloud.dev/blob/gcsblob"
	"google.golang.org/api/option"
	htransport "google.golang.org/api/transport/http"

	"example.com/pvcbackup/blobstore"
)

// Openers returns the opener of the scheme "gs".
func Openers() map[string]blobstore.Opener {
	return map[string]blobstore.Opener{"gs": open}
}

type params struct {
	anonymous bool
	universe  string
}

func parse(u *url.URL) (p params, err error) {
	if u.Host == "" {
		return p, blobstore.Invalid("open", "gs URL names no bucket: write gs://bucket/prefix")
	}
	for name, values := range u.Query() {
		switch name {
		case "anonymous":
			if p.anonymous, err = strconv.ParseBool(values[0]); err != nil {
				return p, blobstore.Invalid("open", "gs URL has anonymous=%q: it must be true or false", values[0])
			}
		case "universe_domain":
			p.universe = values[0]
		default:
			return p, blobstore.Invalid("open", "gs URL has the unknown parameter %q; it takes anonymous, universe_domain and prefix", name)
		}
	}
	return p, nil
}

func open(ctx context.Context, u *url.URL, _ *blobstore.Options) (*blobstore.Driver, error) {
	p, err := parse(u)
	if err != nil {
		return nil, err
	}
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.MaxIdleConnsPerHost = 64
	client, err := p.client(ctx, base)
	if err != nil {
		return nil, err
	}
	d, err := NewDriver(ctx, client, u.Host)
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	d.Prefix = blobstore.PathPrefix(u)
	d.Close = func() error {
		err := errors.Join(d.Bucket.Close(), client.Close())
		base.CloseIdleConnections()
		return err
	}
	return d, nil
}

func (p *params) client(ctx context.Context, base http.RoundTripper) (*storage.Client, error) {
	var opts []option.ClientOption
	if p.universe != "" {
		opts = append(opts, option.WithUniverseDomain(p.universe))
	}
	transport := blobstore.WatchTransport(base)
	if !p.anonymous && os.Getenv("STORAGE_EMULATOR_HOST") == "" {
		var err error
		// The client must outlive ctx, which may end with the call to Open.
		transport, err = htransport.NewTransport(context.WithoutCancel(ctx), transport,
			append(opts, option.WithScopes(storage.ScopeReadWrite))...)
		if err != nil {
			return nil, &blobstore.Error{Op: "open", Kind: blobstore.KindPermission,
				Err: fmt.Errorf("no usable Google credentials: set GOOGLE_APPLICATION_CREDENTIALS or give the Pod an identity: %w", err)}
		}
	}
	client, err := storage.NewClient(ctx, append(opts, option.WithHTTPClient(&http.Client{Transport: transport}))...)
	if err != nil {
		return nil, blobstore.Invalid("open", "gs client: %w", err)
	}
	client.SetRetry(storage.WithPolicy(storage.RetryNever)) // the store above retries, with a budget
	return client, nil
}

// NewDriver makes a driver of a client that the caller has built, for
// blobstore.FromDriver. Closing it leaves the client open.
func NewDriver(ctx context.Context, client *storage.Client, bucket string) (*blobstore.Driver, error) {
	b, err := gcsblob.OpenBucket(ctx, nil, bucket, &gcsblob.Options{Client: client})
	if err != nil {
		return nil, blobstore.Invalid("open", "gs bucket %q: %w", bucket, err)
	}
	return &blobstore.Driver{Bucket: b, Classify: Classify, Tune: tune, Fail: fail}, nil
}

const (
	oneRequest   = 256 << 20 // larger content goes in chunks
	chunkRetries = 8
	chunkWait    = 32 * time.Second
)

// fail makes a writer fail. Cancelling its context alone does that too, but in another goroutine: if the writer is closed
// before that one runs, the request that is under way ends as if its content were whole.
func fail(begun func(any) bool, cause error) {
	var w *storage.Writer
	if begun(&w) {
		_ = w.CloseWithError(cause) //nolint:staticcheck // the context is too late, see above
	}
}

// tune sends what is in memory in one request without a copy of it. Streams go in chunks: they can be sent again, unlike
// the stream, and a stream that fails has not been sent to its end. A request that carries it would have been: Google's
// client ends the body of a failed one in good form, and leaves it to the server to miss the end of the request.
func tune(size int64, o *blob.WriterOptions) {
	if size >= 0 && size <= oneRequest {
		o.BufferSize = -1
		return
	}
	o.BeforeWrite = func(as func(any) bool) error {
		var h **storage.ObjectHandle
		if as(&h) {
			*h = (*h).Retryer(storage.WithPolicy(storage.RetryAlways), storage.WithMaxAttempts(chunkRetries))
		}
		var w *storage.Writer
		if as(&w) {
			w.ChunkRetryDeadline = chunkWait
		}
		return nil
	}
}
