package kittest

import (
	"fmt"
	"regexp"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/pvcbackup/reconcilekit"
)

// Contract is what a kind promises of its status.
type Contract struct {
	// Summary is the type of the summary condition; Ready when empty.
	Summary string
	// Required are further condition types that have to be there.
	Required []string
	// Settled requires that everything is of the object's present generation and
	// that nothing is reconciling.
	Settled bool
	// Volatile are condition types whose message may hold what differs each time.
	Volatile []string
}

// CheckStatus fails the test for each rule that the status of obj breaks; see
// [StatusProblems].
func CheckStatus(t testing.TB, obj client.Object, contract Contract) {
	t.Helper()
	for _, problem := range StatusProblems(obj, contract) {
		t.Errorf("status of %s/%s: %s", obj.GetNamespace(), obj.GetName(), problem)
	}
}

// StatusProblems returns what is wrong with the status of obj. The rules: the
// summary and the required conditions are there; no type twice; every condition
// has a status, a CamelCase reason, a transition time, a stable message, and
// observes a generation that exists; Reconciling and Stalled are absent or True,
// and not both; nothing stalled is summarised as True.
func StatusProblems(obj client.Object, contract Contract) []string {
	status, err := readStatus(obj)
	if err != nil {
		return []string{err.Error()}
	}
	if contract.Summary == "" {
		contract.Summary = reconcilekit.TypeReady
	}
	c := &checker{contract: contract, generation: obj.GetGeneration(), byType: map[string]metav1.Condition{}}
	c.observed("status", status.ObservedGeneration)
	for _, condition := range status.Conditions {
		c.condition(condition)
	}
	c.together()
	return c.problems
}

type commonStatus struct {
	ObservedGeneration *int64             `json:"observedGeneration"`
	Conditions         []metav1.Condition `json:"conditions"`
}

func readStatus(obj client.Object) (commonStatus, error) {
	var common struct {
		Status commonStatus `json:"status"`
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return commonStatus{}, fmt.Errorf("reading the status: %w", err)
	}
	err = runtime.DefaultUnstructuredConverter.FromUnstructured(map[string]any{"status": content["status"]}, &common)
	return common.Status, err
}

type checker struct {
	contract   Contract
	generation int64
	byType     map[string]metav1.Condition
	problems   []string
}

func (c *checker) add(format string, args ...any) {
	c.problems = append(c.problems, fmt.Sprintf(format, args...))
}

func (c *checker) observed(what string, generation *int64) {
	switch {
	case generation == nil:
	case *generation > c.generation:
		c.add("%s observes generation %d, but the object's is %d", what, *generation, c.generation)
	case c.contract.Settled && *generation < c.generation:
		c.add("%s observes generation %d, but the settled object's is %d", what, *generation, c.generation)
	}
}

var camelCase = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)

func (c *checker) condition(condition metav1.Condition) {
	if _, twice := c.byType[condition.Type]; twice {
		c.add("condition %s is there twice", condition.Type)
	}
	c.byType[condition.Type] = condition
	c.observed("condition "+condition.Type, &condition.ObservedGeneration)
	if condition.ObservedGeneration == 0 && c.generation > 0 {
		c.add("condition %s does not say which generation it observes", condition.Type)
	}
	switch condition.Status {
	case metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown:
	default:
		c.add("condition %s has the status %q", condition.Type, condition.Status)
	}
	if !camelCase.MatchString(condition.Reason) {
		c.add("condition %s has the reason %q, which is not CamelCase", condition.Type, condition.Reason)
	}
	if condition.LastTransitionTime.IsZero() {
		c.add("condition %s has no transition time", condition.Type)
	}
	if stable := reconcilekit.StableText(condition.Message); stable != condition.Message && !slices.Contains(c.contract.Volatile, condition.Type) {
		c.add("condition %s has a message that differs each time: %q, stable would be %q", condition.Type, condition.Message, stable)
	}
}

// together checks the conditions as a whole.
func (c *checker) together() {
	for _, required := range append([]string{c.contract.Summary}, c.contract.Required...) {
		if _, ok := c.byType[required]; !ok {
			c.add("condition %s is missing", required)
		}
	}
	reconciling, isReconciling := c.byType[reconcilekit.TypeReconciling]
	stalled, isStalled := c.byType[reconcilekit.TypeStalled]
	for _, condition := range []metav1.Condition{reconciling, stalled} {
		if condition.Type != "" && condition.Status != metav1.ConditionTrue {
			c.add("condition %s is %s, but has to be True or absent", condition.Type, condition.Status)
		}
	}
	if isReconciling && isStalled {
		c.add("conditions Reconciling and Stalled are there together")
	}
	if isStalled && c.byType[c.contract.Summary].Status == metav1.ConditionTrue {
		c.add("condition %s is True although Stalled is there", c.contract.Summary)
	}
	if isReconciling && c.contract.Settled {
		c.add("condition Reconciling (%s) is there although the object is settled", reconciling.Reason)
	}
}
