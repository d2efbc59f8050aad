package kittest

import (
	"context"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// FaultClient is a client that records its calls and breaks some of them. Make
// it with [Client]. It is safe for concurrent use.
type FaultClient struct {
	client.WithWatch

	base client.WithWatch

	mu    sync.Mutex
	calls []Call
	rules []*activeRule
	lag   *lag
}

type activeRule struct {
	Rule
	seen  int
	fired bool
}

// Client returns a client that makes the calls of base under rules. The first
// rule that is due breaks a call; every rule counts the calls that it matches.
func Client(base client.WithWatch, rules ...Rule) *FaultClient {
	c := &FaultClient{base: base}
	for _, r := range rules {
		if r.Lag > 0 {
			c.lag = newLag(base, r.Lag)
			continue
		}
		c.rules = append(c.rules, &activeRule{Rule: r})
	}
	c.WithWatch = interceptor.NewClient(base, c.funcs())
	return c
}

// Calls returns the calls so far, in order, whatever became of them.
func (c *FaultClient) Calls() []Call {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.calls)
}

// Writes returns those of [FaultClient.Calls] that can change anything.
func (c *FaultClient) Writes() []Call {
	return slices.DeleteFunc(c.Calls(), func(call Call) bool { return !call.IsWrite() })
}

// Reset forgets the calls so far; rules go on counting.
func (c *FaultClient) Reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = nil
}

// CatchUp lets reads see all writes so far, as a cache does after a while, and
// reports whether any had been hidden. It includes a FaultClient below this one.
func (c *FaultClient) CatchUp() bool {
	hidden := c.lag.catchUp()
	return catchUp(c.base) || hidden
}

func catchUp(base client.WithWatch) bool {
	below, ok := base.(*FaultClient)
	return ok && below.CatchUp()
}

// Unfired returns the rules that have broken nothing yet: a test whose rule
// never applied has tested nothing.
func (c *FaultClient) Unfired() []Rule {
	c.mu.Lock()
	defer c.mu.Unlock()
	var unfired []Rule
	for _, r := range c.rules {
		if !r.fired {
			unfired = append(unfired, r.Rule)
		}
	}
	return unfired
}

// do records a call and makes it, or lets a rule break it.
func (c *FaultClient) do(ctx context.Context, a Attempt) error {
	if fault := c.record(a.Call); fault != nil {
		return fault(ctx, a)
	}
	return a.Perform()
}

func (c *FaultClient) record(call Call) (fault Fault) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = append(c.calls, call)
	for _, r := range c.rules {
		if !r.matches(call) {
			continue
		}
		r.seen++
		if fault == nil && (r.Nth == 0 || r.Nth == r.seen) {
			r.fired = true
			fault = r.Fault
		}
	}
	return fault
}

// write makes a call that changes obj; perform is given obj or a copy of it.
func (c *FaultClient) write(ctx context.Context, verb, subresource string, obj client.Object, perform func(client.Object) error) error {
	call := c.call(verb, subresource, obj)
	send := func(target client.Object) error {
		return c.lag.around(ctx, target, func() error { return perform(target) })
	}
	return c.do(ctx, Attempt{
		Call:    call,
		Perform: func() error { return send(obj) },
		Unseen:  func() error { return send(obj.DeepCopyObject().(client.Object)) },
	})
}

// plain makes a call that has no object to fill.
func (c *FaultClient) plain(ctx context.Context, call Call, perform func() error) error {
	return c.do(ctx, Attempt{Call: call, Perform: perform, Unseen: perform})
}

// call describes a call for obj, which may be a list.
func (c *FaultClient) call(verb, subresource string, obj runtime.Object) Call {
	call := Call{Verb: verb, Subresource: subresource}
	if o, ok := obj.(client.Object); ok {
		call.Namespace, call.Name = o.GetNamespace(), o.GetName()
	}
	gvk, err := c.base.GroupVersionKindFor(obj)
	if err != nil {
		return call
	}
	if _, isList := obj.(client.ObjectList); isList {
		gvk.Kind = strings.TrimSuffix(gvk.Kind, "List")
	}
	call.Group, call.Kind = gvk.Group, gvk.Kind
	if mapping, err := c.base.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version); err == nil {
		call.Resource = mapping.Resource.Resource
	} else {
		plural, _ := meta.UnsafeGuessKindToResource(gvk)
		call.Resource = plural.Resource
	}
	return call
}

