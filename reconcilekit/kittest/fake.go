package kittest

import (
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// FakeClient returns controller-runtime's fake client with objs in it. Every
// kind of the scheme that has a status has it as a subresource.
//
// It is for control flow, failing calls and counting them. It knows nothing of
// generations, UIDs, preconditions, validation, defaults, garbage collection or
// the deletion of namespaces: test those with an [APIServer].
func FakeClient(scheme *runtime.Scheme, objs ...client.Object) client.WithWatch {
	return fake.NewClientBuilder().
		WithScheme(scheme).
		WithStatusSubresource(withStatus(scheme)...).
		WithObjects(objs...).
		Build()
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
