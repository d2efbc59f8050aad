package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const (
	accessKey = "AKBENCHMARK"
	secretKey = "secret-of-the-benchmark"
	region    = "us-east-1"
	bucket    = "bench"
)

// server is an S3 server on a folder, which writes down what it is asked.
type server struct {
	address string
	data    string // the folder of the bucket
	log     string
	stop    func()
}

// startServer starts versitygw below dir and waits until it answers.
func startServer(ctx context.Context, program, dir string) (*server, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &server{address: listener.Addr().String(), data: filepath.Join(dir, "data", bucket), log: filepath.Join(dir, "access.log")}
	if err := errors.Join(listener.Close(), os.MkdirAll(s.data, 0o755)); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, program, "--port", s.address, "--health", "/healthz", "--quiet", "--access-log", s.log, "posix", filepath.Dir(s.data))
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "ROOT_ACCESS_KEY="+accessKey, "ROOT_SECRET_KEY="+secretKey)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	exited := make(chan struct{})
	go func() {
		_ = cmd.Wait() // it is killed in the end
		close(exited)
	}()
	s.stop = func() {
		_ = cmd.Process.Kill() // it may have ended
		<-exited
	}
	for deadline := time.Now().Add(30 * time.Second); ; {
		response, err := http.Get("http://" + s.address + "/healthz")
		if err == nil {
			return s, response.Body.Close()
		}
		select {
		case <-exited:
			return nil, fmt.Errorf("the S3 server ended at once: %s", out.String())
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			s.stop()
			return nil, errors.New("the S3 server does not answer")
		}
	}
}

func (s *server) env() []string {
	return []string{"AWS_ACCESS_KEY_ID=" + accessKey, "AWS_SECRET_ACCESS_KEY=" + secretKey, "AWS_REGION=" + region}
}

func (s *server) url(key string) string {
	return fmt.Sprintf("s3://%s/%s?endpoint=%s&region=%s", bucket, key, url.QueryEscape("http://"+s.address), region)
}

func (s *server) resticURL(key string) string {
	return "s3:http://" + s.address + "/" + bucket + "/" + key
}

func (s *server) kopiaFlags() []string {
	return []string{
		"--bucket", bucket, "--endpoint", s.address, "--disable-tls", "--region", region,
		"--access-key", accessKey, "--secret-access-key", secretKey,
	}
}

// requests counts what was asked since the log had from bytes, by operation, and returns how much the log has now.
func (s *server) requests(from int) (map[string]int, int, error) {
	text, err := os.ReadFile(s.log)
	if err != nil {
		return nil, 0, err
	}
	counts := map[string]int{}
	for line := range bytes.Lines(text[min(from, len(text)):]) {
		if operation, ok := operationOf(string(line)); ok {
			counts[verb(operation)]++
		}
	}
	return counts, len(text), nil
}

// operationOf finds the operation in a line of the log: owner, bucket, [time zone], address, requester, request,
// operation, key and more.
func operationOf(line string) (string, bool) {
	fields := strings.Fields(line)
	if len(fields) < 9 || !strings.HasPrefix(fields[2], "[") {
		return "", false
	}
	return fields[7], true
}

// verbs are the columns of the table of requests.
var verbs = []string{"PUT", "GET", "HEAD", "LIST", "DELETE", "other"}

// verb groups operations by what stores charge for.
func verb(operation string) string {
	name := operation[strings.LastIndexAny(operation, "_:.")+1:]
	switch {
	case strings.HasPrefix(name, "List"):
		return "LIST"
	case strings.HasPrefix(name, "Put"), strings.Contains(name, "Multipart"), strings.HasPrefix(name, "UploadPart"), strings.HasPrefix(name, "CopyObject"):
		return "PUT"
	case strings.HasPrefix(name, "Head"):
		return "HEAD"
	case strings.HasPrefix(name, "Get"):
		return "GET"
	case strings.HasPrefix(name, "Delete"):
		return "DELETE"
	}
	return "other"
}

// size adds up the files below a folder.
func size(dir string) (int64, error) {
	total := int64(0)
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			total += info.Size()
		}
		return err
	})
	return total, err
}
