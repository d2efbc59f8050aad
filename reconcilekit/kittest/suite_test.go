package kittest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"

	"example.com/pvcbackup/reconcilekit"
	"example.com/pvcbackup/reconcilekit/internal/widget"
	"example.com/pvcbackup/reconcilekit/kittest"
)

var (
	scheme = newScheme()
	api    = kittest.NewAPIServer(kittest.APIServerOptions{
		CRDs:   []*apiextensionsv1.CustomResourceDefinition{widget.CRD()},
		Scheme: scheme,
	})
	errBoom = errors.New("boom")
	key     = client.ObjectKey{Namespace: "ns", Name: "w"}
)

func newScheme() *k8sruntime.Scheme {
	s := k8sruntime.NewScheme()
	for _, add := range []func(*k8sruntime.Scheme) error{clientgoscheme.AddToScheme, snapshotv1.AddToScheme, widget.AddToScheme} {
		if err := add(s); err != nil {
			panic(err)
		}
	}
	return s
}

func TestMain(m *testing.M) { os.Exit(api.Main(m)) }

func newWidget() *widget.Widget {
	return &widget.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
}

func newConfigMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: name, Labels: map[string]string{"app": name}}}
}

// probe is a testing.TB that remembers what would have failed the test.
type probe struct {
	testing.TB
	text strings.Builder
}

func (p *probe) Helper() {}
func (p *probe) Errorf(format string, args ...any) {
	p.text.WriteString(fmt.Sprintf(format, args...) + "\n")
}
func (p *probe) Fatalf(format string, args ...any) { p.Errorf(format, args...); runtime.Goexit() }
func (p *probe) Fatal(args ...any)                 { p.Errorf("%s", fmt.Sprint(args...)); runtime.Goexit() }

// failures runs check and returns how it failed; empty: not at all.
func failures(t *testing.T, check func(t testing.TB)) string {
	t.Helper()
	p := &probe{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		check(p)
	}()
	<-done
	return p.text.String()
}

// bucket is something outside that survives processes.
type bucket map[string]int

// flaws make the reconciler a bad one.
type flaws struct {
	generatedNames    bool // creates a child of a new name each time
	trustsCreate      bool // takes AlreadyExists for a failure
	appends           bool // its outside call is not idempotent
	remembersInMemory bool // keeps in the process what is done
	alwaysWrites      bool // writes its status each time
	alternates        bool // writes its status every other time
	fails             bool
}

// reconciler keeps a child and an object in a bucket for each Widget.
type reconciler struct {
	flaws
	kittest.Process
	bucket bucket
	key    client.ObjectKey

	put   bool
	times int
}

func (r *reconciler) reconcile(ctx context.Context) (ctrl.Result, error) {
	r.times++
	if r.fails {
		return ctrl.Result{}, errBoom
	}
	w := &widget.Widget{}
	if err := r.Client.Get(ctx, r.key, w); err != nil {
		return ctrl.Result{}, err
	}
	before := w.DeepCopy()
	if err := r.child(ctx, w); err != nil {
		return ctrl.Result{}, err
	}
	if err := r.object(w); err != nil {
		return ctrl.Result{}, err
	}
	w.Status.Note = "done"
	if r.alwaysWrites || r.alternates && r.times%2 == 0 {
		w.Status.Note = fmt.Sprintf("done %d times", r.times)
	} else if r.alternates {
		w.Status.Note = before.Status.Note
	}
	return ctrl.Result{}, reconcilekit.NewStatusWriter(r.Client, reconcilekit.StatusOptions{}).Write(ctx, before, w)
}

func (r *reconciler) child(ctx context.Context, w *widget.Widget) error {
	children := &corev1.ConfigMapList{}
	if err := r.Client.List(ctx, children, client.InNamespace(w.Namespace), client.MatchingLabels{"app": "child"}); err != nil {
		return err
	}
	if len(children.Items) > 0 && w.Status.Note != "" {
		return nil
	}
	child := newConfigMap("child")
	child.Namespace = w.Namespace
	if r.generatedNames {
		child.Name, child.GenerateName = "", "child-"
	}
	err := r.Client.Create(ctx, child)
	if apierrors.IsAlreadyExists(err) && !r.trustsCreate {
		return nil
	}
	return err
}

func (r *reconciler) object(w *widget.Widget) error {
	if w.Status.Note != "" || r.put {
		return nil
	}
	r.put = r.remembersInMemory
	return r.Outside("put object", func() error {
		if r.appends {
			r.bucket["object"]++
		} else {
			r.bucket["object"] = 1
		}
		return nil
	})
}

// scenario is that of a widget and its reconciler in a world of fakes.
func scenario(f flaws) kittest.Scenario {
	return kittest.Scenario{Max: 10, World: func(t testing.TB) kittest.World {
		return world(f, kittest.FakeClient(scheme, newWidget()), key)
	}}
}

func world(f flaws, c client.WithWatch, key client.ObjectKey) kittest.World {
	outside := bucket{}
	return kittest.World{
		Client: c,
		Start: func(p kittest.Process) kittest.Reconcile {
			return (&reconciler{flaws: f, Process: p, bucket: outside, key: key}).reconcile
		},
		Final: func(ctx context.Context) (any, error) {
			children, w := &corev1.ConfigMapList{}, &widget.Widget{}
			err := errors.Join(
				c.List(ctx, children, client.InNamespace(key.Namespace), client.MatchingLabels{"app": "child"}),
				c.Get(ctx, key, w))
			return map[string]any{"children": len(children.Items), "objects": outside["object"], "note": w.Status.Note}, err
		},
	}
}

func requireContains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		require.Contains(t, text, part)
	}
}
