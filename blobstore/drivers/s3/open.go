package s3

import (
	"context"
	"net/url"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"gocloud.dev/blob/s3blob"

	"example.com/pvcbackup/blobstore"
)

// Openers returns the opener of the scheme "s3".
func Openers() map[string]blobstore.Opener {
	return map[string]blobstore.Opener{"s3": open}
}

func open(ctx context.Context, u *url.URL, _ *blobstore.Options) (*blobstore.Driver, error) {
	p, err := parse(u)
	if err != nil {
		return nil, err
	}
	client, err := p.client(ctx)
	if err != nil {
		return nil, err
	}
	d, err := newDriver(ctx, client, p.bucket, types.ServerSideEncryption(p.sseType), p.kmsKey)
	if err == nil {
		d.Prefix = blobstore.PathPrefix(u)
		base := d.Close
		d.Close = func() error {
			closeIdle(client)
			return base()
		}
	}
	return d, err
}

// NewDriver makes a driver of a client that the caller has built, for
// blobstore.FromDriver. The client's own retries come on top of the Store's.
func NewDriver(ctx context.Context, client *s3.Client, bucket string) (*blobstore.Driver, error) {
	return newDriver(ctx, client, bucket, "", "")
}

func newDriver(ctx context.Context, client *s3.Client, name string, sse types.ServerSideEncryption, kmsKey string) (*blobstore.Driver, error) {
	mode := client.Options().RequestChecksumCalculation
	bb, err := s3blob.OpenBucket(ctx, client, name, &s3blob.Options{
		EncryptionType: sse, KMSEncryptionID: kmsKey, RequestChecksumCalculation: mode,
	})
	if err != nil {
		return nil, blobstore.Invalid("open", "s3 bucket %q: %w", name, err)
	}
	b := &bucket{client: client, name: &name, sse: sse}
	if kmsKey != "" {
		b.kmsKey = &kmsKey
	}
	b.checksums = mode != aws.RequestChecksumCalculationWhenRequired
	return &blobstore.Driver{
		Bucket:    bb,
		Classify:  Classify,
		PutHashed: b.putHashed,
		PutStream: b.putStream,
		Delete:    b.delete,
		Close:     bb.Close,
	}, nil
}

func closeIdle(client *s3.Client) {
	if c, ok := client.Options().HTTPClient.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}
