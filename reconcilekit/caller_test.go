package reconcilekit_test

import (
	"context"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/pvcbackup/reconcilekit"
	"example.com/pvcbackup/reconcilekit/internal/widget"
	"example.com/pvcbackup/reconcilekit/kittest"
)

func TestCallerGivesEveryCallADeadline(t *testing.T) {
	for name, tc := range map[string]struct {
		caller *reconcilekit.Caller
		want   time.Duration
	}{
		"nil":          {nil, 30 * time.Second},
		"zero":         {&reconcilekit.Caller{}, 30 * time.Second},
		"its own":      {&reconcilekit.Caller{Timeout: time.Hour}, time.Hour},
		"per call":     {&reconcilekit.Caller{Timeout: time.Hour, Timeouts: map[string]time.Duration{"op": time.Minute}}, time.Minute},
		"another call": {&reconcilekit.Caller{Timeouts: map[string]time.Duration{"other": time.Minute}}, 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			var left time.Duration
			require.NoError(t, tc.caller.Do(t.Context(), "op", func(ctx context.Context) error {
				deadline, ok := ctx.Deadline()
				require.True(t, ok)
				left = time.Until(deadline)
				return nil
			}))
			require.InDelta(t, tc.want.Seconds(), left.Seconds(), 5)
		})
	}
}

func TestCallerTellsItsOwnDeadlineFromTheCallers(t *testing.T) {
	caller := &reconcilekit.Caller{Timeout: time.Millisecond}
	err := caller.Do(t.Context(), "store.put", func(ctx context.Context) error {
		<-ctx.Done()
		return fmt.Errorf("rpc: code = DeadlineExceeded") // wraps nothing, as remote errors do
	})
	require.ErrorContains(t, err, "store.put: no answer within 1ms: rpc")
	require.Equal(t, "Timeout", reconcilekit.Reason(err))
	require.Equal(t, reconcilekit.ClassTransient, reconcilekit.Classify(err))

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err = caller.Do(ctx, "store.put", func(ctx context.Context) error { return ctx.Err() })
	require.Equal(t, reconcilekit.ClassStopping, reconcilekit.Classify(err))

	err = caller.Do(t.Context(), "store.put", func(context.Context) error { return reconcilekit.Terminal("Denied", errBoom) })
	require.EqualError(t, err, "store.put: boom")
	require.Equal(t, "Denied", reconcilekit.Reason(err))
}

func TestCallerCountsByOperationAndClass(t *testing.T) {
	registry := prometheus.NewRegistry()
	metrics, err := reconcilekit.NewMetrics(registry)
	require.NoError(t, err)
	caller := &reconcilekit.Caller{Metrics: metrics}
	for _, result := range []error{nil, nil, errBoom, reconcilekit.Terminal("X", nil)} {
		_ = caller.Do(t.Context(), "op", func(context.Context) error { return result })
	}
	families, err := registry.Gather()
	require.NoError(t, err)
	got := map[string]uint64{}
	for _, m := range families[0].Metric {
		got[m.Label[0].GetValue()+" "+m.Label[1].GetValue()] = m.Histogram.GetSampleCount()
	}
	require.Empty(t, cmp.Diff(map[string]uint64{"None op": 2, "Transient op": 1, "Terminal op": 1}, got))
}

// calls makes every call of a client that takes a context, by the name of its
// method; it is checked against the interfaces for completeness.
func calls(ctx context.Context, c client.Client) map[string]func() error {
	w, list := newWidget(), &widget.WidgetList{}
	cm := corev1ac.ConfigMap("cm", "ns")
	status, scale := c.Status(), c.SubResource("scale")
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "d"}}
	patch := client.RawPatch("application/merge-patch+json", []byte(`{}`))
	return map[string]func() error{
		"Get":                func() error { return c.Get(ctx, client.ObjectKeyFromObject(w), w) },
		"List":               func() error { return c.List(ctx, list) },
		"Apply":              func() error { return c.Apply(ctx, cm) },
		"Create":             func() error { return c.Create(ctx, w) },
		"Delete":             func() error { return c.Delete(ctx, w) },
		"Update":             func() error { return c.Update(ctx, w) },
		"Patch":              func() error { return c.Patch(ctx, w, patch) },
		"DeleteAllOf":        func() error { return c.DeleteAllOf(ctx, w) },
		"SubResource.Get":    func() error { return scale.Get(ctx, deployment, w) },
		"SubResource.Create": func() error { return scale.Create(ctx, deployment, w) },
		"SubResource.Update": func() error { return status.Update(ctx, w) },
		"SubResource.Patch":  func() error { return status.Patch(ctx, w, patch) },
		"SubResource.Apply":  func() error { return status.Apply(ctx, cm) },
	}
}

