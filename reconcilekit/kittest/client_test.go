package kittest_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/pvcbackup/reconcilekit/internal/widget"
	"example.com/pvcbackup/reconcilekit/kittest"
)

func names(t *testing.T, c client.Client, opts ...client.ListOption) []string {
	t.Helper()
	list := &corev1.ConfigMapList{}
	require.NoError(t, c.List(t.Context(), list, opts...))
	found := []string{}
	for _, item := range list.Items {
		found = append(found, item.Name)
	}
	return found
}

func TestClientFailsTheNthCallOnly(t *testing.T) {
	base := kittest.FakeClient(scheme)
	c := kittest.Client(base, kittest.FailNth(2, "create", "ConfigMap", errBoom))
	require.Len(t, c.Unfired(), 1)
	require.NoError(t, c.Create(t.Context(), newWidget()), "another kind does not count")
	require.NoError(t, c.Create(t.Context(), newConfigMap("a")))
	require.ErrorIs(t, c.Create(t.Context(), newConfigMap("b")), errBoom)
	require.NoError(t, c.Create(t.Context(), newConfigMap("c")))
	require.Equal(t, []string{"a", "c"}, names(t, base))
	require.Empty(t, c.Unfired())
}

func TestClientLosesAResponseOfWhatHappened(t *testing.T) {
	base := kittest.FakeClient(scheme)
	c := kittest.Client(base, kittest.LoseResponse(1, "create", "", nil), kittest.LoseResponse(2, "delete", "", errBoom))
	made := newConfigMap("a")
	require.ErrorIs(t, c.Create(t.Context(), made), kittest.ErrInjected)
	require.Empty(t, cmp.Diff(newConfigMap("a"), made), "the caller sees nothing of the answer")
	require.Equal(t, []string{"a"}, names(t, base))

	require.True(t, apierrors.IsNotFound(c.Delete(t.Context(), newConfigMap("b"))))
	require.ErrorIs(t, c.Delete(t.Context(), newConfigMap("a")), errBoom)
	require.Empty(t, names(t, base))
}

func TestClientReportsARealFailureThoughItsResponseWouldBeLost(t *testing.T) {
	c := kittest.Client(kittest.FakeClient(scheme), kittest.LoseResponse(1, "delete", "", errBoom))
	require.True(t, apierrors.IsNotFound(c.Delete(t.Context(), newConfigMap("absent"))))
}

func TestClientConflictsOnce(t *testing.T) {
	c := kittest.Client(kittest.FakeClient(scheme, newConfigMap("a")), kittest.ConflictOnce(kittest.AnyWrite, "ConfigMap"))
	cm := newConfigMap("a")
	require.True(t, apierrors.IsConflict(c.Update(t.Context(), cm)))
	require.NoError(t, c.Update(t.Context(), cm))
}

func TestClientRunsAnotherWriterBefore(t *testing.T) {
	base := kittest.FakeClient(scheme, newConfigMap("a"))
	c := kittest.Client(base, kittest.Rule{Verb: "delete", Fault: kittest.Before(func(ctx context.Context) error {
		return base.Delete(ctx, newConfigMap("a"))
	})})
	require.True(t, apierrors.IsNotFound(c.Delete(t.Context(), newConfigMap("a"))))
	require.ErrorContains(t, c.Delete(t.Context(), newConfigMap("a")), "running before delete configmaps ns/a")
}

func TestClientTellsASubresourceFromItsObject(t *testing.T) {
	patch := client.RawPatch(types.MergePatchType, []byte(`{}`))
	c := kittest.Client(kittest.FakeClient(scheme, newWidget()),
		kittest.Rule{Subresource: "status", Fault: kittest.Fail(errBoom)})
	require.NoError(t, c.Patch(t.Context(), newWidget(), patch))
	require.ErrorIs(t, c.Status().Patch(t.Context(), newWidget(), patch), errBoom)

	c = kittest.Client(kittest.FakeClient(scheme, newWidget()), kittest.Rule{Verb: "patch", Subresource: "-", Fault: kittest.Fail(errBoom)})
	require.ErrorIs(t, c.Patch(t.Context(), newWidget(), patch), errBoom)
	require.NoError(t, c.Status().Patch(t.Context(), newWidget(), patch))
}

