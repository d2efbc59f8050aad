package restore_test

import (
	"context"
	"errors"
	"io"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"example.com/pvcbackup/backup"
	"example.com/pvcbackup/backup/contract"
	"example.com/pvcbackup/backup/movertest"
	"example.com/pvcbackup/backup/restore"
	"example.com/pvcbackup/reconcilekit"
	"example.com/pvcbackup/reconcilekit/kittest"
	"example.com/pvcbackup/snapshot"
	"example.com/pvcbackup/snapshot/snapshottest"
	"example.com/pvcbackup/snapshot/stage"
)

var api = kittest.NewAPIServer(kittest.APIServerOptions{Scheme: testScheme()})

func TestMain(m *testing.M) {
	log.SetLogger(zap.New(zap.WriteTo(io.Discard)))
	os.Exit(api.Main(m))
}

func testScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(snapshot.AddToScheme(s))
	return s
}

var (
	noon  = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	owner = backup.Owner{APIVersion: "storage.example.com/v1", Kind: "PVCRestore", Namespace: "ns", Name: "r", UID: "restore-1"}
	good  = contract.Result{Outcome: contract.Succeeded, SnapshotID: "s", Files: 3}
)

func newRunner(c client.Client, mover backup.Mover) *restore.Runner {
	return &restore.Runner{Live: c, Stages: stage.New(c, snapshot.Options{}), Mover: mover}
}

func intoExisting() restore.Run {
	return restore.Run{Owner: owner, Claim: "target", Task: backup.Task{
		Repository: "s3://b", Request: contract.Request{Operation: contract.OperationRestore, Restore: &contract.Restore{}},
	}}
}

func target() *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "target", UID: "claim"}}
}

func user(name string, phase corev1.PodPhase, labels map[string]string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: labels},
		Spec: corev1.PodSpec{Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "target"}}}}},
		Status: corev1.PodStatus{Phase: phase},
	}
}

func TestATargetThatIsNotReadyIsWaitedForAndNotWrittenTo(t *testing.T) {
	deleting := target()
	deleting.DeletionTimestamp, deleting.Finalizers = &metav1.Time{Time: noon}, []string{"kubernetes.io/pvc-protection"}
	ours := map[string]string{backup.LabelOwnerUID: string(owner.UID)}
	for name, test := range map[string]struct {
		objects []client.Object
		class   reconcilekit.Class
		reason  string
		started bool
	}{
		"missing":                    {nil, reconcilekit.ClassWaiting, "TargetMissing", false},
		"being deleted":              {[]client.Object{deleting}, reconcilekit.ClassTerminal, "TargetDeleting", false},
		"in use":                     {[]client.Object{target(), user("p", corev1.PodRunning, nil)}, reconcilekit.ClassWaiting, "TargetInUse", false},
		"about to be used":           {[]client.Object{target(), user("p", corev1.PodPending, nil)}, reconcilekit.ClassWaiting, "TargetInUse", false},
		"used by what has ended":     {[]client.Object{target(), user("p", corev1.PodSucceeded, nil)}, reconcilekit.ClassWaiting, "MoverStarting", true},
		"used by the restore itself": {[]client.Object{target(), user("p", corev1.PodRunning, ours)}, reconcilekit.ClassWaiting, "MoverStarting", true},
		"free":                       {[]client.Object{target()}, reconcilekit.ClassWaiting, "MoverStarting", true},
	} {
		t.Run(name, func(t *testing.T) {
			script := movertest.NewScript()
			c := kittest.Client(kittest.FakeClient(testScheme(), test.objects...))
			progress, err := newRunner(c, script).Step(t.Context(), intoExisting(), noon)
			require.Equal(t, test.class, reconcilekit.Classify(err))
			require.Equal(t, test.reason, reconcilekit.Reason(err))
			require.Nil(t, progress.Result)
			task, started := script.Task(backup.Task{Owner: owner, Role: backup.RoleRestore, Slot: restore.Slot}, 1)
			require.Equal(t, test.started, started)
			if started {
				require.Empty(t, cmp.Diff(backup.Volumes{Target: "target"}, task.Volumes))
			}
			require.Empty(t, c.Writes(), "a claim that exists is never changed")
		})
	}
}

