package reconcilekit_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/pvcbackup/reconcilekit"
	"example.com/pvcbackup/reconcilekit/internal/widget"
	"example.com/pvcbackup/reconcilekit/kittest"
)

// recorder remembers events.
type recorder []string

func (r *recorder) Eventf(_, _ runtime.Object, eventtype, reason, action, note string, args ...any) {
	*r = append(*r, fmt.Sprintf("%s %s %s: ", eventtype, reason, action)+fmt.Sprintf(note, args...))
}

// bench is a Finisher with everything that it tells to.
type bench struct {
	reconcilekit.Finisher
	client   *kittest.FaultClient
	registry *prometheus.Registry
	events   recorder
}

func newBench(t *testing.T, rules ...kittest.Rule) *bench {
	t.Helper()
	b := &bench{client: kittest.Client(kittest.FakeClient(scheme, newWidget()), rules...), registry: prometheus.NewRegistry()}
	metrics, err := reconcilekit.NewMetrics(b.registry)
	require.NoError(t, err)
	b.Finisher = reconcilekit.Finisher{
		Controller: "widget",
		Status:     reconcilekit.NewStatusWriter(b.client, reconcilekit.StatusOptions{}),
		Events:     &reconcilekit.Events{Recorder: &b.events},
		Metrics:    metrics,
	}
	return b
}

// finish reads the widget, lets a step change it and finishes.
func (b *bench) finish(ctx context.Context, t *testing.T, outcome reconcilekit.Outcome, step error) (ctrl.Result, error) {
	t.Helper()
	w := stored(t, b.client, newWidget())
	before := w.DeepCopy()
	w.Status.Note = "a step was here"
	return b.Finish(ctx, before, w, outcome, step, reconcilekit.Policy{})
}

func (b *bench) metrics(t *testing.T, name, want string) {
	t.Helper()
	require.NoError(t, testutil.GatherAndCompare(b.registry, strings.NewReader(want), name))
}

// isReady is what the steps of these tests find.
var isReady = reconcilekit.Outcome{Ready: metav1.Condition{Status: metav1.ConditionTrue, Reason: "Fine"}}

func TestFinishWritesOnceAndASettledObjectNeverAgain(t *testing.T) {
	b := newBench(t)
	for range 3 {
		result, err := b.finish(t.Context(), t, isReady, nil)
		require.NoError(t, err)
		require.Zero(t, result)
	}
	require.Len(t, b.client.Writes(), 1)
	got := stored(t, b.client, newWidget())
	require.Equal(t, "a step was here", got.Status.Note)
	kittest.CheckStatus(t, got, kittest.Contract{Settled: true})
	require.Empty(t, cmp.Diff(recorder{"Normal Fine Reconcile: Ready is True"}, b.events))
}

func TestFinishTheSameFailureIsWrittenOnce(t *testing.T) {
	b := newBench(t)
	for i := range 3 {
		step := fmt.Errorf("read tcp 10.0.0.1:%d->10.0.0.2:443: reset at %s", 30000+i, now.Add(time.Duration(i)*time.Second).Format(time.RFC3339))
		_, err := b.finish(t.Context(), t, isReady, step)
		require.ErrorIs(t, err, step)
	}
	require.Len(t, b.client.Writes(), 1)
	require.Empty(t, cmp.Diff(recorder{
		"Normal Fine Reconcile: Ready is True",
		"Warning Retrying Reconcile: read tcp <address>-><address>: reset at <time>",
	}, b.events), "one event for each transition, none for each try")
}

func TestFinishCountsTerminalErrorsAndConflicts(t *testing.T) {
	b := newBench(t)
	result, err := b.finish(t.Context(), t, isReady, reconcilekit.Terminal("BadSize", errBoom))
	require.NoError(t, err)
	require.Equal(t, 10*time.Minute, result.RequeueAfter)
	b.metrics(t, "reconcilekit_terminal_total", `
# HELP reconcilekit_terminal_total Reconciles that ended with an error that trying again cannot help.
# TYPE reconcilekit_terminal_total counter
reconcilekit_terminal_total{controller="widget",reason="BadSize"} 1
`)
	writes := len(b.client.Writes())
	result, err = b.finish(t.Context(), t, isReady, apierrors.NewConflict(jobs, "j", errBoom))
	require.NoError(t, err)
	require.Equal(t, 500*time.Millisecond, result.RequeueAfter)
	require.Len(t, b.client.Writes(), writes, "nothing is written after a conflict")
	b.metrics(t, "reconcilekit_conflicts_total", `
# HELP reconcilekit_conflicts_total Reconciles that ended because the object had changed meanwhile.
# TYPE reconcilekit_conflicts_total counter
reconcilekit_conflicts_total{controller="widget"} 1
`)
}

