package s3

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	smithy "github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/stretchr/testify/require"

	"example.com/pvcbackup/blobstore"
	"example.com/pvcbackup/blobstore/blobtest"
	"example.com/pvcbackup/blobstore/internal/matrix"
)

// fresh opens stores in buckets of their own.
func fresh(server *blobtest.S3) func(t testing.TB) *blobstore.Store {
	var n atomic.Int32
	return func(t testing.TB) *blobstore.Store {
		url, err := server.BucketURL(fmt.Sprintf("test-%d", n.Add(1)))
		require.NoError(t, err)
		s, err := blobstore.Open(t.Context(), url+"&prefix=a/folder", &blobstore.Options{Openers: Openers()})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		return s
	}
}

func TestConformance(t *testing.T) {
	server := blobtest.StartS3(t)
	open := fresh(server)
	caps := blobtest.Caps{NoFolderAndFile: true, DeleteIsSilent: true, Secrets: []string{server.AccessKey, server.SecretKey}}
	matrix.Check(t, "s3", func(t testing.TB) blobtest.Store { return open(t) }, caps)
}

// TestPortablePathKeepsThePromisesToo leaves out what the driver adds to gocloud.
func TestPortablePathKeepsThePromisesToo(t *testing.T) {
	server := blobtest.StartS3(t)
	var n atomic.Int32
	matrix.Check(t, "s3, portable", func(t testing.TB) blobtest.Store {
		url, err := server.BucketURL(fmt.Sprintf("portable-%d", n.Add(1)))
		require.NoError(t, err)
		d := openDriver(t, url)
		s := blobstore.FromDriver(&blobstore.Driver{Bucket: d.Bucket, Classify: Classify, Close: d.Close}, nil)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		return s
	}, blobtest.Caps{NoFolderAndFile: true})
}

func openDriver(t testing.TB, raw string) *blobstore.Driver {
	u, err := url.Parse(raw)
	require.NoError(t, err)
	d, err := open(t.Context(), u, &blobstore.Options{})
	require.NoError(t, err)
	return d
}

func once(t testing.TB, url string) *blobstore.Store {
	t.Helper()
	s, err := blobstore.Open(t.Context(), url, &blobstore.Options{Openers: Openers(), RetryBudget: -1})
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestMissingBucketIsNotAMissingObject(t *testing.T) {
	server := blobtest.StartS3(t)
	s := once(t, strings.Replace(server.URL, "s3://bucket", "s3://no-such-bucket", 1))
	_, err := s.Stat(t.Context(), "k")
	require.ErrorIs(t, err, blobstore.ErrNoBucket)
	_, err = s.GetBytes(t.Context(), "k", 1)
	require.ErrorIs(t, err, blobstore.ErrNoBucket)
	require.ErrorIs(t, s.PutBytes(t.Context(), "k", nil, nil), blobstore.ErrNoBucket)
	require.ErrorIs(t, s.Delete(t.Context(), "k"), blobstore.ErrNoBucket)
	for _, err := range s.List(t.Context(), "") {
		require.ErrorIs(t, err, blobstore.ErrNoBucket)
	}
}

func TestWrongCredentialsArePermissionDenied(t *testing.T) {
	server := blobtest.StartS3(t)
	for name, env := range map[string][2]string{
		"unknown key":  {"AKUNKNOWN", server.SecretKey},
		"wrong secret": {server.AccessKey, "wrong-secret-hunter2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("AWS_ACCESS_KEY_ID", env[0])
			t.Setenv("AWS_SECRET_ACCESS_KEY", env[1])
			s := once(t, server.URL)
			errs := []error{s.PutBytes(t.Context(), "k", nil, nil), s.Delete(t.Context(), "k")}
			_, err := s.GetBytes(t.Context(), "k", 1)
			errs = append(errs, err)
			_, err = s.Stat(t.Context(), "k")
			errs = append(errs, err)
			for _, err := range errs {
				require.ErrorIs(t, err, blobstore.ErrPermission)
				require.NotErrorIs(t, err, blobstore.ErrNotFound)
				require.NotContains(t, err.Error(), "hunter2")
			}
		})
	}
}