// applied describes a server-side apply.
func (c *FaultClient) applied(subresource string, config runtime.ApplyConfiguration) Call {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(config)
	if err != nil {
		return Call{Verb: "patch", Subresource: subresource}
	}
	return c.call("patch", subresource, &unstructured.Unstructured{Object: content})
}

func (c *FaultClient) funcs() interceptor.Funcs {
	return interceptor.Funcs{
		Get: func(ctx context.Context, base client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
			call := c.call("get", "", obj)
			call.Namespace, call.Name = key.Namespace, key.Name
			return c.plain(ctx, call, func() error {
				return c.lag.get(key, obj, func() error { return base.Get(ctx, key, obj, opts...) })
			})
		},
		List: func(ctx context.Context, base client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			call := c.call("list", "", list)
			options := (&client.ListOptions{}).ApplyOptions(opts)
			call.Namespace = options.Namespace
			return c.plain(ctx, call, func() error {
				if err := base.List(ctx, list, opts...); err != nil {
					return err
				}
				return c.lag.list(list, options)
			})
		},
		Watch: func(ctx context.Context, base client.WithWatch, list client.ObjectList, opts ...client.ListOption) (w watch.Interface, err error) {
			call := c.call("watch", "", list)
			call.Namespace = (&client.ListOptions{}).ApplyOptions(opts).Namespace
			err = c.plain(ctx, call, func() error {
				w, err = base.Watch(ctx, list, opts...)
				return err
			})
			return w, err
		},
		Create: func(ctx context.Context, base client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			return c.write(ctx, "create", "", obj, func(o client.Object) error { return base.Create(ctx, o, opts...) })
		},
		Update: func(ctx context.Context, base client.WithWatch, obj client.Object, opts ...client.UpdateOption) error {
			return c.write(ctx, "update", "", obj, func(o client.Object) error { return base.Update(ctx, o, opts...) })
		},
		Patch: func(ctx context.Context, base client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			return c.write(ctx, "patch", "", obj, func(o client.Object) error { return base.Patch(ctx, o, patch, opts...) })
		},
		Delete: func(ctx context.Context, base client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			return c.write(ctx, "delete", "", obj, func(o client.Object) error { return base.Delete(ctx, o, opts...) })
		},
		DeleteAllOf: func(ctx context.Context, base client.WithWatch, obj client.Object, opts ...client.DeleteAllOfOption) error {
			call := c.call("deletecollection", "", obj)
			call.Namespace = (&client.DeleteAllOfOptions{}).ApplyOptions(opts).ListOptions.Namespace
			return c.plain(ctx, call, func() error { return base.DeleteAllOf(ctx, obj, opts...) })
		},
		Apply: func(ctx context.Context, base client.WithWatch, config runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			return c.plain(ctx, c.applied("", config), func() error { return base.Apply(ctx, config, opts...) })
		},
		SubResourceGet: func(ctx context.Context, base client.Client, name string, obj, sub client.Object, opts ...client.SubResourceGetOption) error {
			return c.plain(ctx, c.call("get", name, obj), func() error { return base.SubResource(name).Get(ctx, obj, sub, opts...) })
		},
		SubResourceCreate: func(ctx context.Context, base client.Client, name string, obj, sub client.Object, opts ...client.SubResourceCreateOption) error {
			return c.plain(ctx, c.call("create", name, obj), func() error { return base.SubResource(name).Create(ctx, obj, sub, opts...) })
		},
		SubResourceUpdate: func(ctx context.Context, base client.Client, name string, obj client.Object, opts ...client.SubResourceUpdateOption) error {
			return c.write(ctx, "update", name, obj, func(o client.Object) error { return base.SubResource(name).Update(ctx, o, opts...) })
		},
		SubResourcePatch: func(ctx context.Context, base client.Client, name string, obj client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			return c.write(ctx, "patch", name, obj, func(o client.Object) error { return base.SubResource(name).Patch(ctx, o, patch, opts...) })
		},
		SubResourceApply: func(ctx context.Context, base client.Client, name string, config runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
			return c.plain(ctx, c.applied(name, config), func() error { return base.SubResource(name).Apply(ctx, config, opts...) })
		},
	}
}