// contextMethods returns the methods of an interface that take a context.
func contextMethods[I any](prefix string) []string {
	var names []string
	iface, ctx := reflect.TypeFor[I](), reflect.TypeFor[context.Context]()
	for i := range iface.NumMethod() {
		if m := iface.Method(i); m.Type.NumIn() > 0 && m.Type.In(0) == ctx {
			names = append(names, prefix+m.Name)
		}
	}
	return names
}

func TestBoundedClientGivesEveryCallOfAClientADeadline(t *testing.T) {
	var bounded bool
	base := kittest.Client(kittest.FakeClient(scheme), kittest.Rule{Fault: func(ctx context.Context, _ kittest.Attempt) error {
		_, bounded = ctx.Deadline()
		return errBoom
	}})
	made := calls(context.Background(), reconcilekit.BoundedClient(base, time.Minute))
	names := append(contextMethods[client.Client](""), contextMethods[client.SubResourceClient]("SubResource.")...)
	require.Len(t, names, len(made))
	for _, name := range names {
		bounded = false
		require.ErrorIs(t, made[name](), errBoom, name)
		require.True(t, bounded, "%s has no deadline", name)
	}
}

func TestMetricsCanBeMadeTwice(t *testing.T) {
	registry := prometheus.NewRegistry()
	for range 2 {
		_, err := reconcilekit.NewMetrics(registry)
		require.NoError(t, err)
	}
	_, err := reconcilekit.NewMetrics(nil)
	require.NoError(t, err)
	clash := prometheus.NewRegistry()
	clash.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "reconcilekit_terminal_total"}))
	_, err = reconcilekit.NewMetrics(clash)
	require.ErrorContains(t, err, "registering a metric")
	problems, err := testutil.GatherAndLint(registry)
	require.NoError(t, err)
	require.Empty(t, problems)
}

func TestObjectGaugesLeaveNoSeriesOfADeletedObject(t *testing.T) {
	registry := prometheus.NewRegistry()
	gauges := reconcilekit.NewObjectGauges(registry)
	age, err := gauges.Gauge("age_seconds", "Age.")
	require.NoError(t, err)
	size, err := gauges.Gauge("size_bytes", "Size.", "kind")
	require.NoError(t, err)
	again, err := reconcilekit.NewObjectGauges(registry).Gauge("age_seconds", "Age.")
	require.NoError(t, err)

	age.Set("ns", "a", 1)
	again.Set("ns", "b", 2)
	size.Set("ns", "a", 3, "x")
	size.Set("ns", "a", 4, "y")
	require.Equal(t, 4, count(t, registry))
	gauges.Delete("ns", "a")
	require.Equal(t, 1, count(t, registry))
	age.Clear("ns", "b")
	require.Zero(t, count(t, registry))
}

func count(t *testing.T, g prometheus.Gatherer) int {
	t.Helper()
	n, err := testutil.GatherAndCount(g)
	require.NoError(t, err)
	return n
}

func TestRateLimiterGrowsToFiveMinutes(t *testing.T) {
	var limiter workqueue.TypedRateLimiter[reconcile.Request] = reconcilekit.RateLimiter()
	request := reconcile.Request{NamespacedName: client.ObjectKey{Name: "w"}}
	last := time.Duration(0)
	for i := range 20 {
		delay := limiter.When(request)
		if i == 0 {
			require.InDelta(t, 0.2, delay.Seconds(), 0.01)
		}
		require.GreaterOrEqual(t, delay, last)
		last = delay
	}
	require.Equal(t, 5*time.Minute, last)
	limiter.Forget(request)
	require.Less(t, limiter.When(request), time.Second)
}
