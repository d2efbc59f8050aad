package scheduled

import (
	"context"
	"testing"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/pvcbackup/backup"
	"example.com/pvcbackup/backup/contract"
	"example.com/pvcbackup/backup/movertest"
	"example.com/pvcbackup/reconcilekit"
	"example.com/pvcbackup/snapshot"
)

// cached is a client with the reads of a cache that holds one ready VolumeSnapshot. Anything else panics: a settled
// object is reconciled from the cache, and nothing is written.
type cached struct {
	client.Client
	scheme *runtime.Scheme
	kept   snapshotv1.VolumeSnapshot
}

func (c *cached) Scheme() *runtime.Scheme { return c.scheme }

func (c *cached) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	switch list := list.(type) {
	case *snapshotv1.VolumeSnapshotList:
		list.Items = []snapshotv1.VolumeSnapshot{*c.kept.DeepCopy()}
	case *corev1.PersistentVolumeClaimList:
	default:
		panic("a settled object lists something else")
	}
	return nil
}

// idleMover is a mover that has nothing.
type idleMover struct{ *movertest.Script }

func (idleMover) Tasks(context.Context, backup.Owner) ([]backup.TaskRef, error) { return nil, nil }

func settled(t testing.TB) (*Loop, *thing) {
	t.Helper()
	yes := true
	kept := snapshotv1.VolumeSnapshot{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: "s", UID: "s",
			Labels: map[string]string{snapshot.OwnerUIDLabel: "uid", backup.LabelSlot: "last"},
		},
		Status: &snapshotv1.VolumeSnapshotStatus{ReadyToUse: &yes, CreationTime: at(-10 * time.Minute)},
	}
	c := &cached{scheme: testScheme(), kept: kept}
	metrics, err := NewMetrics(nil, nil)
	require.NoError(t, err)
	loop, err := New(Options{
		Client: c, Live: c, Mover: idleMover{movertest.NewScript()}, Stores: Stores{ClusterID: "c1"}, Metrics: metrics,
		Now: func() time.Time { return noon },
	})
	require.NoError(t, err)
	obj := &thing{}
	obj.Namespace, obj.Name, obj.UID, obj.Generation, obj.ResourceVersion = "ns", "b", "uid", 1, "1"
	obj.CreationTimestamp, obj.Finalizers = *at(-time.Hour), []string{Finalizer}
	obj.Spec.PVCName, obj.Spec.Schedule, obj.Spec.Storage = "data", "17 * * * *", &Storage{URL: "s3://b"}
	obj.Status.Repository = &Repository{URL: "s3://b/c1/ns/data", ID: "r"}
	obj.Status.mark(scheduleFingerprint(obj), obj.CreationTimestamp.Time, noon)
	obj.Status.begin(hourly, noon.Add(-11*time.Minute))
	obj.Status.end(contract.Result{Outcome: contract.Succeeded, SnapshotID: "x"}, noon.Add(-10*time.Minute))
	for len(obj.Status.History) < HistoryLimit {
		obj.Status.History = append(obj.Status.History, obj.Status.History[0])
	}
	obj.Status.ObservedGeneration = 1
	// What a reconcile would write now is written already.
	p := &pass{Loop: loop, obj: obj, spec: obj.BackupSpec(), status: obj.BackupStatus(), owner: backup.Owner{UID: obj.UID}, now: noon}
	require.NoError(t, p.compile())
	plan := p.schedule.Plan(p.status.state(obj), p.policy, noon)
	p.setNext(plan)
	_, err = reconcilekit.Settle(obj, p.outcome(plan, nil), nil, reconcilekit.Policy{Now: noon})
	require.NoError(t, err)
	obj.Status.Phase = obj.Status.phase(false)
	return loop, obj
}

func scheduleFingerprint(obj *thing) string {
	p := passOf(obj)
	p.owner.UID = obj.UID
	if err := p.compile(); err != nil {
		panic(err)
	}
	return obj.Status.Planning.Fingerprint
}

func TestASettledObjectIsReconciledFromTheCacheAlone(t *testing.T) {
	loop, obj := settled(t)
	result, err := loop.Reconcile(t.Context(), obj) // any other call panics
	require.NoError(t, err)
	require.Equal(t, ctrl.Result{RequeueAfter: 17 * time.Minute}, result)
}

// The bound is 100 µs of CPU.
func BenchmarkReconcileASettledObject(b *testing.B) {
	loop, obj := settled(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := loop.Reconcile(b.Context(), obj); err != nil {
			b.Fatal(err)
		}
	}
}
