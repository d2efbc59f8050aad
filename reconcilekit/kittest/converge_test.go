package kittest_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/pvcbackup/reconcilekit/kittest"
)

func nothing(context.Context) (ctrl.Result, error) { return ctrl.Result{}, nil }

// process is one that nobody stops.
func process(c client.WithWatch) kittest.Process {
	return kittest.Process{Client: c, Outside: func(_ string, call func() error) error { return call() }}
}

func TestConvergeEndsWhenNothingIsWritten(t *testing.T) {
	c := kittest.Client(kittest.FakeClient(scheme, newWidget()), kittest.FailNth(1, "create", "ConfigMap", nil))
	r := &reconciler{Process: process(c), bucket: bucket{}, key: key}
	require.Equal(t, 4, kittest.Converge(t, c, r.reconcile, kittest.ConvergeOptions{}), "a failure, a success, and two without a write")
	require.Empty(t, c.Unfired())
}

func TestConvergeWaitsForTheRestOfTheWorld(t *testing.T) {
	c := kittest.Client(kittest.FakeClient(scheme, newWidget()))
	moves := 5
	n := kittest.Converge(t, c, nothing, kittest.ConvergeOptions{Between: func(context.Context) (bool, error) {
		moves--
		return moves > 0, nil
	}})
	require.Equal(t, 6, n)
}

func TestConvergeFailsABadReconciler(t *testing.T) {
	for name, tc := range map[string]struct {
		flaws flaws
		want  string
	}{
		"writes each time":        {flaws{alwaysWrites: true}, "not settled after 7 reconciles, the last wrote:\n\tpatch widgets/status ns/w"},
		"writes every other time": {flaws{alternates: true}, "a settled object was written again:\n\tpatch widgets/status ns/w"},
		"fails":                   {flaws{fails: true}, "not settled after 7 reconciles, the last failed: boom"},
	} {
		t.Run(name, func(t *testing.T) {
			c := kittest.Client(kittest.FakeClient(scheme, newWidget()))
			r := &reconciler{flaws: tc.flaws, Process: process(c), bucket: bucket{}, key: key}
			got := failures(t, func(t testing.TB) {
				kittest.Converge(t, c, r.reconcile, kittest.ConvergeOptions{Max: 7})
			})
			requireContains(t, got, tc.want)
		})
	}
}

func TestConvergeFailsWhenTheRestOfTheWorldDoes(t *testing.T) {
	c := kittest.Client(kittest.FakeClient(scheme))
	got := failures(t, func(t testing.TB) {
		kittest.Converge(t, c, nothing, kittest.ConvergeOptions{Between: func(context.Context) (bool, error) { return false, errBoom }})
	})
	requireContains(t, got, "moving the rest of the world: boom")
}

func TestForReconcilesOneObject(t *testing.T) {
	var got ctrl.Request
	r := kittest.For(reconcileFunc(func(_ context.Context, req ctrl.Request) (ctrl.Result, error) {
		got = req
		return ctrl.Result{}, errBoom
	}), key)
	_, err := r(t.Context())
	require.ErrorIs(t, err, errBoom)
	require.Equal(t, key, got.NamespacedName)
}

type reconcileFunc func(context.Context, ctrl.Request) (ctrl.Result, error)

func (f reconcileFunc) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	return f(ctx, req)
}
