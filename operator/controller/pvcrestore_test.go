package controller

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/pvcbackup/backup"
	"example.com/pvcbackup/backup/contract"
	"example.com/pvcbackup/backup/movertest"
	"example.com/pvcbackup/backup/scheduled"
	v1 "example.com/pvcbackup/operator/api/v1"
	"example.com/pvcbackup/reconcilekit/kittest"
	"example.com/pvcbackup/snapshot/snapshottest"
)

// restoreWorld is a namespace of the real API server with a stand-in for the CSI driver, and scripted movers.
type restoreWorld struct {
	t      testing.TB
	admin  client.Client
	ns     string
	script *movertest.Script
	driver *snapshottest.Driver
	events *events.FakeRecorder
	client *kittest.FaultClient
	// started are the tasks of the movers that were started.
	started []backup.Task
}

func newRestoreWorld(t testing.TB) *restoreWorld {
	t.Helper()
	cluster := api.Start(t)
	w := &restoreWorld{
		t: t, admin: cluster.Client, ns: cluster.Namespace(t), script: movertest.NewScript(), events: events.NewFakeRecorder(100),
		client: kittest.Client(cluster.Client),
	}
	w.answer(contract.Result{Outcome: contract.Succeeded, SnapshotID: "abc", Files: 3, Bytes: 100})
	w.driver = snapshottest.New(cluster.Client, snapshottest.Options{})
	require.NoError(t, w.driver.Install(t.Context()))
	return w
}

// answer is how every mover ends.
func (w *restoreWorld) answer(result contract.Result) {
	w.script.Plan = func(task backup.Task, _ int) *contract.Result {
		w.started = append(w.started, task)
		return &result
	}
}

// source makes the PVCBackup that is restored from.
func (w *restoreWorld) source(ns string, change func(*v1.PVCBackup)) {
	w.t.Helper()
	obj := &v1.PVCBackup{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "source"}}
	obj.Spec.PVCName, obj.Spec.S3Bucket, obj.Spec.Schedule = "data", "bucket", "0 0 * * *"
	if change != nil {
		change(obj)
	}
	require.NoError(w.t, w.admin.Create(w.t.Context(), obj))
}

// create makes a PVCRestore into a new claim. change may be nil.
func (w *restoreWorld) create(change func(*v1.PVCRestore)) {
	w.t.Helper()
	obj := &v1.PVCRestore{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "r"}}
	obj.Spec.Source.PVCBackup = "source"
	obj.Spec.Target = v1.RestoreTarget{PVCName: "target", Create: &v1.NewClaim{
		Size: resource.MustParse("1Gi"), StorageClassName: ptr.To(snapshottest.StorageClass)}}
	if change != nil {
		change(obj)
	}
	require.NoError(w.t, w.admin.Create(w.t.Context(), obj))
}

func (w *restoreWorld) get() *v1.PVCRestore {
	w.t.Helper()
	obj := &v1.PVCRestore{}
	require.NoError(w.t, w.admin.Get(w.t.Context(), w.key(), obj))
	return obj
}

func (w *restoreWorld) key() client.ObjectKey { return client.ObjectKey{Namespace: w.ns, Name: "r"} }

func (w *restoreWorld) reconciler() *PVCRestoreReconciler {
	return newRestorer(w.client, w.script, w.events, nil)
}

func (w *restoreWorld) reconcile(ctx context.Context) (ctrl.Result, error) {
	return w.reconciler().Reconcile(ctx, ctrl.Request{NamespacedName: w.key()})
}

// settle reconciles until nothing moves, and returns the condition that sums the restore up.
func (w *restoreWorld) settle() metav1.Condition {
	w.t.Helper()
	kittest.Converge(w.t, w.client, w.reconcile, kittest.ConvergeOptions{
		Between: func(ctx context.Context) (bool, error) { return false, w.driver.Step(ctx) }, Timeout: 2 * time.Minute,
	})
	return w.summary()
}

func (w *restoreWorld) summary() metav1.Condition {
	w.t.Helper()
	c := meta.FindStatusCondition(w.get().Status.Conditions, v1.ConditionSucceeded)
	if c == nil {
		return metav1.Condition{}
	}
	return *c
}

func (w *restoreWorld) told() (told []string) {
	for {
		select {
		case event := <-w.events.Events:
			told = append(told, strings.Join(strings.Fields(event)[:2], " "))
		default:
			return told
		}
	}
}

func TestARestoreThatEndedIsNeverTouchedAgain(t *testing.T) {
	w := newRestoreWorld(t)
	w.source(w.ns, nil)
	w.create(nil)
	got := w.settle()
	require.Equal(t, metav1.ConditionTrue, got.Status, got.Message)
	obj := w.get()
	require.Equal(t, "Completed", obj.Status.Phase)
	require.EqualValues(t, 3, obj.Status.Files)
	require.Empty(t, obj.Finalizers, "nothing of it is left outside")
	writes := len(w.client.Writes())
	for range 10 {
		_, err := w.reconcile(t.Context())
		require.NoError(t, err)
	}
	require.Len(t, w.client.Writes(), writes)
	require.Empty(t, cmp.Diff([]string{"Normal InProgress", "Normal Restored"}, w.told()))
}

