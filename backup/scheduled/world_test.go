package scheduled

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"example.com/pvcbackup/backup"
	"example.com/pvcbackup/backup/contract"
	"example.com/pvcbackup/backup/movertest"
	"example.com/pvcbackup/reconcilekit/kittest"
	"example.com/pvcbackup/snapshot/snapshottest"
)

var api = kittest.NewAPIServer(kittest.APIServerOptions{
	Scheme: testScheme(), CRDPaths: []string{"../../operator/config/crd/bases"},
})

func TestMain(m *testing.M) {
	log.SetLogger(zap.New(zap.WriteTo(io.Discard)))
	os.Exit(api.Main(m))
}

// clock is the real time and what a test added to it, since the API server's own stamps are real.
type clock struct {
	mu     sync.Mutex
	offset time.Duration
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.offset)
}

func (c *clock) Add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offset += d
}

// world is a namespace of the real API server, with a stand-in for the CSI driver and scripted movers.
type world struct {
	t      testing.TB
	admin  client.Client
	ns     string
	clock  *clock
	script *movertest.Script
	driver *snapshottest.Driver
	// moves counts what the driver wrote.
	moves int
	// client is the loop's.
	client *kittest.FaultClient
	loop   *Loop
	events *events.FakeRecorder
	// answer says how a mover ends; nil lets it run. Unset: well.
	answer func(task backup.Task, attempt int) *contract.Result
	// refuse may refuse a call of the loop.
	refuse func(call kittest.Call) error
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := emptyWorld(t)
	w.claim()
	return w
}

func emptyWorld(t testing.TB) *world {
	t.Helper()
	cluster := api.Start(t)
	w := &world{
		t: t, admin: cluster.Client, ns: cluster.Namespace(t), clock: &clock{}, script: movertest.NewScript(),
		events: events.NewFakeRecorder(1000), answer: well,
	}
	w.script.Plan = func(task backup.Task, attempt int) *contract.Result { return w.answer(task, attempt) }
	driven := kittest.Client(cluster.Client, kittest.Rule{Verb: kittest.AnyWrite, Fault: func(_ context.Context, a kittest.Attempt) error {
		err := a.Perform()
		if err == nil {
			w.moves++
		}
		return err
	}})
	w.driver = snapshottest.New(listsIn{driven, w.ns}, snapshottest.Options{Now: w.clock.Now})
	require.NoError(t, w.driver.Install(t.Context()))
	w.client = kittest.Client(cluster.Client, kittest.Rule{Fault: func(_ context.Context, a kittest.Attempt) error {
		if w.refuse != nil {
			if err := w.refuse(a.Call); err != nil {
				return err
			}
		}
		return a.Perform()
	}})
	w.loop = w.newLoop(w.client, w.script)
	return w
}

// listsIn looks for the objects of one namespace only, and for the volumes of its claims.
type listsIn struct {
	client.Client
	ns string
}

func (l listsIn) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if err := l.Client.List(ctx, list, append(opts, client.InNamespace(l.ns))...); err != nil {
		return err
	}
	if volumes, ok := list.(*corev1.PersistentVolumeList); ok {
		volumes.Items = slices.DeleteFunc(volumes.Items, func(pv corev1.PersistentVolume) bool {
			return pv.Spec.ClaimRef == nil || pv.Spec.ClaimRef.Namespace != l.ns
		})
	}
	return nil
}

func (w *world) newLoop(c client.Client, mover Mover) *Loop {
	w.t.Helper()
	return w.made(w.options(c, mover))
}

// newLoopHeld is the loop with something that may hold its runs back.
func (w *world) newLoopHeld(hold func(context.Context, Object) error) *Loop {
	w.t.Helper()
	o := w.options(w.client, w.script)
	o.Hold = hold
	return w.made(o)
}

