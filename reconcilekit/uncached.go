package reconcilekit

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Uncached returns c with the reads of live, which go to the API server itself: for kinds that a cache would hold on to
// although their API is not served any more, and for kinds that nobody may list or watch.
func Uncached(c client.Client, live client.Reader) client.Client {
	return uncached{Client: c, live: live}
}

type uncached struct {
	client.Client
	live client.Reader
}

func (u uncached) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	return u.live.Get(ctx, key, obj, opts...)
}

func (u uncached) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return u.live.List(ctx, list, opts...)
}
