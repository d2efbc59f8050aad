package kittest

import (
	"context"
	"fmt"
	"reflect"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// FakeClient returns controller-runtime's fake client with objs in it. Every
// kind of the scheme that has a status has it as a subresource, and what is
// created gets a UID.
//
// It is for control flow, failing calls and counting them. It knows nothing of
// generations, preconditions, validation, defaults, garbage collection or the
// deletion of namespaces: test those with an [APIServer].
func FakeClient(scheme *runtime.Scheme, objs ...client.Object) client.WithWatch {
	c := fake.NewClientBuilder().
		WithScheme(scheme).
		WithStatusSubresource(withStatus(scheme)...).
		WithObjects(objs...).
		Build()
	var created atomic.Int64
	return interceptor.NewClient(c, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.CreateOption) error {
			given := obj.GetUID()
			if given == "" {
				obj.SetUID(types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", created.Add(1))))
			}
			err := c.Create(ctx, obj, opts...)
			if err != nil {
				obj.SetUID(given)
			}
			return err
		},
	})
}

func withStatus(scheme *runtime.Scheme) []client.Object {
	var found []client.Object
	for gvk, kind := range scheme.AllKnownTypes() {
		if _, ok := kind.FieldByName("Status"); !ok || gvk.Version == runtime.APIVersionInternal {
			continue
		}
		if obj, ok := reflect.New(kind).Interface().(client.Object); ok {
			found = append(found, obj)
		}
	}
	return found
}