func TestFinishReturnsAFailedStatusWriteAlone(t *testing.T) {
	errWrite := fmt.Errorf("no quorum")
	b := newBench(t, kittest.Rule{Subresource: "status", Fault: kittest.Fail(errWrite)})
	for _, step := range []error{nil, errBoom, reconcilekit.Terminal("Bad", errBoom), reconcilekit.Waiting("Long", time.Hour, nil)} {
		result, err := b.finish(t.Context(), t, isReady, step)
		require.ErrorIs(t, err, errWrite)
		require.NotErrorIs(t, err, errBoom)
		require.Zero(t, result)
	}
	require.Empty(t, b.events, "nothing is told that was not written")
}

func TestFinishAConflictOfTheStatusWriteIsAConflict(t *testing.T) {
	b := newBench(t, kittest.ConflictOnce("patch", "Widget"))
	result, err := b.finish(t.Context(), t, isReady, errBoom)
	require.NoError(t, err)
	require.Equal(t, 500*time.Millisecond, result.RequeueAfter)
	require.Empty(t, b.events)
	require.Empty(t, b.client.Unfired())
}

func TestFinishTouchesNothingWhenTheManagerStopsAWork(t *testing.T) {
	b := newBench(t)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	for _, step := range []error{fmt.Errorf("x: %w", context.Canceled), errBoom, reconcilekit.Terminal("Bad", nil)} {
		result, err := b.finish(ctx, t, isReady, step)
		require.NoError(t, err)
		require.Zero(t, result)
	}
	require.Empty(t, b.client.Writes())
	require.Empty(t, b.events)
}

func TestFinishKeepsSuccessThoughTheManagerStops(t *testing.T) {
	b := newBench(t)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	_, err := b.finish(ctx, t, isReady, nil)
	require.NoError(t, err)
	require.Equal(t, "a step was here", stored(t, b.client, newWidget()).Status.Note)
}

func TestFinishWritesWhenTheReconcileRanOutOfTime(t *testing.T) {
	b := newBench(t)
	ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Second))
	defer cancel()
	_, err := b.finish(ctx, t, isReady, ctx.Err())
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Equal(t, reconcilekit.ReasonRetrying, stored(t, b.client, newWidget()).Status.Conditions[1].Reason)
}

func TestFinishACancellationBySomebodyElseIsTriedAgain(t *testing.T) {
	b := newBench(t)
	_, err := b.finish(t.Context(), t, isReady, fmt.Errorf("lock lost: %w", context.Canceled))
	require.ErrorIs(t, err, context.Canceled)
	require.Len(t, b.client.Writes(), 1)
}

func TestFinishNeedsNeitherEventsNorMetrics(t *testing.T) {
	b := newBench(t)
	b.Events, b.Metrics = nil, nil
	_, err := b.finish(t.Context(), t, isReady, reconcilekit.Terminal("Bad", nil))
	require.NoError(t, err)
	_, err = b.finish(t.Context(), t, isReady, apierrors.NewConflict(jobs, "j", errBoom))
	require.NoError(t, err)
}

func TestEventsWarnOfWhatUsersShouldLookAt(t *testing.T) {
	var got recorder
	events := &reconcilekit.Events{Recorder: &got, Action: "Test", Silent: []string{"Quiet"}}
	before, after := newWidget(), newWidget()
	before.Status.Conditions = []metav1.Condition{
		condition("Same", metav1.ConditionFalse, "Old", "a"), condition("Gone", metav1.ConditionTrue, "Old", ""),
	}
	after.Status.Conditions = []metav1.Condition{
		condition("Same", metav1.ConditionFalse, "Old", "another message"),
		condition("Ready", metav1.ConditionFalse, "Broken", "at https://u:p@host/?q=1 100%d"),
		condition("Stalled", metav1.ConditionTrue, "Stuck", "m"),
		condition("Reconciling", metav1.ConditionTrue, "Working", "m"),
		condition("Quiet", metav1.ConditionTrue, "Any", "m"),
	}
	events.Transitions(before, after)
	require.Empty(t, cmp.Diff(recorder{
		"Warning Broken Test: at https://host/ 100%d", "Warning Stuck Test: m", "Normal Working Test: m",
	}, got))
}