func TestAFailedRestoreSaysSoOnceAndKeepsItsTarget(t *testing.T) {
	w := newRestoreWorld(t)
	w.source(w.ns, nil)
	w.answer(contract.Result{Outcome: contract.Failed, Reason: contract.ReasonSnapshotNotFound, Message: "no snapshot matches"})
	w.create(nil)
	got := w.settle()
	require.Equal(t, metav1.ConditionFalse, got.Status)
	require.Equal(t, contract.ReasonSnapshotNotFound, got.Reason)
	require.Equal(t, "Failed", w.get().Status.Phase)
	require.Empty(t, cmp.Diff([]string{"Normal InProgress", "Warning SnapshotNotFound"}, w.told()))
	require.NoError(t, w.admin.Get(t.Context(), client.ObjectKey{Namespace: w.ns, Name: "target"}, &corev1.PersistentVolumeClaim{}))
}

func TestARestoreOfAnotherNamespacesBackupNeedsItsGrant(t *testing.T) {
	grant := func(to string) func(*v1.PVCBackup) {
		return func(b *v1.PVCBackup) { b.Annotations = map[string]string{v1.AnnotationRestoreTo: to} }
	}
	for name, test := range map[string]struct {
		missing bool
		grant   func(ns string) func(*v1.PVCBackup)
		reason  string
	}{
		"missing":         {missing: true, reason: "SourceNotGranted"},
		"not granted":     {grant: func(string) func(*v1.PVCBackup) { return nil }, reason: "SourceNotGranted"},
		"granted another": {grant: func(ns string) func(*v1.PVCBackup) { return grant(ns + "x, y") }, reason: "SourceNotGranted"},
		"granted":         {grant: func(ns string) func(*v1.PVCBackup) { return grant("x, " + ns) }},
		"granted all":     {grant: func(string) func(*v1.PVCBackup) { return grant("*") }},
		"on a volume there": {grant: func(ns string) func(*v1.PVCBackup) {
			return func(b *v1.PVCBackup) {
				grant(ns)(b)
				b.Spec.S3Bucket, b.Spec.Storage = "", &scheduled.Storage{URL: "file:///pvcbackup/destination", Volume: "nas"}
			}
		}, reason: "SourceOutOfReach"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newRestoreWorld(t)
			theirs := api.Start(t).Namespace(t)
			if !test.missing {
				w.source(theirs, test.grant(w.ns))
			}
			w.create(func(r *v1.PVCRestore) { r.Spec.Source.Namespace = theirs })
			got := w.settle()
			if test.reason != "" {
				require.Equal(t, test.reason, reasonOf(w.get()))
				require.Empty(t, w.started)
				return
			}
			task := w.started[0]
			require.Equal(t, metav1.ConditionTrue, got.Status)
			require.Equal(t, w.ns, task.Owner.Namespace, "the mover has this namespace's Secrets")
			require.Equal(t, contract.Identity{Host: "c1", Path: "/" + theirs + "/data"}, task.Request.Identity)
			require.Equal(t, "s3://bucket/c1/"+theirs+"/data", task.Repository)
		})
	}
}

// reasonOf is what the restore waits for, or ended with.
func reasonOf(r *v1.PVCRestore) string {
	if c := meta.FindStatusCondition(r.Status.Conditions, scheduled.ConditionReconciling); c != nil {
		return c.Reason
	}
	return meta.FindStatusCondition(r.Status.Conditions, v1.ConditionSucceeded).Reason
}

// outside makes a mover's side effects calls that a process may stop before and after.
type outside struct {
	*movertest.Script
	process kittest.Process
}

func (o outside) Start(ctx context.Context, task backup.Task, attempt int) error {
	return o.process.Outside("start", func() error { return o.Script.Start(ctx, task, attempt) })
}

func (o outside) Stop(ctx context.Context, task backup.Task) (gone bool, err error) {
	err = o.process.Outside("stop", func() error {
		gone, err = o.Script.Stop(ctx, task)
		return err
	})
	return gone, err
}

func TestAStopBeforeOrAfterAnySideEffectOfAPVCRestoreChangesNothing(t *testing.T) {
	n := kittest.CrashEverywhere(t, kittest.Scenario{World: func(t testing.TB) kittest.World {
		w := newRestoreWorld(t)
		w.source(w.ns, nil)
		w.create(nil)
		return kittest.World{
			Client: w.client,
			Start: func(p kittest.Process) kittest.Reconcile {
				r := newRestorer(p.Client, outside{w.script, p}, w.events, nil)
				return func(ctx context.Context) (ctrl.Result, error) {
					return r.Reconcile(ctx, ctrl.Request{NamespacedName: w.key()})
				}
			},
			Between: func(ctx context.Context) (bool, error) { return false, w.driver.Step(ctx) },
			Final:   func(ctx context.Context) (any, error) { return w.end(ctx) },
		}
	}})
	// The finalizer and its end, the claim, the mover's start and its stop, and each time that the status tells of it.
	require.Equal(t, restoreSideEffects, n, "side effects of a restore: each was broken in four ways")
}

const restoreSideEffects = 9

// end is what must be the same however often the operator was stopped.
func (w *restoreWorld) end(ctx context.Context) (any, error) {
	var claims corev1.PersistentVolumeClaimList
	if err := w.admin.List(ctx, &claims, client.InNamespace(w.ns)); err != nil {
		return nil, err
	}
	obj := w.get()
	tasks, err := w.script.Tasks(ctx, backup.Owner{UID: obj.UID})
	phases := map[string]corev1.PersistentVolumeClaimPhase{}
	for _, c := range claims.Items {
		phases[c.Name] = c.Status.Phase
	}
	return map[string]any{
		"claims": phases, "tasks": len(tasks), "succeeded": w.summary().Status, "files": obj.Status.Files,
		"snapshot": obj.Status.SnapshotID, "finalizers": len(obj.Finalizers), "movers": len(w.started),
	}, err
}
