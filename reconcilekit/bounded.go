package reconcilekit

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// BoundedClient returns c with a deadline for every call: timeout, or
// [DefaultCallTimeout] when it is zero or less. An earlier deadline of a call's
// own context stays.
func BoundedClient(c client.Client, timeout time.Duration) client.Client {
	return &boundedClient{Client: c, limit: limit(positive(timeout, DefaultCallTimeout))}
}

type limit time.Duration

// within calls fn with a context that ends at the limit.
func (l limit) within(ctx context.Context, fn func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(l))
	defer cancel()
	return fn(ctx)
}

type boundedClient struct {
	client.Client
	limit
}

func (b *boundedClient) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	return b.within(ctx, func(ctx context.Context) error { return b.Client.Get(ctx, key, obj, opts...) })
}

func (b *boundedClient) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return b.within(ctx, func(ctx context.Context) error { return b.Client.List(ctx, list, opts...) })
}

func (b *boundedClient) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	return b.within(ctx, func(ctx context.Context) error { return b.Client.Apply(ctx, obj, opts...) })
}

func (b *boundedClient) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	return b.within(ctx, func(ctx context.Context) error { return b.Client.Create(ctx, obj, opts...) })
}

func (b *boundedClient) Delete(ctx context.Context, obj client.Object, opts ...client.DeleteOption) error {
	return b.within(ctx, func(ctx context.Context) error { return b.Client.Delete(ctx, obj, opts...) })
}

func (b *boundedClient) Update(ctx context.Context, obj client.Object, opts ...client.UpdateOption) error {
	return b.within(ctx, func(ctx context.Context) error { return b.Client.Update(ctx, obj, opts...) })
}

func (b *boundedClient) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
	return b.within(ctx, func(ctx context.Context) error { return b.Client.Patch(ctx, obj, patch, opts...) })
}

func (b *boundedClient) DeleteAllOf(ctx context.Context, obj client.Object, opts ...client.DeleteAllOfOption) error {
	return b.within(ctx, func(ctx context.Context) error { return b.Client.DeleteAllOf(ctx, obj, opts...) })
}

func (b *boundedClient) Status() client.SubResourceWriter { return b.SubResource("status") }

func (b *boundedClient) SubResource(name string) client.SubResourceClient {
	return &boundedSubResource{SubResourceClient: b.Client.SubResource(name), limit: b.limit}
}

type boundedSubResource struct {
	client.SubResourceClient
	limit
}

func (b *boundedSubResource) Get(ctx context.Context, obj, sub client.Object, opts ...client.SubResourceGetOption) error {
	return b.within(ctx, func(ctx context.Context) error { return b.SubResourceClient.Get(ctx, obj, sub, opts...) })
}

func (b *boundedSubResource) Create(ctx context.Context, obj, sub client.Object, opts ...client.SubResourceCreateOption) error {
	return b.within(ctx, func(ctx context.Context) error { return b.SubResourceClient.Create(ctx, obj, sub, opts...) })
}

func (b *boundedSubResource) Update(ctx context.Context, obj client.Object, opts ...client.SubResourceUpdateOption) error {
	return b.within(ctx, func(ctx context.Context) error { return b.SubResourceClient.Update(ctx, obj, opts...) })
}

func (b *boundedSubResource) Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	return b.within(ctx, func(ctx context.Context) error { return b.SubResourceClient.Patch(ctx, obj, patch, opts...) })
}

func (b *boundedSubResource) Apply(ctx context.Context, obj runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
	return b.within(ctx, func(ctx context.Context) error { return b.SubResourceClient.Apply(ctx, obj, opts...) })
}