func (w *world) options(c client.Client, mover Mover) Options {
	return Options{
		Client: c, Live: c, Mover: mover, Stores: Stores{ClusterID: "c1"}, Recorder: w.events, Now: w.clock.Now,
		Attempts: backup.Attempts{Backoff: time.Nanosecond},
	}
}

func (w *world) made(o Options) *Loop {
	w.t.Helper()
	loop, err := New(o)
	require.NoError(w.t, err)
	return loop
}

// well is how a mover ends when all is well and the store is new.
func well(task backup.Task, _ int) *contract.Result {
	switch task.Role {
	case backup.RoleLookup:
		return &contract.Result{Outcome: contract.Succeeded, Repository: contract.RepositoryAbsent}
	case backup.RoleBackup:
		return &contract.Result{
			Outcome: contract.Succeeded, SnapshotID: "snapshot-of-" + task.Slot, SnapshotTime: task.Request.Backup.Time,
			RepositoryID: "repository-1", KeyFingerprint: "key-1", Bytes: 100, Files: 3, Added: 50,
		}
	}
	return &contract.Result{Outcome: contract.Succeeded}
}

func fails(reason string) func(backup.Task, int) *contract.Result {
	return func(task backup.Task, attempt int) *contract.Result {
		if task.Role != backup.RoleBackup {
			return well(task, attempt)
		}
		return &contract.Result{Outcome: contract.Failed, Reason: reason, Message: "it does not work"}
	}
}

// running lets backups run without an end.
func running(task backup.Task, attempt int) *contract.Result {
	if task.Role == backup.RoleBackup {
		return nil
	}
	return well(task, attempt)
}

func (w *world) claim() {
	w.t.Helper()
	require.NoError(w.t, w.admin.Create(w.t.Context(), &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "data"},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: ptr.To(snapshottest.StorageClass), AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}))
}

// farSlot is an hourly schedule whose slots are half an hour away from the present, in both directions.
func farSlot() string { return fmt.Sprintf("%d * * * *", (time.Now().UTC().Minute()+30)%60) }

// create creates an object with a password of its own. change may be nil.
func (w *world) create(change func(obj *thing)) {
	w.t.Helper()
	obj := &thing{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "b"}}
	obj.Spec.PVCName, obj.Spec.Schedule = "data", farSlot()
	obj.Spec.Storage = &Storage{URL: "s3://bucket"}
	obj.Spec.Encryption = &Encryption{PasswordSecretRef: &SecretKeyRef{Name: "mine"}}
	// Tests move the clock of the loop and not that of the API server, whose stamps would soon be too old.
	long := &metav1.Duration{Duration: 1000 * time.Hour}
	obj.Spec.Deadlines = &Deadlines{SnapshotTaken: long, SnapshotReady: long, Staged: long}
	if change != nil {
		change(obj)
	}
	require.NoError(w.t, w.admin.Create(w.t.Context(), obj))
}

// generated is an object whose key is generated.
func generated(obj *thing) { obj.Spec.Encryption = nil }

func (w *world) get() *thing {
	w.t.Helper()
	obj := &thing{}
	require.NoError(w.t, w.admin.Get(w.t.Context(), client.ObjectKey{Namespace: w.ns, Name: "b"}, obj))
	return obj
}

func (w *world) exists() bool {
	w.t.Helper()
	err := w.admin.Get(w.t.Context(), client.ObjectKey{Namespace: w.ns, Name: "b"}, &thing{})
	require.NoError(w.t, client.IgnoreNotFound(err))
	return err == nil
}

func (w *world) edit(change func(obj *thing)) {
	w.t.Helper()
	obj := w.get()
	change(obj)
	require.NoError(w.t, w.admin.Update(w.t.Context(), obj))
}

func (w *world) trigger(token string) {
	w.t.Helper()
	w.edit(func(obj *thing) { metav1.SetMetaDataAnnotation(&obj.ObjectMeta, AnnotationTrigger, token) })
}

