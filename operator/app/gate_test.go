package app_test

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
)

// gate stands before the S3 server and lets a test hold or answer the requests to its bucket.
type gate struct {
	*httptest.Server
	mu     sync.Mutex
	guards map[string]func(http.ResponseWriter, *http.Request) bool
}

func newGate(endpoint string) *gate {
	behind, err := url.Parse(endpoint)
	if err != nil {
		panic(err)
	}
	// The Host header stays as it was, because it is signed.
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = behind.Scheme, behind.Host, r.In.Host
	}}
	g := &gate{guards: map[string]func(http.ResponseWriter, *http.Request) bool{}}
	g.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		bucket, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		g.mu.Lock()
		guard := g.guards[bucket]
		g.mu.Unlock()
		if guard == nil || !guard(w, r) {
			proxy.ServeHTTP(w, r)
		}
	}))
	return g
}

// guard has every request to a bucket shown to f, which reports whether it answered itself. Nil lets all pass.
func (g *gate) guard(bucket string, f func(http.ResponseWriter, *http.Request) bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.guards[bucket] = f
}

func (g *gate) close() error {
	g.CloseClientConnections()
	g.Close()
	return nil
}

// hold holds the requests to a bucket with that method and with part in their path. The channel held gets a value for
// each that comes; release lets them, and all later ones, pass.
func (g *gate) hold(bucket, method, part string) (held <-chan struct{}, release func()) {
	came, open := make(chan struct{}, 1000), make(chan struct{})
	g.guard(bucket, func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method != method || !strings.Contains(r.URL.Path, part) {
			return false
		}
		select {
		case came <- struct{}{}:
		default:
		}
		select {
		case <-open:
		case <-r.Context().Done():
		}
		return false
	})
	return came, sync.OnceFunc(func() {
		g.guard(bucket, nil)
		close(open)
	})
}