func TestClientRecordsEveryCallAsRBACSeesIt(t *testing.T) {
	c := kittest.Client(kittest.FakeClient(scheme, newWidget(), newConfigMap("a")))
	ctx := t.Context()
	patch := client.RawPatch(types.MergePatchType, []byte(`{"status":{"note":"x"}}`))
	require.NoError(t, c.Get(ctx, key, newWidget()))
	require.NoError(t, c.List(ctx, &widget.WidgetList{}, client.InNamespace("ns")))
	require.NoError(t, c.Status().Patch(ctx, newWidget(), patch))
	w, err := c.Watch(ctx, &corev1.ConfigMapList{})
	require.NoError(t, err)
	w.Stop()
	require.NoError(t, c.Apply(ctx, corev1ac.ConfigMap("applied", "ns"), client.FieldOwner("t")))
	require.NoError(t, c.Update(ctx, newConfigMap("a")))
	require.NoError(t, c.DeleteAllOf(ctx, &corev1.ConfigMap{}, client.InNamespace("ns")))
	require.Error(t, c.Create(ctx, newWidget()))
	require.Error(t, c.SubResource("eviction").Create(ctx, newConfigMap("gone"), &corev1.Pod{}))

	group := widget.GroupVersion.Group
	want := []kittest.Call{
		{Verb: "get", Group: group, Resource: "widgets", Kind: "Widget", Namespace: "ns", Name: "w"},
		{Verb: "list", Group: group, Resource: "widgets", Kind: "Widget", Namespace: "ns"},
		{Verb: "patch", Group: group, Resource: "widgets", Subresource: "status", Kind: "Widget", Namespace: "ns", Name: "w"},
		{Verb: "watch", Resource: "configmaps", Kind: "ConfigMap"},
		{Verb: "patch", Resource: "configmaps", Kind: "ConfigMap", Namespace: "ns", Name: "applied"},
		{Verb: "update", Resource: "configmaps", Kind: "ConfigMap", Namespace: "ns", Name: "a"},
		{Verb: "deletecollection", Resource: "configmaps", Kind: "ConfigMap", Namespace: "ns"},
		{Verb: "create", Group: group, Resource: "widgets", Kind: "Widget", Namespace: "ns", Name: "w"},
		{Verb: "create", Resource: "configmaps", Subresource: "eviction", Kind: "ConfigMap", Namespace: "ns", Name: "gone"},
	}
	require.Empty(t, cmp.Diff(want, c.Calls()))
	require.Len(t, c.Writes(), 6)
	c.Reset()
	require.Empty(t, c.Calls())
}

func TestLagHidesTheLastWrites(t *testing.T) {
	c := kittest.Client(kittest.FakeClient(scheme, newConfigMap("old")), kittest.LagReads(2))
	ctx := t.Context()
	require.NoError(t, c.Create(ctx, newConfigMap("first")))
	require.Equal(t, []string{"old"}, names(t, c))
	require.True(t, apierrors.IsNotFound(c.Get(ctx, client.ObjectKeyFromObject(newConfigMap("first")), &corev1.ConfigMap{})))

	require.NoError(t, c.Delete(ctx, newConfigMap("old")))
	require.Equal(t, []string{"old"}, names(t, c), "the deleted one is still seen")
	require.NoError(t, c.Get(ctx, client.ObjectKeyFromObject(newConfigMap("old")), &corev1.ConfigMap{}))

	require.NoError(t, c.Create(ctx, newConfigMap("third")))
	require.ElementsMatch(t, []string{"first", "old"}, names(t, c), "two writes are hidden, not three")
	require.Equal(t, []string{"old"}, names(t, c, client.MatchingLabels{"app": "old"}))
	require.Empty(t, names(t, c, client.InNamespace("other")))

	require.True(t, c.CatchUp())
	require.Equal(t, []string{"first", "third"}, names(t, c))
	require.False(t, c.CatchUp())
}

func TestLagShowsTheOldContentToEveryKindOfReader(t *testing.T) {
	c := kittest.Client(kittest.FakeClient(scheme, newWidget()), kittest.LagReads(1))
	changed := newWidget()
	require.NoError(t, c.Get(t.Context(), key, changed))
	changed.Status.Note, changed.Annotations = "new", map[string]string{"new": "1"}
	require.NoError(t, c.Status().Update(t.Context(), changed))

	typed := newWidget()
	typed.Status.Note = "left over"
	require.NoError(t, c.Get(t.Context(), key, typed))
	require.Empty(t, typed.Status.Note)
	require.NotEqual(t, changed.ResourceVersion, typed.ResourceVersion, "so that a locked write of it is refused")

	gvk := widget.GroupVersion.WithKind("Widget")
	loose, partial := &unstructured.Unstructured{}, &metav1.PartialObjectMetadata{}
	loose.SetGroupVersionKind(gvk)
	partial.SetGroupVersionKind(gvk)
	for _, obj := range []client.Object{loose, partial} {
		require.NoError(t, c.Get(t.Context(), key, obj))
		require.Equal(t, typed.ResourceVersion, obj.GetResourceVersion())
		require.Equal(t, gvk, obj.GetObjectKind().GroupVersionKind())
	}
	looseList, partialList := &unstructured.UnstructuredList{}, &metav1.PartialObjectMetadataList{}
	looseList.SetGroupVersionKind(widget.GroupVersion.WithKind("WidgetList"))
	partialList.SetGroupVersionKind(widget.GroupVersion.WithKind("WidgetList"))
	require.NoError(t, c.List(t.Context(), looseList))
	require.NoError(t, c.List(t.Context(), partialList))
	require.Equal(t, typed.ResourceVersion, looseList.Items[0].GetResourceVersion())
	require.Equal(t, typed.ResourceVersion, partialList.Items[0].ResourceVersion)

	require.True(t, kittest.Client(c).CatchUp(), "also through a client above it")
}

func TestFakeClientHasStatusOfEveryKindAsASubresource(t *testing.T) {
	c := kittest.FakeClient(scheme, newWidget())
	w := newWidget()
	require.NoError(t, c.Get(t.Context(), key, w))
	w.Status.Note = "dropped"
	require.NoError(t, c.Update(t.Context(), w))
	require.NoError(t, c.Get(t.Context(), key, w))
	require.Empty(t, w.Status.Note)
}