// reconcile is one reconcile, as the thin reconciler of any kind makes it.
func (w *world) reconcile(ctx context.Context) (ctrl.Result, error) {
	return reconcileWith(ctx, w.client, w.loop, w.ns)
}

func reconcileWith(ctx context.Context, c client.Client, loop *Loop, ns string) (ctrl.Result, error) {
	obj := &thing{}
	if err := c.Get(ctx, client.ObjectKey{Namespace: ns, Name: "b"}, obj); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	return loop.Reconcile(ctx, obj)
}

// step moves the rest of the world.
func (w *world) step(ctx context.Context) (moved bool, err error) {
	before := w.moves
	err = w.driver.Step(ctx)
	return w.moves > before, err
}

// settle reconciles until nothing moves, and returns the object.
func (w *world) settle() *thing {
	w.t.Helper()
	kittest.Converge(w.t, w.client, w.reconcile, kittest.ConvergeOptions{Between: w.step, Timeout: 2 * time.Minute})
	if !w.exists() {
		return nil
	}
	obj := w.get()
	kittest.CheckStatus(w.t, obj, kittest.Contract{})
	return obj
}

// toNextSlot moves the clock to a little after the next slot.
func (w *world) toNextSlot() {
	w.t.Helper()
	w.clock.Add(w.get().Status.NextBackup.Sub(w.clock.Now()) + 2*time.Second)
}

// starts are the movers of a role that were started, each once.
func (w *world) starts(role backup.Role) (slots []string) {
	seen := map[string]bool{}
	for _, call := range w.script.Calls() {
		if name := fmt.Sprintf("%s/%d", call.Task.Slot, call.Attempt); call.Operation == movertest.Start && call.Task.Role == role && !seen[name] {
			seen[name] = true
			slots = append(slots, name)
		}
	}
	return slots
}

func (w *world) snapshots() []snapshotv1.VolumeSnapshot {
	w.t.Helper()
	var list snapshotv1.VolumeSnapshotList
	require.NoError(w.t, w.admin.List(w.t.Context(), &list, client.InNamespace(w.ns)))
	return list.Items
}

// claims are those beside the one that is backed up.
func (w *world) claims() (names []string) {
	w.t.Helper()
	var list corev1.PersistentVolumeClaimList
	require.NoError(w.t, w.admin.List(w.t.Context(), &list, client.InNamespace(w.ns)))
	for _, c := range list.Items {
		if c.Name != "data" {
			names = append(names, c.Name)
		}
	}
	return names
}

func (w *world) secrets() []corev1.Secret {
	w.t.Helper()
	var list corev1.SecretList
	require.NoError(w.t, w.admin.List(w.t.Context(), &list, client.InNamespace(w.ns)))
	return list.Items
}

// tasks are what the movers have left.
func (w *world) tasks() []backup.TaskRef {
	w.t.Helper()
	tasks, err := w.script.Tasks(w.t.Context(), backup.Owner{UID: w.get().UID})
	require.NoError(w.t, err)
	return tasks
}

// tidy checks that nothing is left over but what is kept.
func (w *world) tidy(kept int) {
	w.t.Helper()
	require.Empty(w.t, w.claims())
	require.Empty(w.t, w.tasks())
	require.Len(w.t, w.snapshots(), kept)
}

func (w *world) condition(conditionType string) metav1.Condition {
	w.t.Helper()
	c := meta.FindStatusCondition(w.get().Status.Conditions, conditionType)
	if c == nil {
		return metav1.Condition{}
	}
	return *c
}

// count counts the loop's calls like this.
func (w *world) count(verb, kind, subresource string) (n int) {
	for _, call := range w.client.Calls() {
		if call.Verb == verb && call.Kind == kind && call.Subresource == subresource {
			n++
		}
	}
	return n
}

// told are the reasons of the events so far.
func (w *world) told() (reasons []string) {
	for {
		select {
		case event := <-w.events.Events:
			reasons = append(reasons, strings.Fields(event)[1])
		default:
			return reasons
		}
	}
}
