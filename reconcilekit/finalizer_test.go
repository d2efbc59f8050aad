package reconcilekit_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/pvcbackup/reconcilekit"
	"example.com/pvcbackup/reconcilekit/internal/widget"
	"example.com/pvcbackup/reconcilekit/kittest"
)

func TestEnsureFinalizerAddsItOnce(t *testing.T) {
	c := kittest.Client(kittest.FakeClient(scheme, newWidget("other")))
	w := stored(t, c, newWidget())
	c.Reset()

	added, err := reconcilekit.EnsureFinalizer(t.Context(), c, w, finalizer)
	require.NoError(t, err)
	require.True(t, added)
	added, err = reconcilekit.EnsureFinalizer(t.Context(), c, w, finalizer)
	require.NoError(t, err)
	require.False(t, added)

	require.Len(t, c.Calls(), 1)
	got := stored(t, c, w)
	require.Empty(t, cmp.Diff([]string{"other", finalizer}, got.Finalizers))
	require.Empty(t, cmp.Diff(got.ObjectMeta, w.ObjectMeta), "the object passed in is up to date")
}

func TestEnsureFinalizerRefusesADeletedObjectWithoutACall(t *testing.T) {
	base := kittest.FakeClient(scheme, newWidget("other"))
	c := kittest.Client(base)
	require.NoError(t, base.Delete(t.Context(), newWidget()))
	w := stored(t, base, newWidget())

	added, err := reconcilekit.EnsureFinalizer(t.Context(), c, w, finalizer)
	require.ErrorIs(t, err, reconcilekit.ErrDeleting)
	require.False(t, added)
	require.Equal(t, reconcilekit.ClassConflict, reconcilekit.Classify(err))
	require.Empty(t, c.Calls())
}

func TestEnsureFinalizerRefusesAnObjectThatWasNeverRead(t *testing.T) {
	c := kittest.Client(kittest.FakeClient(scheme, newWidget()))
	_, err := reconcilekit.EnsureFinalizer(t.Context(), c, newWidget(), finalizer)
	require.ErrorContains(t, err, "read it from the API server first")
	require.Empty(t, c.Calls())
}

func TestEnsureFinalizerLeavesTheObjectAloneWhenItFails(t *testing.T) {
	c := kittest.Client(kittest.FakeClient(scheme, newWidget()), kittest.FailNth(1, "patch", "Widget", errBoom))
	w := stored(t, c, newWidget())
	before := w.DeepCopy()
	_, err := reconcilekit.EnsureFinalizer(t.Context(), c, w, finalizer)
	require.ErrorIs(t, err, errBoom)
	require.Empty(t, cmp.Diff(before, w))
}

// A shallow copy shares the array of its finalizers with the cached object.
func TestFinalizersNeverWriteIntoASharedArray(t *testing.T) {
	c := kittest.FakeClient(scheme, newWidget("a", finalizer, "b", "c"))
	cached := stored(t, c, newWidget())
	shallow := *cached
	require.NoError(t, reconcilekit.DropFinalizer(t.Context(), c, &shallow, finalizer))
	require.Empty(t, cmp.Diff([]string{"a", finalizer, "b", "c"}, cached.Finalizers))
	require.Empty(t, cmp.Diff([]string{"a", "b", "c"}, shallow.Finalizers))

	cached = stored(t, c, newWidget())
	cached.Finalizers = append(make([]string, 0, 10), cached.Finalizers...)
	shallow = *cached
	_, err := reconcilekit.EnsureFinalizer(t.Context(), c, &shallow, finalizer)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff([]string{"a", "b", "c", ""}, cached.Finalizers[:4]))
}

func TestDropFinalizerWithoutItMakesNoCall(t *testing.T) {
	c := kittest.Client(kittest.FakeClient(scheme, newWidget()))
	require.NoError(t, reconcilekit.DropFinalizer(t.Context(), c, newWidget("other"), finalizer))
	require.Empty(t, c.Calls())
}

func TestDropFinalizerEndsTheObject(t *testing.T) {
	c := kittest.FakeClient(scheme, newWidget(finalizer))
	require.NoError(t, c.Delete(t.Context(), newWidget()))
	w := stored(t, c, newWidget())
	require.NoError(t, reconcilekit.DropFinalizer(t.Context(), c, w, finalizer))
	require.Empty(t, w.Finalizers)
	require.True(t, reconcilekit.IsGone(c.Get(t.Context(), client.ObjectKeyFromObject(w), &widget.Widget{})))
}

func TestDropFinalizerTakesAGoneOrReplacedObjectForSuccess(t *testing.T) {
	widgets := schema.GroupResource{Group: widget.GroupVersion.Group, Resource: "widgets"}
	storage := errors.New("StorageError: invalid object, Code: 4, Key: /registry/w, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: a, UID in object meta: b")
	for name, answer := range map[string]error{
		"gone":     apierrors.NewNotFound(widgets, "w"),
		"replaced": apierrors.NewConflict(widgets, "w", storage),
	} {
		t.Run(name, func(t *testing.T) {
			base := kittest.FakeClient(scheme, newWidget(finalizer))
			require.NoError(t, base.Delete(t.Context(), newWidget()))
			w := stored(t, base, newWidget())
			c := kittest.Client(base, kittest.FailNth(1, "patch", "Widget", answer))
			require.NoError(t, reconcilekit.DropFinalizer(t.Context(), c, w, finalizer))
			require.Empty(t, c.Unfired())
		})
	}
}