func TestMissingCredentialsFailAtOpen(t *testing.T) {
	for _, kv := range os.Environ() {
		if k, _, _ := strings.Cut(kv, "="); strings.HasPrefix(k, "AWS_") {
			t.Setenv(k, "")
		}
	}
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	t.Setenv("HOME", t.TempDir())
	_, err := blobstore.Open(t.Context(), "s3://bucket?region=eu-central-1", &blobstore.Options{Openers: Openers()})
	require.ErrorIs(t, err, blobstore.ErrPermission)
	require.ErrorContains(t, err, "AWS_ACCESS_KEY_ID")
}

func withKeys(t testing.TB) {
	t.Setenv("AWS_ACCESS_KEY_ID", "AKTEST")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
}

func TestSilentStoreEndsInUnavailable(t *testing.T) {
	withKeys(t)
	raw := "s3://bucket?endpoint=http://" + blobtest.Silent(t)
	t.Run("by the watchdog and the budget", func(t *testing.T) {
		s, err := blobstore.Open(t.Context(), raw, &blobstore.Options{
			Openers: Openers(), StallTimeout: 30 * time.Millisecond, RetryBudget: 200 * time.Millisecond, RetryDelay: time.Millisecond,
		})
		require.NoError(t, err)
		defer s.Close()
		for name, err := range everyCall(t.Context(), s) {
			require.ErrorIs(t, err, blobstore.ErrUnavailable, name)
			require.ErrorContains(t, err, "no byte moved", name)
		}
	})
	t.Run("by the deadline", func(t *testing.T) {
		s := once(t, raw)
		for range 2 {
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			for name, err := range everyCall(ctx, s) {
				require.ErrorIs(t, err, blobstore.ErrUnavailable, name)
				require.ErrorIs(t, err, context.DeadlineExceeded, name)
			}
			cancel()
		}
	})
}

func everyCall(ctx context.Context, s *blobstore.Store) map[string]error {
	out := map[string]error{}
	out["put"] = s.PutBytes(ctx, "k", []byte("x"), nil)
	out["stream"] = s.Put(ctx, "k", io.LimitReader(strings.NewReader("x"), 1), nil)
	out["delete"] = s.Delete(ctx, "k")
	_, out["stat"] = s.Stat(ctx, "k")
	_, out["get"] = s.GetBytes(ctx, "k", 1)
	for _, err := range s.List(ctx, "") {
		out["list"] = err
	}
	return out
}

func TestStoreThatIsNotThereIsUnavailable(t *testing.T) {
	withKeys(t)
	for name, err := range everyCall(t.Context(), once(t, "s3://bucket?endpoint=http://127.0.0.1:1")) {
		require.ErrorIs(t, err, blobstore.ErrUnavailable, name)
	}
}

// recorder answers every request with 200 and remembers it.
type recorder struct {
	mu       sync.Mutex
	requests []*http.Request
	bodies   []int64
}

func (r *recorder) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	n, _ := io.Copy(io.Discard, req.Body)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests, r.bodies = append(r.requests, req), append(r.bodies, n)
	w.Header().Set("ETag", `"e"`)
}

func TestPutBytesIsOneRequestWhoseSignatureCoversTheDigest(t *testing.T) {
	withKeys(t)
	data := make([]byte, 129<<20)
	sum := sha256.Sum256(data)
	for name, checksum := range map[string]string{"when_required": "", "when_supported": base64.StdEncoding.EncodeToString(sum[:])} {
		t.Run(name, func(t *testing.T) {
			rec := &recorder{}
			server := httptest.NewTLSServer(rec)
			defer server.Close()
			ca := filepath.Join(t.TempDir(), "ca.pem")
			block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
			require.NoError(t, os.WriteFile(ca, block, 0o600))
			s := once(t, "s3://bucket/p?endpoint="+server.URL+"&ca_bundle="+ca+"&ssetype=AES256&request_checksum_calculation="+name)
			require.NoError(t, s.PutBytes(t.Context(), "k", data, &blobstore.PutOptions{SHA256: &sum, OnlyIfAbsent: true}))
			require.Len(t, rec.requests, 1)
			req := rec.requests[0]
			require.Equal(t, "PUT /bucket/p/k", req.Method+" "+req.URL.Path)
			require.Equal(t, int64(len(data)), rec.bodies[0])
			require.Equal(t, int64(len(data)), req.ContentLength)
			require.Equal(t, hex.EncodeToString(sum[:]), req.Header.Get("X-Amz-Content-Sha256"))
			require.Equal(t, "*", req.Header.Get("If-None-Match"))
			require.Equal(t, "AES256", req.Header.Get("X-Amz-Server-Side-Encryption"))
			require.Equal(t, checksum, req.Header.Get("X-Amz-Checksum-Sha256"))
			require.Empty(t, req.Header.Get("Content-Encoding"))
			require.Empty(t, req.Header.Get("X-Amz-Trailer"))
			require.Contains(t, req.Header.Get("Authorization"), "x-amz-content-sha256")

			require.NoError(t, s.Delete(t.Context(), "k"))
			require.Len(t, rec.requests, 2, "a deletion is one request")
		})
	}
}

