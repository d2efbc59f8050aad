package reconcilekit_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/pvcbackup/reconcilekit"
	"example.com/pvcbackup/reconcilekit/internal/widget"
	"example.com/pvcbackup/reconcilekit/kittest"
)

var hostile = []string{
	"", " ", "\x00", "\n", "\xff\xfe", "%s%n", "9lives", "_", "é", "a b",
	strings.Repeat("x", 5000), strings.Repeat("https://u:p@h/?s=1 ", 1<<14),
}

func TestHostileReasonsAndMessagesMakeAStatusThatIsAccepted(t *testing.T) {
	cluster := api.Start(t)
	w := newWidget()
	w.Namespace = cluster.Namespace(t)
	require.NoError(t, cluster.Client.Create(t.Context(), w))
	writer := reconcilekit.NewStatusWriter(cluster.Client, reconcilekit.StatusOptions{})
	for _, text := range hostile {
		for _, err := range []error{
			reconcilekit.Terminal(text, errors.New(text)), reconcilekit.Waiting(text, -1, errors.New(text)),
			reconcilekit.Transient(text, nil), errors.New(text),
		} {
			before := w.DeepCopy()
			policy := reconcilekit.Policy{Now: now, TerminalLook: math.MaxInt64, ConflictDelay: -1}
			result, _ := reconcilekit.Settle(w, reconcilekit.Outcome{Look: math.MinInt64}, err, policy)
			require.GreaterOrEqual(t, result.RequeueAfter, time.Duration(0))
			require.NoError(t, writer.Write(t.Context(), before, w), "%.20q", text)
			kittest.CheckStatus(t, w, kittest.Contract{})
		}
	}
}

func TestNilIsNothing(t *testing.T) {
	require.Equal(t, reconcilekit.ClassNone, reconcilekit.Classify(nil))
	require.Empty(t, reconcilekit.Reason(nil))
	require.Zero(t, reconcilekit.RetryAfter(nil))
	require.Empty(t, reconcilekit.StableMessage(nil))
	require.False(t, reconcilekit.IsGone(nil) || reconcilekit.IsNotServed(nil) || reconcilekit.IsNamespaceTerminating(nil))
	require.False(t, reconcilekit.SetCondition(nil, 1, metav1.Condition{Type: "Ready"}))
	require.False(t, reconcilekit.RemoveCondition(nil, "Ready"))
	var caller *reconcilekit.Caller
	require.NoError(t, caller.Do(t.Context(), "", func(context.Context) error { return nil }))
	var events *reconcilekit.Events
	events.Transitions(newWidget(), newWidget())
	events.Emit(nil, "", "", "")
	(&reconcilekit.Events{}).Emit(nil, "", "", "")
	_, err := reconcilekit.NewMetrics(nil)
	require.NoError(t, err)
	reconcilekit.NewObjectGauges(nil).Delete("", "")
}

func TestErrorsWithoutAnythingInThemAreTransient(t *testing.T) {
	for _, err := range []error{errors.Join(errors.New("")), wrapsNothing{}, reconcilekit.Transient("", nil)} {
		require.Equal(t, reconcilekit.ClassTransient, reconcilekit.Classify(err))
		require.Regexp(t, `^[A-Z][A-Za-z]*$`, reconcilekit.Reason(err))
	}
	deep := errors.New("deep")
	for range 10_000 {
		deep = errors.Join(deep)
	}
	require.Equal(t, reconcilekit.ClassTransient, reconcilekit.Classify(deep))
}

type wrapsNothing struct{}

func (wrapsNothing) Error() string { return "" }
func (wrapsNothing) Unwrap() error { return nil }

func TestAHugeTextIsShortenedAtOnce(t *testing.T) {
	start := time.Now()
	require.LessOrEqual(t, len(reconcilekit.StableText(strings.Repeat("10.0.0.1:443 refused; ", 1<<20))), 1000)
	require.Less(t, time.Since(start), 5*time.Second)
}

func TestSettlingAWidgetWithNoConditionsIsFine(t *testing.T) {
	w := &widget.Widget{}
	_, err := reconcilekit.Settle(w, reconcilekit.Outcome{}, nil, reconcilekit.Policy{})
	require.NoError(t, err)
	require.Len(t, w.GetConditions(), 1)
}

// FuzzReasonFitsACondition checks that whatever an error says of itself fits the reason of a condition and of an event.
func FuzzReasonFitsACondition(f *testing.F) {
	for _, text := range hostile[:len(hostile)-1] {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, err := range []error{reconcilekit.Terminal(text, nil), reconcilekit.Waiting(text, 0, nil), reconcilekit.Transient(text, nil)} {
			reason := reconcilekit.Reason(err)
			require.Regexp(t, `^[A-Z][A-Za-z0-9_]*$`, reason)
			require.LessOrEqual(t, len(reason), 128)
		}
	})
}
