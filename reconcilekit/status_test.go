package reconcilekit_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/pvcbackup/reconcilekit"
	"example.com/pvcbackup/reconcilekit/kittest"
)

func condition(conditionType string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: conditionType, Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(now)}
}

func TestSetConditionReportsOnlyWhatIsWorthAWrite(t *testing.T) {
	base := condition("Ready", metav1.ConditionFalse, "Down", "dial tcp 10.0.0.1:443: refused")
	later := metav1.NewTime(now.Add(time.Hour))
	edit := func(f func(*metav1.Condition)) metav1.Condition {
		c := base
		c.LastTransitionTime = later
		f(&c)
		return c
	}
	for name, tc := range map[string]struct {
		set        metav1.Condition
		generation int64
		changed    bool
		moved      bool // the transition time
		message    string
	}{
		"the same":          {edit(func(*metav1.Condition) {}), 3, false, false, base.Message},
		"a volatile part":   {edit(func(c *metav1.Condition) { c.Message = "dial tcp 10.0.0.9:80: refused" }), 3, false, false, base.Message},
		"another message":   {edit(func(c *metav1.Condition) { c.Message = "no route" }), 3, true, false, "no route"},
		"another reason":    {edit(func(c *metav1.Condition) { c.Reason = "Up" }), 3, true, false, base.Message},
		"another status":    {edit(func(c *metav1.Condition) { c.Status = metav1.ConditionTrue }), 3, true, true, base.Message},
		"another generaton": {edit(func(*metav1.Condition) {}), 4, true, false, base.Message},
	} {
		t.Run(name, func(t *testing.T) {
			var conditions []metav1.Condition
			require.True(t, reconcilekit.SetCondition(&conditions, 3, base))
			require.Equal(t, tc.changed, reconcilekit.SetCondition(&conditions, tc.generation, tc.set))
			want := tc.set
			want.Message, want.ObservedGeneration = tc.message, tc.generation
			if !tc.moved {
				want.LastTransitionTime = base.LastTransitionTime
			}
			require.Empty(t, cmp.Diff([]metav1.Condition{want}, conditions))
		})
	}
}

func TestStatusWriterSendsOnePatchAndNoneWhenNothingChanged(t *testing.T) {
	c := kittest.Client(kittest.FakeClient(scheme, newWidget()))
	writer := reconcilekit.NewStatusWriter(c, reconcilekit.StatusOptions{FieldOwner: "tests"})
	before := stored(t, c, newWidget())
	after := before.DeepCopy()
	after.Status.Note = "hello"
	after.Status.Conditions = []metav1.Condition{condition("Ready", metav1.ConditionTrue, "Fine", "")}
	after.Labels = map[string]string{"not": "a status"}
	c.Reset()

	require.NoError(t, writer.Write(t.Context(), before, after))
	require.Equal(t, "patch widgets/status ns/w", c.Writes()[0].String())
	require.Len(t, c.Writes(), 1)
	got := stored(t, c, before)
	require.Equal(t, "hello", got.Status.Note)
	require.Empty(t, got.Labels)
	require.Equal(t, got.ResourceVersion, after.ResourceVersion)

	require.NoError(t, writer.Write(t.Context(), after.DeepCopy(), after))
	require.Len(t, c.Writes(), 1)

	cleared := after.DeepCopy()
	cleared.Status.Note, cleared.Status.Conditions = "", nil
	require.NoError(t, writer.Write(t.Context(), after, cleared))
	require.Empty(t, cmp.Diff(cleared.Status, stored(t, c, before).Status))
}

func TestStatusWriterWritesThoughTheContextHasEnded(t *testing.T) {
	c := kittest.FakeClient(scheme, newWidget())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	deadline := false
	probe := kittest.Client(c, kittest.Rule{Subresource: "status", Fault: func(ctx context.Context, a kittest.Attempt) error {
		_, deadline = ctx.Deadline()
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return a.Perform()
	}})
	before := stored(t, c, newWidget())
	after := before.DeepCopy()
	after.Status.Note = "written"
	require.NoError(t, reconcilekit.NewStatusWriter(probe, reconcilekit.StatusOptions{}).Write(ctx, before, after))
	require.Equal(t, "written", stored(t, c, before).Status.Note)
	require.True(t, deadline, "the write has a deadline of its own")
}