func TestFailedStreamLeavesNoParts(t *testing.T) {
	server := blobtest.StartS3(t)
	s := once(t, server.URL)
	ctx, cancel := context.WithCancel(t.Context())
	r := io.MultiReader(io.LimitReader(rand.NewChaCha8([32]byte{}), 20<<20), readFunc(func([]byte) (int, error) {
		cancel()
		return 0, io.ErrNoProgress
	}))
	require.Error(t, s.Put(ctx, "big", r, nil))
	var client *s3.Client
	require.True(t, openDriver(t, server.URL).Bucket.As(&client))
	out, err := client.ListMultipartUploads(t.Context(), &s3.ListMultipartUploadsInput{Bucket: &server.Bucket})
	require.NoError(t, err)
	require.Empty(t, out.Uploads)
}

type readFunc func([]byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }

func TestPartsHoldFiveTebibytes(t *testing.T) {
	const tib = int64(1) << 40
	for _, total := range []int64{0, 5 * tib, 100 << 30} {
		sum := int64(0)
		for n := int32(1); n <= maxParts; n++ {
			size := partSize(total, n)
			require.GreaterOrEqual(t, size, int64(5<<20))
			require.LessOrEqual(t, size, int64(5<<30))
			if total > 0 {
				require.Equal(t, partSize(total, 1), size, "parts of a known total are equal")
			}
			sum += size
		}
		want := total
		if total == 0 {
			want = 5 * tib
		}
		require.GreaterOrEqual(t, sum, want)
	}
}

func TestAmazonIsDecidedByHostLabels(t *testing.T) {
	for endpoint, want := range map[string]bool{
		"": true, "https://s3.eu-central-1.amazonaws.com": true, "https://bucket.vpce-1.s3.us-east-1.vpce.amazonaws.com": true,
		"https://s3.cn-north-1.amazonaws.com.cn": true, "https://AMAZONAWS.COM.": true, "https://s3.eu-west-1.api.aws": true,
		"https://amazonaws.com.example.org": false, "https://notamazonaws.com": false, "https://example.org/amazonaws.com": false,
		"http://minio:9000": false, "https://s3.amazonaws.com.evil": false,
	} {
		require.Equal(t, want, isAmazon(endpoint), endpoint)
	}
}

func TestDefaultsFollowTheEndpoint(t *testing.T) {
	withKeys(t)
	t.Setenv("AWS_REGION", "")
	for _, tc := range []struct {
		query    string
		env      string
		style    bool
		checksum aws.RequestChecksumCalculation
		region   string
	}{
		{"region=eu-west-1", "", false, aws.RequestChecksumCalculationWhenSupported, "eu-west-1"},
		{"endpoint=minio:9000", "", true, aws.RequestChecksumCalculationWhenRequired, "us-east-1"},
		{"region=x", "http://minio:9000", true, aws.RequestChecksumCalculationWhenRequired, "x"},
		{"endpoint=minio:9000&use_path_style=false&request_checksum_calculation=when_supported", "", false, aws.RequestChecksumCalculationWhenSupported, "us-east-1"},
		{"region=eu-west-1&request_checksum_calculation=when_required", "", false, aws.RequestChecksumCalculationWhenRequired, "eu-west-1"},
	} {
		t.Setenv("AWS_ENDPOINT_URL_S3", tc.env)
		var client *s3.Client
		require.True(t, openDriver(t, "s3://bucket?"+tc.query).Bucket.As(&client))
		o := client.Options()
		require.Equal(t, tc.style, o.UsePathStyle, tc)
		require.Equal(t, tc.checksum, o.RequestChecksumCalculation, tc)
		require.Equal(t, tc.region, o.Region, tc)
	}
}

