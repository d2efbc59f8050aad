package blobtest

import (
	"context"
	"io"
	"iter"

	"example.com/pvcbackup/blobstore"
)

// Store has the methods of *blobstore.Store, but for Sub, whose result is one.
type Store interface {
	Put(ctx context.Context, key string, r io.Reader, opts *blobstore.PutOptions) error
	PutBytes(ctx context.Context, key string, data []byte, opts *blobstore.PutOptions) error
	GetBytes(ctx context.Context, key string, max int64) ([]byte, error)
	GetRange(ctx context.Context, key string, offset, length int64) ([]byte, error)
	Get(ctx context.Context, key string) (io.ReadCloser, error)
	Stat(ctx context.Context, key string) (blobstore.Object, error)
	List(ctx context.Context, prefix string) iter.Seq2[blobstore.Object, error]
	Delete(ctx context.Context, key string) error
	DeleteAll(ctx context.Context, prefix string) (int, error)
	Probe(ctx context.Context) (blobstore.Report, error)
	URL() string
	Close() error
}

var (
	_ Store = (*blobstore.Store)(nil)
	_ Store = (*FaultyStore)(nil)
)
