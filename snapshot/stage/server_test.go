package stage_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"example.com/pvcbackup/reconcilekit/kittest"
	"example.com/pvcbackup/snapshot"
	"example.com/pvcbackup/snapshot/snapshottest"
	"example.com/pvcbackup/snapshot/stage"
)

const patience = 30 * time.Second

var api = kittest.NewAPIServer(kittest.APIServerOptions{Scheme: serverScheme()})

func TestMain(m *testing.M) { os.Exit(api.Main(m)) }

func serverScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(snapshot.AddToScheme(s))
	utilruntime.Must(rbacv1.AddToScheme(s))
	return s
}

// world is a namespace with a stand-in CSI driver, and a bound claim "data".
type world struct {
	client.WithWatch
	ns        string
	driver    *snapshottest.Driver
	snapshots *snapshot.Client
	staging   *stage.Client
	source    snapshot.Claim
}

func newWorld(t *testing.T) *world {
	t.Helper()
	cluster := api.Start(t)
	w := &world{WithWatch: cluster.Client, ns: cluster.Namespace(t), driver: snapshottest.New(cluster.Client, snapshottest.Options{}),
		snapshots: snapshot.New(cluster.Client, snapshot.Options{Contents: true}), staging: stage.New(cluster.Client, stage.Options{})}
	require.NoError(t, w.driver.Install(t.Context()))
	require.NoError(t, w.Create(t.Context(), &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "data"},
		Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: ptr.To(snapshottest.StorageClass),
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}}}}))
	w.play(t, func() (err error) {
		w.source, err = w.snapshots.ResolveClaim(t.Context(), w.ns, "data")
		return err
	})
	return w
}

// play steps the stand-in until check is satisfied.
func (w *world) play(t *testing.T, check func() error) {
	t.Helper()
	kittest.Eventually(t, patience, func() error {
		if err := w.driver.Step(t.Context()); err != nil {
			return err
		}
		return check()
	})
}

func (w *world) snapshot(t *testing.T) (seen snapshot.Observation) {
	t.Helper()
	class, err := w.snapshots.ChooseClass(t.Context(), w.source.Driver, "")
	require.NoError(t, err)
	w.play(t, func() error {
		seen, err = w.snapshots.Ensure(t.Context(), snapshot.Request{Namespace: w.ns, Name: "s", Claim: "data", Class: class.Name, Owner: me})
		if err != nil {
			return err
		}
		return snapshot.Judge(seen, snapshot.Deadlines{}, time.Now())
	})
	return seen
}

func (w *world) request(seen snapshot.Observation) stage.Request {
	return stage.Request{Namespace: w.ns, Name: "c", Owner: me, Snapshot: seen, Source: w.source}
}

func TestServerKeepsTheDataSourceAndAllGoesAgain(t *testing.T) {
	w := newWorld(t)
	seen := w.snapshot(t)
	require.NotEmpty(t, seen.Handle)
	require.Equal(t, w.driver.Name(), seen.Driver)
	r := w.request(seen)
	r.StorageClass = snapshottest.StorageClassRetain
	var staged stage.Observation
	w.play(t, func() (err error) {
		if staged, err = w.staging.Ensure(t.Context(), r); err != nil {
			return err
		}
		return stage.Judge(staged, 0, time.Now())
	})
	require.Equal(t, stage.Bound, staged.State)

	var pv corev1.PersistentVolume
	require.NoError(t, w.Get(t.Context(), client.ObjectKey{Name: staged.VolumeName}, &pv))
	require.Equal(t, corev1.PersistentVolumeReclaimDelete, pv.Spec.PersistentVolumeReclaimPolicy, "its class says Retain")

	w.play(t, func() error {
		swept, err := w.staging.Sweep(t.Context(), w.ns, me, nil)
		if err != nil || len(swept.Deleting) == 0 {
			return err
		}
		return fmt.Errorf("still deleting: %v", swept.Deleting)
	})
	w.play(t, func() error {
		for _, gone := range []client.Object{
			&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: staged.VolumeName}},
			&snapshotv1.VolumeSnapshotContent{ObjectMeta: metav1.ObjectMeta{Name: seen.ContentName}},
		} {
			if err := w.Get(t.Context(), client.ObjectKeyFromObject(gone), gone); !snapshot.IsGone(err) {
				return fmt.Errorf("%s is still there: %w", gone.GetName(), err)
			}
		}
		return nil
	})
	require.NoError(t, w.Get(t.Context(), client.ObjectKey{Namespace: w.ns, Name: "data"}, &corev1.PersistentVolumeClaim{}), "the user's claim stays")
}

