package snapshottest_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"example.com/pvcbackup/reconcilekit/kittest"
	"example.com/pvcbackup/snapshot"
	"example.com/pvcbackup/snapshot/snapshottest"
)

const patience = 30 * time.Second

var (
	api = kittest.NewAPIServer(kittest.APIServerOptions{Scheme: testScheme()})
	me  = snapshot.Owner{UID: "me"}
)

func TestMain(m *testing.M) { os.Exit(api.Main(m)) }

func testScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(snapshot.AddToScheme(s))
	return s
}

// clock is set by the test alone.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func source(namespace string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "data"},
		Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: ptr.To(snapshottest.StorageClass),
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}}}}
}

func request(namespace string) snapshot.Request {
	return snapshot.Request{Namespace: namespace, Name: "s", Claim: "data", Class: snapshottest.SnapshotClass, Owner: me}
}

func TestServerSnapshotGoesThroughEveryStateByScript(t *testing.T) {
	cluster := api.Start(t)
	ns := cluster.Namespace(t)
	watch := &clock{now: time.Date(2026, 1, 1, 3, 0, 0, 0, time.UTC)}
	d := snapshottest.New(cluster.Client, snapshottest.Options{Now: watch.Now})
	s := snapshot.New(cluster.Client, snapshot.Options{})
	require.NoError(t, d.Install(t.Context()))
	require.NoError(t, d.Install(t.Context()), "again is fine")
	require.NoError(t, cluster.Client.Create(t.Context(), source(ns)))
	require.NoError(t, d.Step(t.Context()))
	d.PlayFor(ns, "s", snapshottest.Script{Error: "busy", ErrorFor: time.Minute, Taken: time.Minute, Ready: time.Minute,
		RestoreSize: ptr.To(resource.MustParse("3Gi")), DeleteAfter: time.Minute})

	see := func() snapshot.Observation {
		t.Helper()
		require.NoError(t, d.Step(t.Context()))
		o, err := s.Observe(t.Context(), ns, "s")
		require.NoError(t, err)
		return o
	}
	_, err := s.Ensure(t.Context(), request(ns))
	require.NoError(t, err)
	o := see()
	require.Equal(t, []any{snapshot.Failing, "busy"}, []any{o.State, o.LastError})
	require.NotEmpty(t, o.ContentName)
	watch.Add(time.Minute)
	require.Equal(t, snapshot.Creating, see().State)
	watch.Add(time.Minute)
	o = see()
	require.Equal(t, snapshot.Taken, o.State)
	require.Equal(t, watch.Now(), o.TakenAt.UTC())
	require.Equal(t, int64(3<<30), o.RestoreSize)
	watch.Add(time.Minute)
	require.Equal(t, snapshot.Ready, see().State)

	_, err = s.Delete(t.Context(), o.Ref(), me)
	require.NoError(t, err)
	require.Equal(t, snapshot.Deleting, see().State)
	watch.Add(time.Minute)
	require.Equal(t, snapshot.Absent, see().State)
	err = cluster.Client.Get(t.Context(), client.ObjectKey{Name: o.ContentName}, &snapshotv1.VolumeSnapshotContent{})
	require.True(t, snapshot.IsGone(err), "the content goes too: %v", err)
}

func TestServerAnUnboundSourceShowsAnErrorAndRecovers(t *testing.T) {
	cluster := api.Start(t)
	ns := cluster.Namespace(t)
	d := snapshottest.New(cluster.Client, snapshottest.Options{})
	s := snapshot.New(cluster.Client, snapshot.Options{})
	require.NoError(t, d.Install(t.Context()))
	_, err := s.Ensure(t.Context(), request(ns))
	require.NoError(t, err)
	require.NoError(t, d.Step(t.Context()))
	o, err := s.Observe(t.Context(), ns, "s")
	require.NoError(t, err)
	require.Equal(t, snapshot.Failing, o.State)
	require.NoError(t, cluster.Client.Create(t.Context(), source(ns)))
	kittest.Eventually(t, patience, func() error {
		if err := d.Step(t.Context()); err != nil {
			return err
		}
		o, err := s.Observe(t.Context(), ns, "s")
		if err == nil && o.State != snapshot.Ready {
			err = fmt.Errorf("it is %s", o.State)
		}
		return err
	})
}

func TestServerAClaimInUseIsProtected(t *testing.T) {
	cluster := api.Start(t)
	ns := cluster.Namespace(t)
	d := snapshottest.New(cluster.Client, snapshottest.Options{})
	require.NoError(t, d.Install(t.Context()))
	pvc := source(ns)
	require.NoError(t, cluster.Client.Create(t.Context(), pvc))
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "p"}, Spec: corev1.PodSpec{
		AutomountServiceAccountToken: ptr.To(false), Containers: []corev1.Container{{Name: "c", Image: "i"}},
		Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}}}
	require.NoError(t, cluster.Client.Create(t.Context(), pod))
	require.NoError(t, cluster.Client.Delete(t.Context(), pvc))
	require.NoError(t, d.Step(t.Context()))
	require.NoError(t, cluster.Client.Get(t.Context(), client.ObjectKeyFromObject(pvc), pvc))
	require.NoError(t, cluster.Client.Delete(t.Context(), pod, client.GracePeriodSeconds(0)))
	kittest.Eventually(t, patience, func() error {
		if err := d.Step(t.Context()); err != nil {
			return err
		}
		if err := cluster.Client.Get(t.Context(), client.ObjectKeyFromObject(pvc), pvc); !snapshot.IsGone(err) {
			return fmt.Errorf("the claim is still there: %w", err)
		}
		return nil
	})
}

func TestRunEndsWithItsContextAndLeavesNoGoroutine(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	c := fake.NewClientBuilder().WithScheme(testScheme()).
		WithStatusSubresource(&corev1.PersistentVolumeClaim{}, &corev1.PersistentVolume{}).Build()
	d := snapshottest.New(c, snapshottest.Options{Poll: time.Millisecond})
	require.NoError(t, d.Install(t.Context()))
	require.NoError(t, c.Create(t.Context(), source("ns")))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx) }()
	kittest.Eventually(t, patience, func() error {
		_, err := snapshot.New(c, snapshot.Options{}).ResolveClaim(t.Context(), "ns", "data")
		return err
	})
	require.NoError(t, d.LastError())
	cancel()
	require.NoError(t, <-done)
}
