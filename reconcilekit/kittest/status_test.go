package kittest_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/pvcbackup/reconcilekit/internal/widget"
	"example.com/pvcbackup/reconcilekit/kittest"
)

func TestCheckStatusFailsEveryBadStatus(t *testing.T) {
	when := metav1.NewTime(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	cond := func(conditionType string, status metav1.ConditionStatus, edit ...func(*metav1.Condition)) metav1.Condition {
		c := metav1.Condition{Type: conditionType, Status: status, Reason: "Fine", ObservedGeneration: 2, LastTransitionTime: when}
		for _, e := range edit {
			e(&c)
		}
		return c
	}
	ready := cond("Ready", metav1.ConditionTrue)
	notReady := cond("Ready", metav1.ConditionFalse)
	message := func(c *metav1.Condition) { c.Message = "dial tcp 10.0.0.1:443: refused" }
	type conditions = []metav1.Condition

	for name, tc := range map[string]struct {
		conditions conditions
		observed   int64
		contract   kittest.Contract
		want       []string
	}{
		"good": {conditions{ready}, 2, kittest.Contract{Settled: true}, nil},
		"good, at work": {conditions{notReady, cond("Reconciling", metav1.ConditionTrue, func(c *metav1.Condition) { c.ObservedGeneration = 1 })},
			1, kittest.Contract{}, nil},
		"no summary":              {nil, 2, kittest.Contract{}, []string{"condition Ready is missing"}},
		"another summary missing": {conditions{ready}, 2, kittest.Contract{Summary: "Succeeded"}, []string{"condition Succeeded is missing"}},
		"required missing":        {conditions{ready}, 2, kittest.Contract{Required: []string{"Escrowed"}}, []string{"condition Escrowed is missing"}},
		"twice":                   {conditions{ready, ready}, 2, kittest.Contract{}, []string{"condition Ready is there twice"}},
		"from the future": {conditions{cond("Ready", metav1.ConditionTrue, func(c *metav1.Condition) { c.ObservedGeneration = 3 })}, 4, kittest.Contract{},
			[]string{"status observes generation 4, but the object's is 2", "condition Ready observes generation 3, but the object's is 2"}},
		"not settled": {conditions{cond("Ready", metav1.ConditionTrue, func(c *metav1.Condition) { c.ObservedGeneration = 1 }), cond("Reconciling", metav1.ConditionTrue)}, 1, kittest.Contract{Settled: true},
			[]string{"status observes generation 1, but the settled object's is 2", "condition Ready observes generation 1, but the settled object's is 2",
				"condition Reconciling (Fine) is there although the object is settled"}},
		"no generation": {conditions{cond("Ready", metav1.ConditionTrue, func(c *metav1.Condition) { c.ObservedGeneration = 0 })}, 2, kittest.Contract{},
			[]string{"condition Ready does not say which generation it observes"}},
		"bad status":  {conditions{cond("Ready", "Maybe")}, 2, kittest.Contract{}, []string{`condition Ready has the status "Maybe"`}},
		"bad reason":  {conditions{cond("Ready", metav1.ConditionTrue, func(c *metav1.Condition) { c.Reason = "not camel" })}, 2, kittest.Contract{}, []string{`condition Ready has the reason "not camel", which is not CamelCase`}},
		"no time":     {conditions{cond("Ready", metav1.ConditionTrue, func(c *metav1.Condition) { c.LastTransitionTime = metav1.Time{} })}, 2, kittest.Contract{}, []string{"condition Ready has no transition time"}},
		"volatile":    {conditions{cond("Ready", metav1.ConditionFalse, message)}, 2, kittest.Contract{}, []string{`condition Ready has a message that differs each time: "dial tcp 10.0.0.1:443: refused", stable would be "dial tcp <address>: refused"`}},
		"may be so":   {conditions{cond("Ready", metav1.ConditionFalse, message)}, 2, kittest.Contract{Volatile: []string{"Ready"}}, nil},
		"not removed": {conditions{ready, cond("Stalled", metav1.ConditionFalse)}, 2, kittest.Contract{}, []string{"condition Stalled is False, but has to be True or absent", "condition Ready is True although Stalled is there"}},
		"both": {conditions{notReady, cond("Stalled", metav1.ConditionTrue), cond("Reconciling", metav1.ConditionTrue)}, 2, kittest.Contract{},
			[]string{"conditions Reconciling and Stalled are there together"}},
		"fine but stalled": {conditions{ready, cond("Stalled", metav1.ConditionTrue)}, 2, kittest.Contract{}, []string{"condition Ready is True although Stalled is there"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := &widget.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "w", Generation: 2}}
			w.Status.Conditions, w.Status.ObservedGeneration = tc.conditions, tc.observed
			require.Empty(t, cmp.Diff(tc.want, kittest.StatusProblems(w, tc.contract)))

			failed := failures(t, func(t testing.TB) { kittest.CheckStatus(t, w, tc.contract) })
			require.Equal(t, len(tc.want) > 0, failed != "")
		})
	}
}