func TestServerIsGoneToldFromAnAPIThatIsNotServed(t *testing.T) {
	cluster := api.Start(t)
	c := cluster.NewClient(t)
	w := newWidget()
	w.Namespace = cluster.Namespace(t)
	crd := otherCRD()
	other := newOther(w.Namespace)

	err := c.Get(t.Context(), client.ObjectKeyFromObject(other), other)
	require.True(t, reconcilekit.IsNotServed(err), "never installed: %v", err)
	require.False(t, reconcilekit.IsGone(err))

	require.NoError(t, c.Create(t.Context(), crd))
	t.Cleanup(func() { _ = client.IgnoreNotFound(c.Delete(context.Background(), crd)) })
	other = newOther(w.Namespace)
	kittest.Eventually(t, 30*time.Second, func() error { return c.Create(t.Context(), newOther(w.Namespace)) })
	require.NoError(t, c.Delete(t.Context(), newOther(w.Namespace)))
	err = c.Get(t.Context(), client.ObjectKeyFromObject(other), other)
	require.True(t, reconcilekit.IsGone(err), "served and not there: %v", err)
	require.False(t, reconcilekit.IsNotServed(err))

	require.NoError(t, c.Delete(t.Context(), crd))
	kittest.Eventually(t, 30*time.Second, func() error {
		other := newOther(w.Namespace)
		err = c.Get(t.Context(), client.ObjectKeyFromObject(other), other)
		if reconcilekit.IsGone(err) {
			return fmt.Errorf("still served: %w", err)
		}
		return nil
	})
	require.True(t, apierrors.IsNotFound(err), "the trap: a bare check calls it not found: %v", err)
	require.True(t, reconcilekit.IsNotServed(err))
	require.Equal(t, reconcilekit.ClassWaiting, reconcilekit.Classify(err))
}

func TestServerAnInvalidObjectIsTerminal(t *testing.T) {
	c, w := created(t)
	w.Spec.Size = 1000
	err := c.Update(t.Context(), w)
	require.Equal(t, reconcilekit.ClassTerminal, reconcilekit.Classify(err), "%v", err)
	require.Equal(t, "Invalid", reconcilekit.Reason(err))
}

func TestServerACreateInATerminatingNamespaceIsTold(t *testing.T) {
	cluster := api.Start(t)
	ns := terminating(t, cluster)
	w := &widget.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "w"}}
	err := cluster.Client.Create(t.Context(), w)
	require.True(t, reconcilekit.IsNamespaceTerminating(err), "%v", err)
	require.Equal(t, reconcilekit.ReasonNamespaceTerminating, reconcilekit.Reason(err))
}

func TestEventsOfConditionsThatSayTheSameAreOne(t *testing.T) {
	var got recorder
	events := &reconcilekit.Events{Recorder: &got, Action: "Test"}
	after := newWidget()
	after.Status.Conditions = []metav1.Condition{
		condition("Ready", metav1.ConditionFalse, "Broken", "m"), condition("Stalled", metav1.ConditionTrue, "Broken", "m"),
		condition("Other", metav1.ConditionFalse, "Broken", "another"),
	}
	events.Transitions(newWidget(), after)
	require.Empty(t, cmp.Diff(recorder{"Warning Broken Test: m", "Warning Broken Test: another"}, got))
}

func TestReasonsFromOutsideAreSeriesUpToALimit(t *testing.T) {
	b := newBench(t)
	for i := range 300 {
		_, err := b.finish(t.Context(), t, isReady, reconcilekit.Terminal(fmt.Sprintf("Made%d", i), errBoom))
		require.NoError(t, err)
	}
	n, err := testutil.GatherAndCount(b.registry, "reconcilekit_terminal_total")
	require.NoError(t, err)
	require.Equal(t, 101, n)
}
