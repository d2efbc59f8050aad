package reconcilekit_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"

	"example.com/pvcbackup/reconcilekit/internal/widget"
	"example.com/pvcbackup/reconcilekit/kittest"
)

const finalizer = "kittest.example.com/cleanup"

var (
	scheme = newScheme()
	api    = kittest.NewAPIServer(kittest.APIServerOptions{
		CRDs:   []*apiextensionsv1.CustomResourceDefinition{widget.CRD()},
		Scheme: scheme,
	})
	errBoom = errors.New("boom")
	now     = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
)

func newScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, snapshotv1.AddToScheme, widget.AddToScheme,
	} {
		if err := add(s); err != nil {
			panic(err)
		}
	}
	return s
}

func TestMain(m *testing.M) { os.Exit(api.Main(m)) }

func newWidget(finalizers ...string) *widget.Widget {
	return &widget.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "w", Finalizers: finalizers}}
}

// stored returns w as it is in c.
func stored(t *testing.T, c client.Client, w *widget.Widget) *widget.Widget {
	t.Helper()
	got := &widget.Widget{}
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(w), got))
	return got
}

// created creates a widget in a new namespace of the real API server.
func created(t *testing.T, finalizers ...string) (client.WithWatch, *widget.Widget) {
	t.Helper()
	cluster := api.Start(t)
	w := newWidget(finalizers...)
	w.Namespace = cluster.Namespace(t)
	require.NoError(t, cluster.Client.Create(t.Context(), w))
	t.Cleanup(func() { release(cluster.Client, w) })
	return cluster.Client, w
}

// release removes whatever still holds w back.
func release(c client.Client, w *widget.Widget) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_ = c.Patch(ctx, w.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`)))
}