func TestARestoreEndsWithItsMoversResultAndTheTargetStays(t *testing.T) {
	script := movertest.NewScript()
	script.Plan = func(_ backup.Task, attempt int) *contract.Result {
		if attempt == 1 {
			return &contract.Result{Outcome: contract.Failed, Reason: "StoreUnavailable", Message: "m", Retry: true}
		}
		return &good
	}
	c := kittest.Client(kittest.FakeClient(testScheme(), target()))
	runner := newRunner(c, script)
	var progress restore.Progress
	var err error
	for range 5 {
		if progress, err = runner.Step(t.Context(), intoExisting(), noon); progress.Result != nil {
			break
		}
		require.Equal(t, reconcilekit.ClassWaiting, reconcilekit.Classify(err))
	}
	require.NoError(t, err)
	require.Equal(t, contract.Succeeded, progress.Result.Outcome)
	require.Equal(t, 2, progress.Attempt)
	gone, err := runner.Cleanup(t.Context(), restore.Run{Owner: owner})
	require.NoError(t, err)
	require.True(t, gone)
	tasks, err := script.Tasks(t.Context(), owner)
	require.NoError(t, err)
	require.Empty(t, tasks)
	require.NoError(t, c.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "target"}, target()))
	require.Empty(t, c.Writes())
}

func TestAnAPIServerThatDoesNotTellWhoUsesTheTargetStopsTheRestore(t *testing.T) {
	broken := errors.New("broken")
	script := movertest.NewScript()
	c := kittest.Client(kittest.FakeClient(testScheme(), target()), kittest.Rule{Verb: "list", Kind: "Pod", Fault: kittest.Fail(broken)})
	_, err := newRunner(c, script).Step(t.Context(), intoExisting(), noon)
	require.ErrorIs(t, err, broken)
	require.Equal(t, reconcilekit.ClassTransient, reconcilekit.Classify(err))
	require.Empty(t, c.Unfired())
}

func intoNew(ns string) restore.Run {
	run := intoExisting()
	run.Owner.Namespace = ns
	run.Create = &restore.NewClaim{Size: resource.MustParse("1Gi"), StorageClass: snapshottest.StorageClass}
	return run
}

func TestAClaimOfSomebodyElseIsNeverTakenForTheNewOne(t *testing.T) {
	cluster := api.Start(t)
	ns := cluster.Namespace(t)
	theirs := target()
	theirs.Namespace, theirs.UID = ns, ""
	theirs.Spec = corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}
	require.NoError(t, cluster.Client.Create(t.Context(), theirs))
	script := movertest.NewScript()
	_, err := newRunner(cluster.Client, script).Step(t.Context(), intoNew(ns), time.Now())
	require.ErrorIs(t, err, snapshot.ErrForeign)
	require.Equal(t, reconcilekit.ClassTerminal, reconcilekit.Classify(err))
	tasks, err := script.Tasks(t.Context(), owner)
	require.NoError(t, err)
	require.Empty(t, tasks)
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

func TestAStopBeforeOrAfterAnySideEffectOfARestoreChangesNothing(t *testing.T) {
	n := kittest.CrashEverywhere(t, kittest.Scenario{World: func(t testing.TB) kittest.World {
		cluster := api.Start(t)
		ns := cluster.Namespace(t)
		driver := snapshottest.New(cluster.Client, snapshottest.Options{})
		require.NoError(t, driver.Install(t.Context()))
		script := movertest.NewScript()
		script.Plan = func(backup.Task, int) *contract.Result { return &good }
		var ended *contract.Result // what a status would hold
		cleaned := false
		return kittest.World{
			Client: cluster.Client,
			Start: func(p kittest.Process) kittest.Reconcile {
				runner := newRunner(p.Client, outside{script, p})
				return func(ctx context.Context) (ctrl.Result, error) {
					if ended != nil && !cleaned {
						gone, err := runner.Cleanup(ctx, intoNew(ns))
						cleaned = gone && err == nil
						return ctrl.Result{}, err
					}
					if ended != nil {
						return ctrl.Result{}, nil
					}
					progress, err := runner.Step(ctx, intoNew(ns), time.Now())
					ended = progress.Result
					if reconcilekit.Classify(err) == reconcilekit.ClassWaiting {
						err = nil
					}
					return ctrl.Result{}, err
				}
			},
			Between: func(ctx context.Context) (bool, error) {
				return !cleaned, driver.Step(ctx)
			},
			Final: func(ctx context.Context) (any, error) {
				var claims corev1.PersistentVolumeClaimList
				err := cluster.Client.List(ctx, &claims, client.InNamespace(ns))
				var phases []string
				for _, c := range claims.Items {
					phases = append(phases, c.Name+" "+string(c.Status.Phase))
				}
				tasks, listed := script.Tasks(ctx, owner)
				return map[string]any{"claims": phases, "tasks": len(tasks), "result": *ended}, errors.Join(err, listed)
			},
		}
	}})
	require.Equal(t, 3, n, "the claim, the mover's start and its stop: each was broken in four ways")
}
