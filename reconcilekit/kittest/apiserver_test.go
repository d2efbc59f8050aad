package kittest_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"

	"example.com/pvcbackup/reconcilekit/kittest"
)

func TestAPIServerWithoutItsProgramsFailsTheTestAndNamesTheTarget(t *testing.T) {
	t.Setenv("KUBEBUILDER_ASSETS", t.TempDir())
	server := kittest.NewAPIServer(kittest.APIServerOptions{})
	for range 2 {
		got := failures(t, func(t testing.TB) { server.Start(t) })
		requireContains(t, got, "no kube-apiserver and etcd in", `run "make control-plane"`)
	}
	require.NoError(t, server.Stop())

	t.Setenv("KUBEBUILDER_ASSETS", "")
	t.Chdir(t.TempDir())
	got := failures(t, func(t testing.TB) { kittest.NewAPIServer(kittest.APIServerOptions{}).Start(t) })
	requireContains(t, got, `run "make control-plane"`)
}

func TestServerHasItsDefinitionsAndVolumeSnapshots(t *testing.T) {
	cluster := api.Start(t)
	require.Same(t, cluster, api.Start(t), "one server for all tests of a package")
	w := newWidget()
	w.Namespace = cluster.Namespace(t)
	require.NotEqual(t, w.Namespace, cluster.Namespace(t), "a namespace for each test")
	require.NoError(t, cluster.Client.Create(t.Context(), w))

	claim := "data"
	snapshot := &snapshotv1.VolumeSnapshot{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: "s"},
		Spec:       snapshotv1.VolumeSnapshotSpec{Source: snapshotv1.VolumeSnapshotSource{PersistentVolumeClaimName: &claim}},
	}
	require.NoError(t, cluster.Client.Create(t.Context(), snapshot))
	snapshot.Name, snapshot.ResourceVersion, snapshot.Spec.Source.PersistentVolumeClaimName = "none", "", nil
	require.True(t, apierrors.IsInvalid(cluster.Client.Create(t.Context(), snapshot)), "its rules are in force")
}

func TestServerConvergesUnderFaults(t *testing.T) {
	cluster := api.Start(t)
	w := newWidget()
	w.Namespace = cluster.Namespace(t)
	require.NoError(t, cluster.Client.Create(t.Context(), w))
	c := kittest.Client(cluster.NewClient(t),
		kittest.LagReads(2), kittest.ConflictOnce("patch", "Widget"), kittest.LoseResponse(1, "create", "ConfigMap", nil))
	r := &reconciler{Process: process(c), bucket: bucket{}, key: client.ObjectKeyFromObject(w)}
	kittest.Converge(t, c, r.reconcile, kittest.ConvergeOptions{})
	require.Empty(t, c.Unfired())
	require.NoError(t, cluster.Client.Get(t.Context(), client.ObjectKeyFromObject(w), w))
	require.Equal(t, "done", w.Status.Note)
	require.Equal(t, []string{"child"}, names(t, cluster.Client, client.InNamespace(w.Namespace), client.MatchingLabels{"app": "child"}))
}

func TestEventuallyEndsWithSuccess(t *testing.T) {
	tries := 0
	kittest.Eventually(t, time.Minute, func() error {
		if tries++; tries < 3 {
			return errBoom
		}
		return nil
	})
	require.Equal(t, 3, tries)
}

func TestEventuallyFailsWithTheLastError(t *testing.T) {
	got := failures(t, func(t testing.TB) { kittest.Eventually(t, time.Millisecond, func() error { return errBoom }) })
	requireContains(t, got, "still not so after 1ms: boom")
}

func TestEventuallyObjectPrintsTheLastObject(t *testing.T) {
	c := kittest.FakeClient(scheme, newConfigMap("a"))
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}}
	kittest.EventuallyObject(t, c, cm, time.Minute, func() error { return nil })
	require.NotEmpty(t, cm.ResourceVersion)

	got := failures(t, func(t testing.TB) {
		kittest.EventuallyObject(t, c, cm, time.Millisecond, func() error { return errBoom })
	})
	requireContains(t, got, "boom\nthe object: {", `"app": "a"`)
	cm.Name = "absent"
	got = failures(t, func(t testing.TB) {
		kittest.EventuallyObject(t, c, cm, time.Millisecond, func() error { return nil })
	})
	requireContains(t, got, "not found")
}
