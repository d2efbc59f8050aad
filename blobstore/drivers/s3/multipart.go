package s3

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"example.com/pvcbackup/blobstore"
)

const (
	mib          = 1 << 20
	firstPart    = 16 * mib
	maxParts     = 10_000
	partAttempts = 6 // a part can be sent again, unlike the stream
	abortTimeout = 30 * time.Second
)

// partSize says how large part n (from 1) of an upload of total bytes (0: not
// known) is. Parts of an unknown total grow, so that 10,000 of them hold 5 TiB.
func partSize(total int64, n int32) int64 {
	if total > 0 {
		size := (total + maxParts - 1) / maxParts
		return max(firstPart, (size+mib-1)/mib*mib)
	}
	switch {
	case n <= 1000:
		return firstPart // 15 GiB
	case n <= 2000:
		return 64 * mib // 78 GiB
	case n <= 4000:
		return 256 * mib // 578 GiB
	default:
		return 1024 * mib
	}
}

// putStream sends r in one request if it is short, else in parts.
func (b *bucket) putStream(ctx context.Context, key string, r io.Reader, o *blobstore.PutOptions) error {
	data, last, err := readPart(r, nil, partSize(o.Size, 1))
	if err != nil {
		return err
	}
	if last {
		return b.putHashed(ctx, key, data, sha256.Sum256(data), o)
	}
	u, err := b.begin(ctx, key, o)
	if err != nil {
		return err
	}
	err = u.send(ctx, data, r)
	if err == nil {
		err = u.complete(ctx, o)
	}
	if err != nil {
		u.abort(ctx)
	}
	return err
}

// readPart fills buf up to size bytes; last means that r has ended.
func readPart(r io.Reader, buf []byte, size int64) (data []byte, last bool, err error) {
	data = buf[:0]
	for int64(len(data)) < size {
		if len(data) == cap(data) {
			data = slices.Grow(data, int(min(size-int64(len(data)), max(mib, int64(len(data))))))
		}
		n, err := r.Read(data[len(data):min(int64(cap(data)), size)])
		data = data[:len(data)+n]
		if errors.Is(err, io.EOF) {
			return data, true, nil
		}
		if err != nil {
			return nil, false, err
		}
	}
	return data, false, nil
}

// upload is a multipart upload that was begun.
type upload struct {
	b     *bucket
	key   string
	id    *string
	total int64
	parts []types.CompletedPart
}

func (b *bucket) begin(ctx context.Context, key string, o *blobstore.PutOptions) (*upload, error) {
	in := &s3.CreateMultipartUploadInput{
		Bucket: b.name, Key: &key, ContentType: &o.ContentType,
		ServerSideEncryption: b.sse, SSEKMSKeyId: b.kmsKey,
	}
	if b.checksums {
		in.ChecksumAlgorithm = types.ChecksumAlgorithmSha256
	}
	out, err := b.client.CreateMultipartUpload(ctx, in)
	if err != nil {
		return nil, err
	}
	return &upload{b: b, key: key, id: out.UploadId, total: o.Size}, nil
}

// send uploads data and what follows in r. An empty last part is left out.
func (u *upload) send(ctx context.Context, data []byte, r io.Reader) error {
	last := false
	for n := int32(1); ; n++ {
		if n > maxParts {
			return &blobstore.Error{Kind: blobstore.KindTooLarge, Err: errors.New("a stream of more than 5 TiB does not fit into one object")}
		}
		if err := u.part(ctx, n, data); err != nil {
			return err
		}
		if last {
			return nil
		}
		var err error
		data, last, err = readPart(r, data, partSize(u.total, n+1))
		if err != nil {
			return err
		}
		if len(data) == 0 {
			return nil
		}
	}
}

func (u *upload) part(ctx context.Context, n int32, data []byte) error {
	sum := sha256.Sum256(data)
	out, err := u.b.client.UploadPart(ctx, &s3.UploadPartInput{
		Bucket: u.b.name, Key: &u.key, UploadId: u.id, PartNumber: &n,
		Body: bytes.NewReader(data), ContentLength: aws.Int64(int64(len(data))),
		ChecksumSHA256: u.b.checksum(sum),
	}, signed(sum), func(o *s3.Options) { o.RetryMaxAttempts = partAttempts })
	if err != nil {
		return fmt.Errorf("part %d: %w", n, err)
	}
	u.parts = append(u.parts, types.CompletedPart{ETag: out.ETag, PartNumber: &n, ChecksumSHA256: u.b.checksum(sum)})
	return nil
}

func (u *upload) complete(ctx context.Context, o *blobstore.PutOptions) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	_, err := u.b.client.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{
		Bucket: u.b.name, Key: &u.key, UploadId: u.id, IfNoneMatch: ifAbsent(o),
		MultipartUpload: &types.CompletedMultipartUpload{Parts: u.parts},
	})
	return err
}

// abort frees the parts, also when ctx has ended: they are billed until then.
func (u *upload) abort(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortTimeout)
	defer cancel()
	_, _ = u.b.client.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: u.b.name, Key: &u.key, UploadId: u.id})
}
