package reconcilekit_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/pvcbackup/reconcilekit"
	"example.com/pvcbackup/reconcilekit/internal/widget"
)

// at returns a condition that observes generation 2.
func at(c metav1.Condition) metav1.Condition {
	c.ObservedGeneration = 2
	return c
}

func TestSettleIsTheTable(t *testing.T) {
	old := metav1.NewTime(now.Add(-time.Hour))
	was := func(conditionType string, status metav1.ConditionStatus, reason string) metav1.Condition {
		return metav1.Condition{Type: conditionType, Status: status, Reason: reason, LastTransitionTime: old, ObservedGeneration: 1}
	}
	reconciling := was("Reconciling", metav1.ConditionTrue, "Running")
	stalled := was("Stalled", metav1.ConditionTrue, "Old")
	wasReady := was("Ready", metav1.ConditionTrue, "Fine")
	untouched := []metav1.Condition{wasReady, reconciling, stalled}

	derived := reconcilekit.Outcome{Ready: metav1.Condition{Status: metav1.ConditionTrue, Reason: "Protected"}}
	look := derived
	look.Look = time.Hour
	ready := at(metav1.Condition{Type: "Ready", Status: metav1.ConditionTrue, Reason: "Protected", LastTransitionTime: old})
	kept := reconciling
	kept.ObservedGeneration = 2
	moving := func(reason string) metav1.Condition {
		c := at(was("Reconciling", metav1.ConditionTrue, reason))
		c.ObservedGeneration, c.Message = 2, "boom"
		return c
	}
	stuck := stalled
	stuck.Reason, stuck.Message, stuck.ObservedGeneration = "BadSchedule", "boom", 2
	conflict := apierrors.NewConflict(jobs, "j", errBoom)

	for name, tc := range map[string]struct {
		outcome    reconcilekit.Outcome
		err        error
		policy     reconcilekit.Policy
		conditions []metav1.Condition
		result     ctrl.Result
		failed     bool
		observed   int64
	}{
		"nothing to wait for": {derived, nil, reconcilekit.Policy{}, []metav1.Condition{ready}, ctrl.Result{}, false, 2},
		"look again":          {look, nil, reconcilekit.Policy{}, []metav1.Condition{ready, kept}, ctrl.Result{RequeueAfter: time.Hour}, false, 2},
		"waiting": {derived, reconcilekit.Waiting("Snapshot", time.Minute, errBoom), reconcilekit.Policy{},
			[]metav1.Condition{ready, moving("Snapshot")}, ctrl.Result{RequeueAfter: time.Minute}, false, 2},
		"transient": {derived, errBoom, reconcilekit.Policy{},
			[]metav1.Condition{ready, moving("Retrying")}, ctrl.Result{}, true, 2},
		"transient beside terminal": {derived, errors.Join(reconcilekit.Terminal("X", nil), reconcilekit.Transient("Y", errBoom)), reconcilekit.Policy{},
			[]metav1.Condition{ready, func() metav1.Condition { c := moving("Retrying"); c.Message = "X; boom"; return c }()}, ctrl.Result{}, true, 2},
		"terminal": {derived, reconcilekit.Terminal("BadSchedule", errBoom), reconcilekit.Policy{},
			[]metav1.Condition{ready, stuck}, ctrl.Result{RequeueAfter: 10 * time.Minute}, false, 2},
		"terminal, the next slot is nearer": {derived, reconcilekit.Terminal("BadSchedule", errBoom), reconcilekit.Policy{NextSlot: now.Add(4 * time.Minute)},
			[]metav1.Condition{ready, stuck}, ctrl.Result{RequeueAfter: 4 * time.Minute}, false, 2},
		"terminal, the next slot is farther": {derived, reconcilekit.Terminal("BadSchedule", errBoom), reconcilekit.Policy{NextSlot: now.Add(time.Hour)},
			[]metav1.Condition{ready, stuck}, ctrl.Result{RequeueAfter: 10 * time.Minute}, false, 2},
		"terminal, a due slot is no hot loop": {derived, reconcilekit.Terminal("BadSchedule", errBoom), reconcilekit.Policy{NextSlot: now.Add(-time.Minute)},
			[]metav1.Condition{ready, stuck}, ctrl.Result{RequeueAfter: time.Second}, false, 2},
		"terminal, never more than 10 minutes": {derived, reconcilekit.Terminal("BadSchedule", errBoom), reconcilekit.Policy{TerminalLook: time.Hour},
			[]metav1.Condition{ready, stuck}, ctrl.Result{RequeueAfter: 10 * time.Minute}, false, 2},
		"terminal, waits for an edit alone": {derived, reconcilekit.Terminal("BadSchedule", errBoom), reconcilekit.Policy{TerminalLook: -1},
			[]metav1.Condition{ready, stuck}, ctrl.Result{}, false, 2},
		"conflict": {derived, fmt.Errorf("x: %w", conflict), reconcilekit.Policy{},
			untouched, ctrl.Result{RequeueAfter: 500 * time.Millisecond}, false, 1},
		"conflict with a delay": {derived, conflict, reconcilekit.Policy{ConflictDelay: time.Second},
			untouched, ctrl.Result{RequeueAfter: time.Second}, false, 1},
		"stopping": {derived, fmt.Errorf("x: %w", context.Canceled), reconcilekit.Policy{}, untouched, ctrl.Result{}, false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := &widget.Widget{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
			w.Status.ObservedGeneration = 1
			w.Status.Conditions = []metav1.Condition{wasReady, reconciling, stalled}
			shared := w.Status.Conditions
			tc.policy.Now = now

			result, err := reconcilekit.Settle(w, tc.outcome, tc.err, tc.policy)
			require.Empty(t, cmp.Diff(tc.result, result))
			require.Equal(t, tc.failed, err != nil)
			require.False(t, errors.Is(err, reconcile.TerminalError(nil)))
			require.Empty(t, cmp.Diff(tc.conditions, w.Status.Conditions))
			require.Equal(t, tc.observed, w.Status.ObservedGeneration)
			require.Empty(t, cmp.Diff([]metav1.Condition{wasReady, reconciling, stalled}, shared), "a shared slice was written to")
		})
	}
}

