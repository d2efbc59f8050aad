package s3

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"example.com/pvcbackup/blobstore"
)

// params are the parameters of an s3 URL.
type params struct {
	bucket, region, endpoint, profile, caBundle, sseType, kmsKey string
	role, roleSession, roleExternalID                            string
	requestChecksum, responseChecksum                            string
	pathStyle, anonymous, noHTTPS, dualstack, fips, accelerate   *bool
}

func parse(u *url.URL) (params, error) {
	p := params{bucket: u.Host}
	if p.bucket == "" {
		return p, blobstore.Invalid("open", "s3 URL names no bucket: write s3://bucket/prefix")
	}
	texts := map[string]*string{
		"region": &p.region, "endpoint": &p.endpoint, "profile": &p.profile, "ca_bundle": &p.caBundle,
		"ssetype": &p.sseType, "kmskeyid": &p.kmsKey,
		"role": &p.role, "role_session_name": &p.roleSession, "role_external_id": &p.roleExternalID,
		"request_checksum_calculation": &p.requestChecksum, "response_checksum_validation": &p.responseChecksum,
	}
	flags := map[string]**bool{
		"use_path_style": &p.pathStyle, "anonymous": &p.anonymous, "disable_https": &p.noHTTPS,
		"dualstack": &p.dualstack, "fips": &p.fips, "accelerate": &p.accelerate,
	}
	for name, values := range u.Query() {
		if len(values) > 1 {
			return p, blobstore.Invalid("open", "s3 URL has the parameter %s %d times", name, len(values))
		}
		if text, ok := texts[name]; ok {
			*text = values[0]
		} else if flag, ok := flags[name]; ok {
			b, err := strconv.ParseBool(values[0])
			if err != nil {
				return p, blobstore.Invalid("open", "s3 URL has %s=%q: it must be true or false", name, values[0])
			}
			*flag = &b
		} else {
			return p, blobstore.Invalid("open", "s3 URL has the unknown parameter %q", name)
		}
	}
	return p, p.check()
}

func (p *params) check() error {
	for name, v := range map[string]string{"request_checksum_calculation": p.requestChecksum, "response_checksum_validation": p.responseChecksum} {
		if v != "" && v != "when_supported" && v != "when_required" {
			return blobstore.Invalid("open", "s3 URL has %s=%q: it must be when_supported or when_required", name, v)
		}
	}
	if p.sseType != "" && !known(types.ServerSideEncryption(p.sseType)) {
		return blobstore.Invalid("open", "s3 URL has ssetype=%q: it must be one of %v", p.sseType, types.ServerSideEncryption("").Values())
	}
	if p.role != "" && !strings.HasPrefix(p.role, "arn:") {
		return blobstore.Invalid("open", "s3 URL has role=%q: it must be an ARN", p.role)
	}
	if p.role == "" && (p.roleSession != "" || p.roleExternalID != "") {
		return blobstore.Invalid("open", "s3 URL has role_session_name or role_external_id without role")
	}
	if p.endpoint == "" {
		return nil
	}
	if !strings.Contains(p.endpoint, "://") {
		scheme := "https://"
		if isSet(p.noHTTPS) {
			scheme = "http://"
		}
		p.endpoint = scheme + p.endpoint
	}
	e, err := url.Parse(p.endpoint)
	if err != nil || e.Host == "" || e.User != nil || e.RawQuery != "" || (e.Scheme != "http" && e.Scheme != "https") {
		return blobstore.Invalid("open", "s3 URL has the endpoint %s, which is not just http or https, host and port", blobstore.Redact(p.endpoint))
	}
	return nil
}

func known(t types.ServerSideEncryption) bool {
	for _, v := range t.Values() {
		if v == t {
			return true
		}
	}
	return false
}

func isSet(b *bool) bool { return b != nil && *b }

// isAmazon decides by whole host labels, so that amazonaws.com.example.org is not.
func isAmazon(endpoint string) bool {
	if endpoint == "" {
		return true
	}
	u, err := url.Parse(endpoint)
	if err != nil {
		return false
	}
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	for _, domain := range []string{"amazonaws.com", "amazonaws.com.cn", "api.aws"} {
		if host == domain || strings.HasSuffix(host, "."+domain) {
			return true
		}
	}
	return false
}