func TestStatusWriterReportsAConflictAndKeepsTheOther(t *testing.T) {
	c := kittest.FakeClient(scheme, newWidget())
	writer := reconcilekit.NewStatusWriter(c, reconcilekit.StatusOptions{})
	before := stored(t, c, newWidget())
	mine, theirs := before.DeepCopy(), before.DeepCopy()
	mine.Status.Note, theirs.Status.Note = "mine", "theirs"
	require.NoError(t, writer.Write(t.Context(), before, theirs))
	err := writer.Write(t.Context(), before, mine)
	require.Equal(t, reconcilekit.ClassConflict, reconcilekit.Classify(err))
	require.Equal(t, "theirs", stored(t, c, before).Status.Note)
}

func TestStatusWriterWritesNothingAfterTheLastFinalizer(t *testing.T) {
	c := kittest.Client(kittest.FakeClient(scheme))
	after := newWidget()
	deleted := metav1.NewTime(now)
	after.DeletionTimestamp, after.ResourceVersion = &deleted, "1"
	before := after.DeepCopy()
	after.Status.Note = "too late"
	writer := reconcilekit.NewStatusWriter(c, reconcilekit.StatusOptions{})
	require.NoError(t, writer.Write(t.Context(), before, after))
	require.Empty(t, c.Calls())

	after.Finalizers = []string{finalizer}
	require.NoError(t, writer.Write(t.Context(), before, after), "gone while being deleted is success")
	require.Len(t, c.Writes(), 1)

	after.DeletionTimestamp = nil
	require.True(t, reconcilekit.IsGone(writer.Write(t.Context(), before, after)), "gone without that is not")
}

func TestServerStatusWritesObserveTheGenerationOfADeletion(t *testing.T) {
	c, w := created(t, finalizer)
	require.Equal(t, int64(1), w.Generation)
	require.NoError(t, c.Delete(t.Context(), w))
	w = stored(t, c, w)
	require.Equal(t, int64(2), w.Generation, "a deletion moves the generation")

	before := w.DeepCopy()
	_, err := reconcilekit.Settle(w, reconcilekit.Outcome{}, reconcilekit.Waiting("Cleaning", time.Minute, nil), reconcilekit.Policy{Now: now})
	require.NoError(t, err)
	writer := reconcilekit.NewStatusWriter(c, reconcilekit.StatusOptions{})
	require.NoError(t, writer.Write(t.Context(), before, w))
	got := stored(t, c, w)
	require.Equal(t, int64(2), got.Generation, "a status write does not")
	require.Equal(t, got.ResourceVersion, w.ResourceVersion)
	kittest.CheckStatus(t, got, kittest.Contract{})
	require.Equal(t, got.Generation, got.Status.ObservedGeneration)

	late := got.DeepCopy()
	late.Status.Note = "late"
	require.NoError(t, reconcilekit.DropFinalizer(t.Context(), c, got.DeepCopy(), finalizer))
	require.NoError(t, writer.Write(t.Context(), got, late), "an object that has just gone is success")
}

func TestServerStatusWriterIsLockedAndWritesNothingButStatus(t *testing.T) {
	c, w := created(t)
	writer := reconcilekit.NewStatusWriter(c, reconcilekit.StatusOptions{})
	before := w.DeepCopy()
	w.Status.Note, w.Spec.Size = "one", 7
	require.NoError(t, writer.Write(t.Context(), before, w))
	got := stored(t, c, w)
	require.Equal(t, "one", got.Status.Note)
	require.Zero(t, got.Spec.Size)

	stale := before.DeepCopy()
	stale.Status.Note = "stale"
	err := writer.Write(t.Context(), before, stale)
	require.Equal(t, reconcilekit.ClassConflict, reconcilekit.Classify(err), "%v", err)
}

func TestServerStatusWriterNeverRevivesOrTouchesASuccessor(t *testing.T) {
	c, w := created(t)
	require.NoError(t, c.Delete(t.Context(), w))
	writer := reconcilekit.NewStatusWriter(c, reconcilekit.StatusOptions{})
	after := w.DeepCopy()
	after.Status.Note = "from the past"
	require.True(t, reconcilekit.IsGone(writer.Write(t.Context(), w, after)))
	require.True(t, reconcilekit.IsGone(c.Get(t.Context(), client.ObjectKeyFromObject(w), w.DeepCopy())), "nothing was recreated")

	successor := newWidget()
	successor.Namespace = w.Namespace
	require.NoError(t, c.Create(t.Context(), successor))
	require.Error(t, writer.Write(t.Context(), w, after))
	require.Empty(t, stored(t, c, successor).Status.Note)
}