func TestBadURLsAreRefused(t *testing.T) {
	withKeys(t)
	t.Setenv("AWS_REGION", "")
	for raw, want := range map[string]string{
		"s3://":                                  "names no bucket",
		"s3://b":                                 "names no region",
		"s3://b?regoin=x":                        `unknown parameter "regoin"`,
		"s3://b?region=x&region=y":               "2 times",
		"s3://b?use_path_style=perhaps":          "true or false",
		"s3://b?endpoint=ftp://h":                "host and port",
		"s3://b?endpoint=http://u:hunter2@h":     "host and port",
		"s3://b?role=admin":                      "must be an ARN",
		"s3://b?role_session_name=x":             "without role",
		"s3://b?ssetype=rot13":                   "must be one of",
		"s3://b?ca_bundle=/no/such/file":         "cannot be read",
		"s3://b?request_checksum_calculation=":   "",
		"s3://b?response_checksum_validation=on": "when_supported or when_required",
	} {
		_, err := blobstore.Open(t.Context(), raw, &blobstore.Options{Openers: Openers()})
		require.ErrorIs(t, err, blobstore.ErrInvalid, raw)
		require.ErrorContains(t, err, want, raw)
		require.NotContains(t, err.Error(), "hunter2")
	}
}

func FuzzParseAnswersWithParametersOrATypedError(f *testing.F) {
	for _, raw := range []string{
		"s3://b?region=eu-1", "s3://b?endpoint=http://127.0.0.1:1&use_path_style=true", "s3://b?endpoint=http://u:p@h", "s3://b?endpoint=[",
		"s3://b?role=arn:x&role_session_name=y", "s3://b?ssetype=AES256", "s3://?x", "s3://b?fips=maybe", "s3://b?region=a&region=b",
	} {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		u, err := url.Parse(raw)
		if err != nil {
			return
		}
		p, err := parse(u)
		if err != nil {
			require.ErrorIs(t, err, blobstore.ErrInvalid)
			return
		}
		if p.endpoint != "" {
			e, err := url.Parse(p.endpoint)
			require.NoError(t, err)
			require.True(t, e.User == nil && e.Host != "" && strings.HasPrefix(e.Scheme, "http"))
		}
	})
}

func TestClassify(t *testing.T) {
	for code, want := range map[string]blobstore.Kind{
		"NoSuchKey": blobstore.KindNotFound, "NoSuchBucket": blobstore.KindNoBucket, "PreconditionFailed": blobstore.KindExists,
		"ConditionalRequestConflict": blobstore.KindUnavailable, "SlowDown": blobstore.KindUnavailable,
		"NotImplemented": blobstore.KindUnsupported, "RequestTimeTooSkewed": blobstore.KindClockSkew,
		"InvalidAccessKeyId": blobstore.KindPermission, "XAdminUserNotFound": blobstore.KindPermission,
		"SignatureDoesNotMatch": blobstore.KindPermission, "AccessDenied": blobstore.KindPermission,
		"InvalidRange": blobstore.KindCorrupt, "XAmzContentSHA256Mismatch": blobstore.KindCorrupt, "QuotaExceeded": blobstore.KindFull,
	} {
		err := fmt.Errorf("put: %w", &smithy.GenericAPIError{Code: code})
		require.Equal(t, want, Classify(err), code)
	}
	for status, want := range map[int]blobstore.Kind{
		409: blobstore.KindUnavailable, 501: blobstore.KindUnsupported, 503: blobstore.KindUnavailable, 403: blobstore.KindPermission,
		404: blobstore.KindNotFound, 412: blobstore.KindExists, 301: blobstore.KindInvalid, 507: blobstore.KindFull,
	} {
		err := &smithyhttp.ResponseError{Response: &smithyhttp.Response{Response: &http.Response{StatusCode: status}}, Err: errors.New("x")}
		require.Equal(t, want, Classify(err), status)
	}
}

func BenchmarkS3(b *testing.B) {
	server := blobtest.StartS3(b)
	open := fresh(server)
	b.Run("Hashed", func(b *testing.B) { blobtest.Bench(b, func(t testing.TB) blobtest.Store { return open(t) }) })
	var n atomic.Int32
	b.Run("Portable", func(b *testing.B) {
		blobtest.Bench(b, func(t testing.TB) blobtest.Store {
			url, err := server.BucketURL(fmt.Sprintf("portable-%d", n.Add(1)))
			require.NoError(t, err)
			d := openDriver(t, url)
			return blobstore.FromDriver(&blobstore.Driver{Bucket: d.Bucket, Classify: Classify}, nil)
		})
	})
}
