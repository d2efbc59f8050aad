package blobtest

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// S3 is a running S3 server with one user and one empty bucket.
type S3 struct {
	URL       string // of the bucket, complete but for credentials: s3://bucket?endpoint=…
	Endpoint  string // http://127.0.0.1:port
	Bucket    string
	AccessKey string
	SecretKey string
	Region    string
	Dir       string // holds the buckets as folders; a new folder is a new bucket
}

// Env returns the environment variables that give access, for child processes.
func (s *S3) Env() []string {
	return []string{"AWS_ACCESS_KEY_ID=" + s.AccessKey, "AWS_SECRET_ACCESS_KEY=" + s.SecretKey, "AWS_REGION=" + s.Region}
}

// BucketURL makes a new empty bucket and returns its URL.
func (s *S3) BucketURL(name string) (string, error) {
	if err := os.Mkdir(filepath.Join(s.Dir, name), 0o755); err != nil {
		return "", err
	}
	return s.bucketURL(name), nil
}

func (s *S3) bucketURL(name string) string {
	return fmt.Sprintf("s3://%s?endpoint=%s&region=%s", name, url.QueryEscape(s.Endpoint), s.Region)
}

// StartS3 starts versitygw with a fresh folder, puts the credentials into the
// environment of the test, and stops it at the end. Like everything that sets the
// environment it is not for parallel tests; those share one of [LaunchS3].
func StartS3(t testing.TB) *S3 {
	t.Helper()
	s, stop, err := LaunchS3(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	for _, kv := range s.Env() {
		k, v, _ := strings.Cut(kv, "=")
		t.Setenv(k, v)
	}
	return s
}

// LaunchS3 starts versitygw on a folder, for TestMain. The caller stops it and
// sets the environment.
func LaunchS3(dir string) (*S3, func(), error) {
	bin, err := Tool("versitygw")
	if err != nil {
		return nil, nil, err
	}
	data, state := filepath.Join(dir, "data"), filepath.Join(dir, "state")
	addr, err := freeAddr()
	if err = errors.Join(err, os.MkdirAll(data, 0o755), os.MkdirAll(state, 0o755)); err != nil {
		return nil, nil, err
	}
	s := &S3{Endpoint: "http://" + addr, Bucket: "bucket", AccessKey: "AKTESTACCESSKEY", SecretKey: "test-secret-key-0123456789", Region: "us-east-1", Dir: data}
	if s.URL, err = s.BucketURL(s.Bucket); err != nil {
		return nil, nil, err
	}
	cmd := exec.Command(bin, "--port", addr, "--health", "/healthz", "--quiet", "posix", data)
	cmd.Dir = state
	cmd.Env = append(os.Environ(), "ROOT_ACCESS_KEY="+s.AccessKey, "ROOT_SECRET_KEY="+s.SecretKey)
	stop, err := start(cmd, s.Endpoint+"/healthz")
	return s, stop, err
}

// GCS is a running emulator of Google Cloud Storage with one empty bucket.
type GCS struct {
	URL    string // gs://bucket
	Bucket string
	Host   string // 127.0.0.1:port
}

// Env returns the environment variable that leads clients to it.
func (g *GCS) Env() []string { return []string{"STORAGE_EMULATOR_HOST=" + g.Host} }

// StartGCS starts fake-gcs-server in memory, sets STORAGE_EMULATOR_HOST for the
// test, and stops it at the end. It is not for parallel tests.
func StartGCS(t testing.TB) *GCS {
	t.Helper()
	g, stop, err := LaunchGCS(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	t.Setenv("STORAGE_EMULATOR_HOST", g.Host)
	return g
}

// LaunchGCS starts fake-gcs-server, for TestMain. dir is an empty folder.
func LaunchGCS(dir string) (*GCS, func(), error) {
	bin, err := Tool("fake-gcs-server")
	if err != nil {
		return nil, nil, err
	}
	g := &GCS{URL: "gs://bucket", Bucket: "bucket"}
	addr, err := freeAddr()
	if err = errors.Join(err, os.MkdirAll(filepath.Join(dir, g.Bucket), 0o755)); err != nil {
		return nil, nil, err
	}
	g.Host = addr
	port := addr[strings.LastIndexByte(addr, ':')+1:]
	cmd := exec.Command(bin, "-backend", "memory", "-scheme", "http", "-host", "127.0.0.1", "-port", port,
		"-public-host", addr, "-external-url", "http://"+addr, "-data", dir)
	stop, err := start(cmd, "http://"+addr+"/storage/v1/b?project=test")
	return g, stop, err
}