// client builds the client and says whether checksums beyond the signature are wanted.
func (p *params) client(ctx context.Context) (*s3.Client, error) {
	cfg, err := p.load(ctx)
	if err != nil {
		return nil, err
	}
	endpoint := p.endpoint
	if endpoint == "" {
		endpoint = aws.ToString(s3.NewFromConfig(cfg).Options().BaseEndpoint) // from the environment
	}
	amazon := isAmazon(endpoint)
	if cfg.Region == "" {
		if amazon && endpoint == "" {
			return nil, blobstore.Invalid("open", "s3 URL names no region: add region=… or set AWS_REGION")
		}
		cfg.Region = "us-east-1"
	}
	if err := p.signIn(ctx, &cfg); err != nil {
		return nil, err
	}
	return s3.NewFromConfig(cfg, func(o *s3.Options) {
		if endpoint != "" {
			o.BaseEndpoint = &endpoint
		}
		o.UsePathStyle = !amazon
		if p.pathStyle != nil {
			o.UsePathStyle = *p.pathStyle
		}
		o.UseAccelerate = isSet(p.accelerate)
		o.EndpointOptions.DisableHTTPS = isSet(p.noHTTPS)
		if !amazon && os.Getenv("AWS_REQUEST_CHECKSUM_CALCULATION") == "" || p.requestChecksum == "when_required" {
			o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
		}
		if p.requestChecksum == "when_supported" {
			o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenSupported
		}
		if !amazon && os.Getenv("AWS_RESPONSE_CHECKSUM_VALIDATION") == "" || p.responseChecksum == "when_required" {
			o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
		}
		if p.responseChecksum == "when_supported" {
			o.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenSupported
		}
		o.RetryMaxAttempts = 1 // the store above retries, with a budget
		o.HTTPClient = httpClient(cfg.HTTPClient)
	}), nil
}

func (p *params) load(ctx context.Context) (aws.Config, error) {
	opts := []func(*config.LoadOptions) error{
		config.WithLogConfigurationWarnings(false),
	}
	if p.region != "" {
		opts = append(opts, config.WithRegion(p.region))
	}
	if p.profile != "" {
		opts = append(opts, config.WithSharedConfigProfile(p.profile))
	}
	if isSet(p.anonymous) {
		opts = append(opts, config.WithCredentialsProvider(aws.AnonymousCredentials{}))
	}
	if isSet(p.dualstack) {
		opts = append(opts, config.WithUseDualStackEndpoint(aws.DualStackEndpointStateEnabled))
	}
	if isSet(p.fips) {
		opts = append(opts, config.WithUseFIPSEndpoint(aws.FIPSEndpointStateEnabled))
	}
	if p.caBundle != "" {
		pem, err := os.ReadFile(p.caBundle)
		if err != nil {
			return aws.Config{}, blobstore.Invalid("open", "s3 URL has a ca_bundle that cannot be read: %w", err)
		}
		opts = append(opts, config.WithCustomCABundle(bytes.NewReader(pem)))
	}
	cfg, err := config.LoadDefaultConfig(ctx, opts...)
	if err != nil {
		return cfg, blobstore.Invalid("open", "s3 configuration: %w", err)
	}
	return cfg, nil
}

const signInTimeout = 30 * time.Second

// signIn assumes the role, if any, and finds out now whether there are
// credentials at all: later it would look like an outage and be retried.
func (p *params) signIn(ctx context.Context, cfg *aws.Config) error {
	if isSet(p.anonymous) {
		return nil
	}
	if p.role != "" {
		cfg.Credentials = aws.NewCredentialsCache(stscreds.NewAssumeRoleProvider(sts.NewFromConfig(*cfg), p.role, func(o *stscreds.AssumeRoleOptions) {
			if p.roleSession != "" {
				o.RoleSessionName = p.roleSession
			}
			if p.roleExternalID != "" {
				o.ExternalID = &p.roleExternalID
			}
		}))
	}
	ctx, cancel := context.WithTimeout(ctx, signInTimeout)
	defer cancel()
	if _, err := cfg.Credentials.Retrieve(ctx); err != nil {
		return &blobstore.Error{Op: "open", Kind: blobstore.KindPermission,
			Err: fmt.Errorf("no usable S3 credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY or give the Pod an identity: %w", err)}
	}
	return nil
}

// httpClient puts the watchdog into the SDK's transport, which carries the
// certificates to trust.
func httpClient(c aws.HTTPClient) aws.HTTPClient {
	b, ok := c.(*awshttp.BuildableClient)
	if !ok {
		b = awshttp.NewBuildableClient()
	}
	tr := b.GetTransport()
	tr.MaxIdleConnsPerHost = 64
	tr.DialContext = (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext
	return &http.Client{
		Transport: blobstore.WatchTransport(tr),
		// The SDK signs each request for its host: a redirect is an error to report.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