func TestServerDropsACrossNamespaceSourceAndEnsureDeletesTheClaim(t *testing.T) {
	w := newWorld(t)
	r := w.request(w.snapshot(t))
	r.Namespace = api.Start(t).Namespace(t)
	_, err := w.staging.Ensure(t.Context(), r)
	require.ErrorIs(t, err, stage.ErrSourceDropped)
	w.play(t, func() error {
		o, err := w.staging.Observe(t.Context(), r.Namespace, r.Name)
		if err != nil || o.State == stage.Absent {
			return err
		}
		require.Equal(t, stage.Deleting, o.State, "it must never be handed out")
		return errors.New("the claim is still there")
	})
}

func TestServerEnsureFindsItsOwnClaimAgain(t *testing.T) {
	w := newWorld(t)
	r := w.request(w.snapshot(t))
	for range 2 {
		o, err := w.staging.Ensure(t.Context(), r)
		require.NoError(t, err, "what the server adds to the reference is no difference")
		require.NotEmpty(t, o.UID)
	}
}

func TestServerUnderWaitForFirstConsumerThePodComesFirst(t *testing.T) {
	w := newWorld(t)
	r := w.request(w.snapshot(t))
	r.StorageClass = snapshottest.StorageClassWaits
	for range 3 {
		require.NoError(t, w.driver.Step(t.Context()))
		o, err := w.staging.Ensure(t.Context(), r)
		require.NoError(t, err)
		require.Equal(t, stage.WaitingForConsumer, o.State)
		require.NoError(t, stage.Judge(o, time.Nanosecond, time.Now().Add(time.Hour)))
	}
	require.NoError(t, w.Create(t.Context(), podUsing(w.ns, "c")))
	w.play(t, func() error {
		o, err := w.staging.Observe(t.Context(), w.ns, "c")
		if err == nil && o.State != stage.Bound {
			err = fmt.Errorf("it is %s", o.State)
		}
		return err
	})
}

func podUsing(namespace, claim string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "mover"}, Spec: corev1.PodSpec{
		AutomountServiceAccountToken: ptr.To(false),
		Containers:                   []corev1.Container{{Name: "c", Image: "i"}},
		Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}},
	}}
}

func TestServerDeletesOnlyTheClaimThatWasRead(t *testing.T) {
	w := newWorld(t)
	r := w.request(w.snapshot(t))
	o, err := w.staging.Ensure(t.Context(), r)
	require.NoError(t, err)
	racing := interceptor.NewClient(w.WithWatch, interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
			w.adopt(t, "c")
			return c.Delete(ctx, obj, opts...)
		},
	})
	_, err = stage.New(racing, stage.Options{}).Delete(t.Context(), o.Ref(), me)
	require.True(t, apierrors.IsConflict(err), "got %v", err)
	var pvc corev1.PersistentVolumeClaim
	require.NoError(t, w.Get(t.Context(), client.ObjectKey{Namespace: w.ns, Name: "c"}, &pvc))
	require.Nil(t, pvc.DeletionTimestamp)
	_, err = w.staging.Delete(t.Context(), o.Ref(), me)
	require.ErrorIs(t, err, snapshot.ErrForeign)
}

// adopt is a user who takes a claim for their own.
func (w *world) adopt(t *testing.T, name string) {
	var pvc corev1.PersistentVolumeClaim
	require.NoError(t, w.Get(t.Context(), client.ObjectKey{Namespace: w.ns, Name: name}, &pvc))
	delete(pvc.Labels, snapshot.OwnerUIDLabel)
	require.NoError(t, w.Update(t.Context(), &pvc))
}

func TestServerRefusesTheReclaimPatchOnceTheVolumeHasChanged(t *testing.T) {
	w := newWorld(t)
	r := w.request(w.snapshot(t))
	r.StorageClass = snapshottest.StorageClassRetain
	var name string
	racing := interceptor.NewClient(w.WithWatch, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, opts ...client.PatchOption) error {
			var pv corev1.PersistentVolume
			name = obj.GetName()
			require.NoError(t, w.Get(ctx, client.ObjectKey{Name: name}, &pv))
			pv.Labels = map[string]string{"changed": "meanwhile"}
			require.NoError(t, w.Update(ctx, &pv))
			return c.Patch(ctx, obj, patch, opts...)
		},
	})
	s := stage.New(racing, stage.Options{})
	w.play(t, func() error {
		_, err := s.Ensure(t.Context(), r)
		if name == "" {
			return fmt.Errorf("the claim is not bound yet: %w", err)
		}
		require.True(t, apierrors.IsConflict(err), "got %v", err)
		return nil
	})
	var pv corev1.PersistentVolume
	require.NoError(t, w.Get(t.Context(), client.ObjectKey{Name: name}, &pv))
	require.Equal(t, corev1.PersistentVolumeReclaimRetain, pv.Spec.PersistentVolumeReclaimPolicy)
}
