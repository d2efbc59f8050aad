package repo

import (
	"context"
	"strings"
	"sync/atomic"

	"example.com/pvcbackup/blobstore"
)

// gate is the store of a repository. While a lock that was given out early has not been confirmed, whatever would write
// to the repository or delete from it waits. Locks themselves, and everything that reads, pass.
type gate struct {
	Store
	pending atomic.Pointer[Lock]
}

// PutBytes implements Store.
func (g *gate) PutBytes(ctx context.Context, key string, data []byte, o *blobstore.PutOptions) error {
	if err := g.pass(ctx, key); err != nil {
		return err
	}
	return g.Store.PutBytes(ctx, key, data, o)
}

// Delete implements Store.
func (g *gate) Delete(ctx context.Context, key string) error {
	if err := g.pass(ctx, key); err != nil {
		return err
	}
	return g.Store.Delete(ctx, key)
}

func (g *gate) pass(ctx context.Context, key string) error {
	l := g.pending.Load()
	if l == nil || strings.HasPrefix(key, string(LockFile)+"/") {
		return nil
	}
	return l.Confirmed(ctx)
}

// reopen forgets a lock that turned out not to count, so that another one can be taken.
func (g *gate) reopen() {
	if l := g.pending.Load(); l != nil {
		select {
		case <-l.confirmed:
			g.pending.CompareAndSwap(l, nil)
		default:
		}
	}
}