func TestDropFinalizerReportsAnOrdinaryConflict(t *testing.T) {
	base := kittest.FakeClient(scheme, newWidget(finalizer))
	w := stored(t, base, newWidget())
	c := kittest.Client(base, kittest.ConflictOnce("patch", "Widget"))
	err := reconcilekit.DropFinalizer(t.Context(), c, w, finalizer)
	require.Equal(t, reconcilekit.ClassConflict, reconcilekit.Classify(err))
	require.Contains(t, stored(t, base, w).Finalizers, finalizer)
}

func TestFinalizeDropsTheFinalizerOnlyAfterCleanup(t *testing.T) {
	c := kittest.FakeClient(scheme, newWidget(finalizer))
	w := stored(t, c, newWidget())
	cleanups, cleanup := 0, errBoom
	run := func() (bool, error) {
		return reconcilekit.Finalize(t.Context(), c, w, finalizer, func(context.Context) error { cleanups++; return cleanup })
	}

	done, err := run()
	require.NoError(t, err)
	require.False(t, done, "an object that is not being deleted is left alone")
	require.Zero(t, cleanups)

	require.NoError(t, c.Delete(t.Context(), newWidget()))
	w = stored(t, c, newWidget())
	done, err = run()
	require.ErrorIs(t, err, errBoom)
	require.False(t, done)
	require.Contains(t, stored(t, c, w).Finalizers, finalizer)

	cleanup = nil
	done, err = run()
	require.NoError(t, err)
	require.True(t, done)
	done, err = run()
	require.NoError(t, err)
	require.True(t, done)
	require.Equal(t, 2, cleanups)
}

// The rest runs against a real API server: locks, UIDs and validation.

func TestServerFinalizersNeverUndoAnotherControllers(t *testing.T) {
	c, w := created(t, finalizer)
	stale := w.DeepCopy()
	_, err := reconcilekit.EnsureFinalizer(t.Context(), c, w, "kittest.example.com/other")
	require.NoError(t, err)

	_, err = reconcilekit.EnsureFinalizer(t.Context(), c, stale, "kittest.example.com/third")
	require.Equal(t, reconcilekit.ClassConflict, reconcilekit.Classify(err), "%v", err)
	err = reconcilekit.DropFinalizer(t.Context(), c, stale, finalizer)
	require.Equal(t, reconcilekit.ClassConflict, reconcilekit.Classify(err), "%v", err)
	require.Empty(t, cmp.Diff([]string{finalizer, "kittest.example.com/other"}, stored(t, c, w).Finalizers))
}

func TestServerFinalizersKeepTheObjectUpToDate(t *testing.T) {
	c, w := created(t)
	_, err := reconcilekit.EnsureFinalizer(t.Context(), c, w, finalizer)
	require.NoError(t, err)
	require.Equal(t, stored(t, c, w).ResourceVersion, w.ResourceVersion)
	require.NoError(t, reconcilekit.DropFinalizer(t.Context(), c, w, finalizer))
	require.Equal(t, stored(t, c, w).ResourceVersion, w.ResourceVersion)
	require.Empty(t, stored(t, c, w).Finalizers)
}

func TestServerEnsureFinalizerRefusesAnObjectWhoseDeletionItHasNotSeen(t *testing.T) {
	c, w := created(t, "kittest.example.com/other")
	unaware := w.DeepCopy()
	require.NoError(t, c.Delete(t.Context(), w))
	unaware.ResourceVersion = stored(t, c, w).ResourceVersion // else the lock alone refuses it

	added, err := reconcilekit.EnsureFinalizer(t.Context(), c, unaware, finalizer)
	require.ErrorIs(t, err, reconcilekit.ErrDeleting)
	require.False(t, added)
}

func TestServerTheRefusalOfALateFinalizerIsNotTerminal(t *testing.T) {
	c, w := created(t, "kittest.example.com/other")
	require.NoError(t, c.Delete(t.Context(), w))
	late := stored(t, c, w)
	late.Finalizers = append(late.Finalizers, finalizer)
	err := c.Update(t.Context(), late)
	require.True(t, apierrors.IsInvalid(err), "%v", err)
	require.Equal(t, reconcilekit.ClassConflict, reconcilekit.Classify(err))
	require.Equal(t, reconcilekit.ReasonBeingDeleted, reconcilekit.Reason(err))
}

func TestServerDropFinalizerNeverTouchesASuccessorOfTheSameName(t *testing.T) {
	c, w := created(t, finalizer)
	require.NoError(t, c.Delete(t.Context(), w))
	w = stored(t, c, w)
	gone := w.DeepCopy()
	require.NoError(t, reconcilekit.DropFinalizer(t.Context(), c, w, finalizer))
	require.NoError(t, reconcilekit.DropFinalizer(t.Context(), c, gone.DeepCopy(), finalizer), "already gone is success")

	successor := newWidget(finalizer)
	successor.Namespace = w.Namespace
	require.NoError(t, c.Create(t.Context(), successor))
	t.Cleanup(func() { release(c, successor) })
	err := reconcilekit.DropFinalizer(t.Context(), c, gone, finalizer)
	require.Equal(t, []string{finalizer}, stored(t, c, successor).Finalizers, "%v", err)
}
