package devkubelet

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"
)

const localhost = "127.0.0.1"

// logServer is the part of a kubelet's server that pods/log needs.
type logServer struct {
	server *http.Server
	port   int32
	done   chan struct{}
}

func startLogServer(k *Kubelet) (*logServer, error) {
	certificate, err := selfSigned()
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(localhost, "0"))
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", k.serveLog)
	s := &logServer{
		server: &http.Server{
			Handler: mux, ReadHeaderTimeout: callTimeout, ErrorLog: log.New(io.Discard, "", 0),
			TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12},
		},
		port: int32(listener.Addr().(*net.TCPAddr).Port),
		done: make(chan struct{}),
	}
	go func() {
		defer close(s.done)
		if err := s.server.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
			k.options.Log("the log server ended: %v", err)
		}
	}()
	return s, nil
}

func (s *logServer) stop() {
	_ = s.server.Close()
	<-s.done
}

func selfSigned() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: "devkubelet"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(1, 0, 0),
		IPAddresses: []net.IP{net.ParseIP(localhost)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}

// serveLog understands tailLines, limitBytes and follow.
func (k *Kubelet) serveLog(w http.ResponseWriter, r *http.Request) {
	worker := k.find(r.PathValue("namespace"), r.PathValue("pod"))
	if worker == nil {
		http.Error(w, "no such pod on this node", http.StatusNotFound)
		return
	}
	file, err := os.Open(worker.logFile(r.PathValue("container")))
	if err != nil {
		http.Error(w, "the container has no log yet", http.StatusBadRequest)
		return
	}
	defer file.Close()
	query := r.URL.Query()
	if lines, err := strconv.Atoi(query.Get("tailLines")); err == nil {
		if err := seekLines(file, lines); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
	}
	var out io.Writer = w
	if limit, err := strconv.ParseInt(query.Get("limitBytes"), 10, 64); err == nil {
		out = &limited{w: w, left: limit}
	}
	w.Header().Set("Content-Type", "text/plain")
	if query.Get("follow") == "true" {
		follow(r.Context(), out, w.(http.Flusher), file, worker.ended)
		return
	}
	_, _ = io.Copy(out, file)
}

var errLimit = errors.New("the limit is reached")

type limited struct {
	w    io.Writer
	left int64
}

func (l *limited) Write(p []byte) (int, error) {
	n, err := l.w.Write(p[:min(int64(len(p)), l.left)])
	l.left -= int64(n)
	if err == nil && n < len(p) {
		err = errLimit
	}
	return n, err
}

// follow copies what is written until the container has ended and all of its log was copied.
func follow(ctx context.Context, out io.Writer, flusher http.Flusher, file io.Reader, ended <-chan struct{}) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		over := false
		select {
		case <-ended:
			over = true
		default:
		}
		if _, err := io.Copy(out, file); err != nil || over {
			return
		}
		flusher.Flush()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// seekLines seeks to the last lines of a file, reading it from its end.
func seekLines(file *os.File, lines int) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	for window := int64(4096); ; window *= 4 {
		from := max(0, info.Size()-window)
		text := make([]byte, info.Size()-from)
		if _, err := file.ReadAt(text, from); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		at := lastLines(text, lines)
		if at > 0 || from == 0 {
			_, err := file.Seek(from+int64(at), io.SeekStart)
			return err
		}
	}
}
