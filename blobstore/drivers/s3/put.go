package s3

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go/middleware"

	"example.com/pvcbackup/blobstore"
)

// bucket does what gocloud's driver does not, or does with more requests.
type bucket struct {
	client    *s3.Client
	name      *string
	sse       types.ServerSideEncryption
	kmsKey    *string
	checksums bool // send x-amz-checksum headers as well, which object lock demands
}

func (b *bucket) putHashed(ctx context.Context, key string, data []byte, sum [32]byte, o *blobstore.PutOptions) error {
	in := &s3.PutObjectInput{
		Bucket:               b.name,
		Key:                  &key,
		Body:                 bytes.NewReader(data),
		ContentLength:        aws.Int64(int64(len(data))),
		ContentType:          &o.ContentType,
		ServerSideEncryption: b.sse,
		SSEKMSKeyId:          b.kmsKey,
		IfNoneMatch:          ifAbsent(o),
		ChecksumSHA256:       b.checksum(sum),
	}
	_, err := b.client.PutObject(ctx, in, signed(sum))
	return err
}

func ifAbsent(o *blobstore.PutOptions) *string {
	if o.OnlyIfAbsent {
		return aws.String("*")
	}
	return nil
}

func (b *bucket) checksum(sum [sha256.Size]byte) *string {
	if !b.checksums {
		return nil
	}
	return aws.String(base64.StdEncoding.EncodeToString(sum[:]))
}

// signed makes the signature cover sum as the content's hash. The SDK would hash
// the content itself over http, and not sign it at all over https.
func signed(sum [sha256.Size]byte) func(*s3.Options) {
	const step = "ComputePayloadHash"
	digest := hex.EncodeToString(sum[:])
	use := middleware.FinalizeMiddlewareFunc(step, func(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (middleware.FinalizeOutput, middleware.Metadata, error) {
		return next.HandleFinalize(v4.SetPayloadHash(ctx, digest), in)
	})
	return func(o *s3.Options) {
		// The headers above are all the checksums there shall be.
		o.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
		o.APIOptions = append(o.APIOptions, func(st *middleware.Stack) error {
			_, err := st.Finalize.Swap(step, use)
			return err
		})
	}
}

// delete is one request; gocloud's asks first whether the object is there.
func (b *bucket) delete(ctx context.Context, key string) error {
	_, err := b.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: b.name, Key: &key})
	return err
}
