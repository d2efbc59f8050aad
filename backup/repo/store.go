package repo

import (
	"context"
	"iter"
	"time"

	"example.com/pvcbackup/backup/repo/id"
	"example.com/pvcbackup/blobstore"
)

// ID names a stored file (the hash of its stored bytes) or a blob (the hash of its plaintext).
type ID = id.ID

// Store is what a repository needs of an object store; *blobstore.Store satisfies it. Errors are told apart with
// errors.Is and blobstore's ErrNotFound, ErrExists and ErrPermission. All methods may be called by many goroutines.
type Store interface {
	PutBytes(ctx context.Context, key string, data []byte, o *blobstore.PutOptions) error
	GetBytes(ctx context.Context, key string, max int64) ([]byte, error)
	GetRange(ctx context.Context, key string, offset, length int64) ([]byte, error)
	Stat(ctx context.Context, key string) (blobstore.Object, error)
	List(ctx context.Context, prefix string) iter.Seq2[blobstore.Object, error]
	Delete(ctx context.Context, key string) error
}

// Clock is the time a repository lives by.
type Clock interface {
	// Now returns the time of day. Locks compare it with times that other processes wrote.
	Now() time.Time
	// After returns a channel that receives once d has passed.
	After(d time.Duration) <-chan time.Time
}

type wallClock struct{}

// Now is without the monotonic reading: that one stands still while a machine sleeps, and locks must not.
func (wallClock) Now() time.Time { return time.Now().Round(0) }

func (wallClock) After(d time.Duration) <-chan time.Time { return time.After(d) }

// sleep waits for d, or until ctx ends.
func sleep(ctx context.Context, c Clock, d time.Duration) error {
	select {
	case <-c.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