func TestSettleNeverShowsAReadyOfAnotherGeneration(t *testing.T) {
	ready := condition("Ready", metav1.ConditionTrue, "Fine", "")
	ready.ObservedGeneration = 1
	for name, tc := range map[string]struct {
		conditions []metav1.Condition
		generation int64
		err        error
		status     metav1.ConditionStatus
		reason     string
	}{
		"first sight":               {nil, 1, nil, metav1.ConditionUnknown, "NotDetermined"},
		"a new generation":          {[]metav1.Condition{ready}, 2, errBoom, metav1.ConditionUnknown, "NotDetermined"},
		"the same generation stays": {[]metav1.Condition{ready}, 1, errBoom, metav1.ConditionTrue, "Fine"},
		"terminal":                  {[]metav1.Condition{ready}, 1, reconcilekit.Terminal("Bad", nil), metav1.ConditionFalse, "Bad"},
	} {
		t.Run(name, func(t *testing.T) {
			w := &widget.Widget{ObjectMeta: metav1.ObjectMeta{Generation: tc.generation}}
			w.Status.Conditions = tc.conditions
			_, _ = reconcilekit.Settle(w, reconcilekit.Outcome{}, tc.err, reconcilekit.Policy{Now: now})
			require.Equal(t, "Ready", w.Status.Conditions[0].Type)
			require.Equal(t, tc.status, w.Status.Conditions[0].Status)
			require.Equal(t, tc.reason, w.Status.Conditions[0].Reason)
		})
	}
}

func TestSettleSummarisesUnderAnotherName(t *testing.T) {
	w := newWidget()
	outcome := reconcilekit.Outcome{Ready: metav1.Condition{Type: "ignored", Status: metav1.ConditionFalse}}
	_, err := reconcilekit.Settle(w, outcome, nil, reconcilekit.Policy{Now: now, Summary: "Succeeded"})
	require.NoError(t, err)
	require.Empty(t, cmp.Diff([]metav1.Condition{condition("Succeeded", metav1.ConditionFalse, "NotDetermined", "")}, w.Status.Conditions))
}

func TestSettleTriesAgainWhatIsInvalidOnlyBecauseOfADeletion(t *testing.T) {
	w := newWidget(finalizer)
	deleted := metav1.NewTime(now)
	w.DeletionTimestamp = &deleted
	_, err := reconcilekit.Settle(w, reconcilekit.Outcome{}, invalid(), reconcilekit.Policy{Now: now})
	require.Error(t, err)
	_, err = reconcilekit.Settle(newWidget(), reconcilekit.Outcome{}, invalid(), reconcilekit.Policy{Now: now})
	require.NoError(t, err, "stalled otherwise")
}

// controller-runtime drops the retry of anything that holds its terminal error.
func TestSettleReturnsNoErrorThatControllerRuntimeWouldDrop(t *testing.T) {
	joined := errors.Join(reconcile.TerminalError(errBoom), errors.New("network"))
	require.ErrorIs(t, joined, reconcile.TerminalError(nil))
	_, err := reconcilekit.Settle(newWidget(), reconcilekit.Outcome{}, joined, reconcilekit.Policy{Now: now})
	require.EqualError(t, err, joined.Error())
	require.NotErrorIs(t, err, reconcile.TerminalError(nil))
}
