// Package kube makes single calls to the API server: each with a deadline of
// its own, deletes with preconditions, creates that never update.
package kube

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// DefaultTimeout bounds one call when no other timeout is set.
const DefaultTimeout = 30 * time.Second

// Calls is a client whose every call has a deadline.
type Calls struct {
	client  client.Client
	live    client.Reader
	timeout time.Duration
}

// New returns Calls. A nil live reads with c; a timeout of zero or less is
// DefaultTimeout.
func New(c client.Client, live client.Reader, timeout time.Duration) Calls {
	if live == nil {
		live = c
	}
	if timeout <= 0 {
		timeout = DefaultTimeout
	}
	return Calls{client: c, live: live, timeout: timeout}
}

func (c Calls) do(ctx context.Context, call func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	return call(ctx)
}

// Get reads through the client, which may be cached.
func (c Calls) Get(ctx context.Context, key client.ObjectKey, obj client.Object) error {
	return c.do(ctx, func(ctx context.Context) error { return c.client.Get(ctx, key, obj) })
}

// GetLive reads past the cache.
func (c Calls) GetLive(ctx context.Context, key client.ObjectKey, obj client.Object) error {
	return c.do(ctx, func(ctx context.Context) error { return c.live.Get(ctx, key, obj) })
}

// List reads through the client, which may be cached.
func (c Calls) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return c.do(ctx, func(ctx context.Context) error { return c.client.List(ctx, list, opts...) })
}

// ListLive lists past the cache.
func (c Calls) ListLive(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return c.do(ctx, func(ctx context.Context) error { return c.live.List(ctx, list, opts...) })
}

// Create creates obj and fills it with the server's answer.
func (c Calls) Create(ctx context.Context, obj client.Object) error {
	err := c.do(ctx, func(ctx context.Context) error { return c.client.Create(ctx, obj) })
	if err != nil && namespaceGone(err) {
		return fmt.Errorf("%w: %w", ErrNamespaceGone, err)
	}
	return err
}

// PatchLocked sends the difference between before and after as a merge patch
// that the server refuses if the object changed since before was read.
func (c Calls) PatchLocked(ctx context.Context, before, after client.Object) error {
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	return c.do(ctx, func(ctx context.Context) error { return c.client.Patch(ctx, after, patch) })
}

// Delete deletes obj exactly as it was read: the server refuses if its UID or
// its resource version is another by now.
func (c Calls) Delete(ctx context.Context, obj client.Object) error {
	uid, version := obj.GetUID(), obj.GetResourceVersion()
	return c.do(ctx, func(ctx context.Context) error {
		return c.client.Delete(ctx, obj, client.Preconditions{UID: &uid, ResourceVersion: &version})
	})
}

// DeleteUID deletes the object with that UID, whatever its version.
func (c Calls) DeleteUID(ctx context.Context, obj client.Object, uid types.UID) error {
	return c.do(ctx, func(ctx context.Context) error {
		return c.client.Delete(ctx, obj, client.Preconditions{UID: &uid})
	})
}

// Ensure returns the object of want's name: as it is when it exists, else
// created from want. It never updates. empty is a new object of the same type;
// created tells whether this call made it.
func Ensure[T client.Object](ctx context.Context, c Calls, want, empty T) (got T, created bool, err error) {
	key := client.ObjectKeyFromObject(want)
	err = c.Get(ctx, key, empty)
	if err == nil {
		return empty, false, nil
	}
	if !Gone(err) {
		return empty, false, err
	}
	err = c.Create(ctx, want)
	if err == nil {
		return want, true, nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return empty, false, err
	}
	// The first read came from a cache that has not seen the object yet, or
	// somebody was faster: only the server's own answer counts now.
	err = c.GetLive(ctx, key, empty)
	if err != nil && Gone(err) {
		return empty, false, fmt.Errorf("%w: %w", ErrUnsettled, err)
	}
	return empty, false, err
}
