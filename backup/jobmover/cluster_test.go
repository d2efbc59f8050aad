package jobmover

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"example.com/pvcbackup/backup"
	"example.com/pvcbackup/backup/contract"
	"example.com/pvcbackup/backup/movertest"
	"example.com/pvcbackup/backup/movertest/devkubelet"
	"example.com/pvcbackup/reconcilekit/kittest"
	"example.com/pvcbackup/reconcilekit/kittest/controlplane"
)

// programVariable makes this test program be the mover of a Pod: it holds the folder where its results are put.
const programVariable = "JOBMOVER_TEST_RESULTS"

const image = "mover:test"

func TestMain(m *testing.M) {
	if dir := os.Getenv(programVariable); dir != "" {
		os.Exit(beMover(dir))
	}
	log.SetLogger(zap.New(zap.WriteTo(io.Discard)))
	code := m.Run()
	if err := shared.stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// beMover tells progress until its result is put into the folder, and ends with that.
func beMover(dir string) int {
	pod := os.Getenv(contract.EnvPodName)
	file := filepath.Join(dir, pod[:strings.LastIndexByte(pod, '-')])
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for n := int64(1); ; n++ {
		fmt.Println(contract.Progress{Stage: "reading", Bytes: n}.Line())
		text, err := os.ReadFile(file)
		if err == nil {
			var result contract.Result
			if json.Unmarshal(text, &result) != nil {
				return contract.ExitUsage
			}
			return tell(result)
		}
		select {
		case <-signals:
			return tell(contract.Result{Operation: contract.OperationLookup, Outcome: contract.Failed, Reason: contract.ReasonInterrupted})
		case <-tick.C:
		}
	}
}

func tell(result contract.Result) int {
	if err := os.WriteFile(os.Getenv(contract.EnvResultFile), result.Encode(), 0o600); err != nil {
		return contract.ExitFailed
	}
	return result.ExitCode()
}

// world is a control plane, a node and what the tests need of them, shared by all.
type world struct {
	once    sync.Once
	err     error
	cluster *controlplane.Cluster
	kubelet *devkubelet.Kubelet
	dir     string
	config  *rest.Config
	live    client.WithWatch
	pods    kubernetes.Interface
	number  int
}

var shared world

func (w *world) start(t *testing.T) *world {
	t.Helper()
	w.once.Do(func() { w.err = w.begin() })
	require.NoError(t, w.err)
	return w
}

func (w *world) begin() (err error) {
	ctx := context.Background()
	// A busy machine needs more than the usual two minutes.
	if w.cluster, err = controlplane.Start(ctx, controlplane.Options{Timeout: 5 * time.Minute}); err != nil {
		return err
	}
	w.config = w.cluster.RESTConfig()
	if w.live, err = client.NewWithWatch(w.config, client.Options{Scheme: scheme.Scheme}); err != nil {
		return err
	}
	if w.pods, err = kubernetes.NewForConfig(w.config); err != nil {
		return err
	}
	if w.dir, err = os.MkdirTemp("", "jobmover-"); err != nil {
		return err
	}
	w.kubelet, err = devkubelet.Start(ctx, w.pods, devkubelet.Options{
		Dir: filepath.Join(w.dir, "kubelet"), Images: map[string][]string{image: {os.Args[0]}},
		Env: []string{programVariable + "=" + w.dir}, Retry: 20 * time.Millisecond,
	})
	return err
}

func (w *world) stop() error {
	if w.kubelet != nil {
		w.kubelet.Stop()
	}
	if w.cluster == nil {
		return nil
	}
	return errors.Join(w.cluster.Stop(), os.RemoveAll(w.dir))
}

// mover returns a new Mover with a cache of its own, as an operator has after a restart.
func (w *world) mover(t *testing.T, namespace string, change ...func(*Options)) *Mover {
	t.Helper()
	reads, err := cache.New(w.config, cache.Options{Scheme: scheme.Scheme, DefaultNamespaces: map[string]cache.Config{namespace: {}}})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = reads.Start(ctx) })
	t.Cleanup(func() { stop(); running.Wait() })
	cached, err := client.New(w.config, client.Options{Scheme: scheme.Scheme, Cache: &client.CacheOptions{Reader: reads}})
	require.NoError(t, err)
	o := Options{Client: cached, Reader: w.live, Image: image, Logs: PodLogs(w.pods.CoreV1()), LogEvery: 50 * time.Millisecond}
	for _, f := range change {
		f(&o)
	}
	return New(o)
}

func (w *world) namespace(t *testing.T, labels map[string]string) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-", Labels: labels}}
	require.NoError(t, w.live.Create(t.Context(), namespace))
	t.Cleanup(func() { require.NoError(t, client.IgnoreNotFound(w.live.Delete(context.Background(), namespace))) })
	return namespace.Name
}

// owner makes the object that runs belong to, with the key that movers refer to.
func (w *world) owner(t *testing.T, namespace string) backup.Owner {
	t.Helper()
	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "data"}}
	require.NoError(t, w.live.Create(t.Context(), owner))
	require.NoError(t, w.live.Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "key"}, StringData: map[string]string{contract.PasswordKey: "hush"},
	}))
	return backup.Owner{APIVersion: "v1", Kind: "ConfigMap", Namespace: namespace, Name: "data", UID: owner.UID}
}

// task needs no volume, so that no storage has to be provided.
func (w *world) task(owner backup.Owner) backup.Task {
	w.number++
	task := testTask()
	task.Owner, task.Slot, task.Role = owner, "slot-"+strconv.Itoa(w.number), backup.RoleLookup
	task.Request = contract.Request{Operation: contract.OperationLookup}
	task.Volumes = backup.Volumes{}
	return task
}

func (w *world) finish(t *testing.T, name string, result contract.Result) {
	t.Helper()
	text, err := json.Marshal(result)
	require.NoError(t, err)
	path := filepath.Join(w.dir, name)
	require.NoError(t, os.WriteFile(path+".new", text, 0o600))
	require.NoError(t, os.Rename(path+".new", path))
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(path)) })
}

func (w *world) podOf(t *testing.T, namespace, job string) *corev1.Pod {
	t.Helper()
	pods := &corev1.PodList{}
	require.NoError(t, w.live.List(t.Context(), pods, client.InNamespace(namespace), client.MatchingLabels{batchv1.JobNameLabel: job}))
	require.Len(t, pods.Items, 1)
	return &pods.Items[0]
}

func TestJobMoverConforms(t *testing.T) {
	w := shared.start(t)
	movertest.Run(t, func(t *testing.T) movertest.World {
		namespace := w.namespace(t, nil)
		owner := w.owner(t, namespace)
		return movertest.World{
			Mover:  func() backup.Mover { return w.mover(t, namespace) },
			Task:   func() backup.Task { return w.task(owner) },
			Finish: func(task backup.Task, attempt int, r contract.Result) { w.finish(t, task.Name(attempt), r) },
			Kill: func(task backup.Task, attempt int) {
				require.NoError(t, w.kubelet.KillPod(namespace, w.podOf(t, namespace, task.Name(attempt)).Name, syscall.SIGKILL))
			},
			Patience: time.Minute,
		}
	})
}

// untilState polls until the attempt is as wanted.
func untilState(t *testing.T, mover *Mover, task backup.Task, attempt int, wanted func(backup.MoverState) bool) backup.MoverState {
	t.Helper()
	var state backup.MoverState
	kittest.Eventually(t, time.Minute, func() error {
		var err error
		if state, err = mover.Poll(t.Context(), task, attempt); err == nil && !wanted(state) {
			err = fmt.Errorf("%+v", state)
		}
		return err
	})
	return state
}

func untilGone(t *testing.T, mover *Mover, task backup.Task) {
	t.Helper()
	kittest.Eventually(t, time.Minute, func() error {
		gone, err := mover.Stop(t.Context(), task)
		if err == nil && !gone {
			err = errors.New("something is left")
		}
		return err
	})
}

func isRunning(s backup.MoverState) bool { return s.Phase == backup.MoverRunning }
func hasEnded(s backup.MoverState) bool  { return s.Phase == backup.MoverEnded }

func TestProgressComesFromTheRunningPodsLog(t *testing.T) {
	w := shared.start(t)
	namespace := w.namespace(t, nil)
	mover, task := w.mover(t, namespace), w.task(w.owner(t, namespace))
	require.NoError(t, mover.Start(t.Context(), task, 1))
	first := untilState(t, mover, task, 1, func(s backup.MoverState) bool { return s.Progress != nil })
	untilState(t, mover, task, 1, func(s backup.MoverState) bool { return s.Progress.Bytes > first.Progress.Bytes })
	untilGone(t, mover, task)
}

func TestAPodDeletedBeforeItsResultIsReadStillTellsIt(t *testing.T) {
	w := shared.start(t)
	namespace := w.namespace(t, nil)
	mover, task := w.mover(t, namespace), w.task(w.owner(t, namespace))
	require.NoError(t, mover.Start(t.Context(), task, 1))
	untilState(t, mover, task, 1, isRunning)
	w.finish(t, task.Name(1), contract.Result{Operation: contract.OperationLookup, Outcome: contract.Succeeded})
	kittest.Eventually(t, time.Minute, func() error {
		if pod := w.podOf(t, namespace, task.Name(1)); pod.Status.Phase != corev1.PodSucceeded {
			return fmt.Errorf("the pod is %s", pod.Status.Phase)
		}
		return nil
	})
	require.NoError(t, w.live.Delete(t.Context(), w.podOf(t, namespace, task.Name(1))))
	require.True(t, untilState(t, mover, task, 1, hasEnded).Result.Good())
	untilGone(t, mover, task)
}

func TestAPodDeletedWhileItRunsIsNeverASuccess(t *testing.T) {
	w := shared.start(t)
	namespace := w.namespace(t, nil)
	mover, task := w.mover(t, namespace), w.task(w.owner(t, namespace))
	require.NoError(t, mover.Start(t.Context(), task, 1))
	untilState(t, mover, task, 1, isRunning)
	require.NoError(t, w.live.Delete(t.Context(), w.podOf(t, namespace, task.Name(1))))
	result := untilState(t, mover, task, 1, hasEnded).Result
	require.Equal(t, contract.Failed, result.Outcome)
	require.Equal(t, ReasonPodDeleted, result.Reason)
	require.True(t, result.Retry)
	untilGone(t, mover, task)
}

func TestAResultSurvivesItsJob(t *testing.T) {
	w := shared.start(t)
	namespace := w.namespace(t, nil)
	mover, task := w.mover(t, namespace), w.task(w.owner(t, namespace))
	require.NoError(t, mover.Start(t.Context(), task, 1))
	untilState(t, mover, task, 1, isRunning)
	w.finish(t, task.Name(1), contract.Result{Operation: contract.OperationLookup, Outcome: contract.Succeeded})
	untilState(t, mover, task, 1, hasEnded)
	job := theJobOf(t, w, task, 1)
	require.NoError(t, w.live.Delete(t.Context(), job, client.PropagationPolicy(metav1.DeletePropagationBackground)))
	kittest.Eventually(t, time.Minute, func() error {
		err := w.live.Get(t.Context(), client.ObjectKeyFromObject(job), job)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("the job is still there: %w", err)
	})
	require.True(t, untilState(t, mover, task, 1, hasEnded).Result.Good())
	untilGone(t, mover, task)
}

func theJobOf(t *testing.T, w *world, task backup.Task, attempt int) *batchv1.Job {
	t.Helper()
	job := &batchv1.Job{}
	require.NoError(t, w.live.Get(t.Context(), client.ObjectKey{Namespace: task.Owner.Namespace, Name: task.Name(attempt)}, job))
	return job
}

func TestRunDeadlineSaysSo(t *testing.T) {
	w := shared.start(t)
	namespace := w.namespace(t, nil)
	mover, task := w.mover(t, namespace), w.task(w.owner(t, namespace))
	task.Deadlines.Run = 2 * time.Second
	require.NoError(t, mover.Start(t.Context(), task, 1))
	result := untilState(t, mover, task, 1, hasEnded).Result
	require.Equal(t, ReasonDeadline, result.Reason)
	require.Contains(t, result.Message, "2s")
	untilGone(t, mover, task)
}

func TestWhatKeepsAMoverFromStartingIsSaid(t *testing.T) {
	w := shared.start(t)
	for name, tc := range map[string]struct {
		change         func(*backup.Task, *Options)
		reason, phrase string
	}{
		"Secret": {func(t *backup.Task, _ *Options) { t.Secrets.Password = "gone" }, ReasonSecretMissing, `Secret "gone"`},
		"key":    {func(t *backup.Task, _ *Options) { t.Secrets.PasswordKey = "other" }, ReasonSecretMissing, `no key "other"`},
		"credentials": {func(t *backup.Task, _ *Options) { t.Secrets.Credentials, t.Secrets.CredentialsOptional = "gone", false },
			ReasonSecretMissing, "store's credentials"},
		"image":    {func(_ *backup.Task, o *Options) { o.Image = "nowhere" }, ReasonImagePull, "nowhere"},
		"node":     {func(t *backup.Task, _ *Options) { t.Pod.NodeSelector = map[string]string{"no": "where"} }, ReasonUnschedulable, "0/1 nodes"},
		"no claim": {func(t *backup.Task, _ *Options) { t.Volumes.Destination = "gone" }, ReasonUnschedulable, `"gone" not found`},
	} {
		t.Run(name, func(t *testing.T) {
			namespace := w.namespace(t, nil)
			task := w.task(w.owner(t, namespace))
			mover := w.mover(t, namespace, func(o *Options) { tc.change(&task, o) })
			require.NoError(t, mover.Start(t.Context(), task, 1))
			state := untilState(t, mover, task, 1, func(s backup.MoverState) bool { return s.Reason == tc.reason })
			require.Equal(t, backup.MoverStarting, state.Phase)
			require.Contains(t, state.Message, tc.phrase)

			task.Deadlines.Start = time.Nanosecond
			state, err := mover.Poll(t.Context(), task, 1)
			require.NoError(t, err)
			require.Equal(t, tc.reason, state.Result.Reason)
			untilGone(t, mover, task)
		})
	}
}

func TestPodsPassTheSecurityStandardThatTheirPrivilegeNames(t *testing.T) {
	w := shared.start(t)
	id := int64(1000)
	settings := map[backup.Privilege]backup.PodSettings{
		backup.Restricted: {Privilege: backup.Restricted, RunAsUser: &id, RunAsGroup: &id, SupplementalGroups: []int64{5555}},
		backup.Baseline:   {Privilege: backup.Baseline},
	}
	for level, privileges := range map[string][]backup.Privilege{
		"restricted": {backup.Restricted}, "baseline": {backup.Restricted, backup.Baseline},
	} {
		namespace := w.namespace(t, map[string]string{"pod-security.kubernetes.io/enforce": level})
		awaitServiceAccount(t, w, namespace)
		for _, privilege := range privileges {
			for _, role := range []backup.Role{backup.RoleBackup, backup.RoleRestore} {
				task := testTask()
				task.Owner.Namespace, task.Role, task.Pod = namespace, role, settings[privilege]
				task.Volumes = backup.Volumes{Source: "s", Target: "t", Destination: "d"}
				require.NoError(t, w.live.Create(t.Context(), templatePod(t, task), client.DryRunAll), "%s %s in %s", privilege, role, level)
			}
		}
	}
	// And the levels are enforced: otherwise the above proves nothing.
	namespace := w.namespace(t, map[string]string{"pod-security.kubernetes.io/enforce": "restricted"})
	awaitServiceAccount(t, w, namespace)
	task := testTask()
	task.Owner.Namespace, task.Pod = namespace, settings[backup.Baseline]
	require.True(t, apierrors.IsForbidden(w.live.Create(t.Context(), templatePod(t, task), client.DryRunAll)))
}

func templatePod(t *testing.T, task backup.Task) *corev1.Pod {
	t.Helper()
	job, err := BuildJob(task, 1, Options{Image: image})
	require.NoError(t, err)
	pod := &corev1.Pod{ObjectMeta: *job.Spec.Template.ObjectMeta.DeepCopy(), Spec: job.Spec.Template.Spec}
	pod.Namespace, pod.Name = job.Namespace, job.Name
	return pod
}

// awaitServiceAccount waits for the account without which no Pod is admitted.
func awaitServiceAccount(t *testing.T, w *world, namespace string) {
	t.Helper()
	kittest.Eventually(t, time.Minute, func() error {
		return w.live.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "default"}, &corev1.ServiceAccount{})
	})
}

func TestServerKeepsTheJobAsItWasBuilt(t *testing.T) {
	w := shared.start(t)
	namespace := w.namespace(t, nil)
	owner := w.owner(t, namespace)
	task := testTask()
	task.Owner, task.Deadlines.Run = owner, time.Hour
	task.Volumes = backup.Volumes{Source: "s", Target: "t", Destination: "d"}
	built, err := BuildJob(task, 1, Options{Image: image})
	require.NoError(t, err)
	stored := built.DeepCopy()
	require.NoError(t, w.live.Create(t.Context(), stored, client.DryRunAll))
	require.Equal(t, built.Spec.Template.Finalizers, stored.Spec.Template.Finalizers)
	require.Equal(t, built.Spec.PodReplacementPolicy, stored.Spec.PodReplacementPolicy)
	require.Equal(t, built.Spec.BackoffLimit, stored.Spec.BackoffLimit)
	require.Equal(t, built.Spec.Template.Spec.ActiveDeadlineSeconds, stored.Spec.Template.Spec.ActiveDeadlineSeconds)
	require.Equal(t, built.Spec.Template.Spec.Containers[0].Env, stored.Spec.Template.Spec.Containers[0].Env)
	require.Nil(t, stored.Spec.TTLSecondsAfterFinished)
	require.Nil(t, stored.Spec.ActiveDeadlineSeconds)
}

func TestATerminatingNamespaceIsTold(t *testing.T) {
	w := shared.start(t)
	namespace := w.namespace(t, nil)
	mover, task := w.mover(t, namespace), w.task(w.owner(t, namespace))
	held := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "held", Finalizers: []string{"test.example.com/keep"}}}
	require.NoError(t, w.live.Create(t.Context(), held))
	require.NoError(t, w.live.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
	require.ErrorIs(t, mover.Start(t.Context(), task, 1), ErrNamespaceTerminating)
	require.NoError(t, w.live.Patch(t.Context(), held, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))))
}

func TestStopNeverDeletesAJobThatTookTheName(t *testing.T) {
	w := shared.start(t)
	namespace := w.namespace(t, nil)
	mover, task := w.mover(t, namespace), w.task(w.owner(t, namespace))
	require.NoError(t, mover.Start(t.Context(), task, 1))
	job := theJobOf(t, w, task, 1)
	job.UID = "another"
	require.NoError(t, mover.deleteJob(t.Context(), job))
	require.Nil(t, theJobOf(t, w, task, 1).DeletionTimestamp)
	untilGone(t, mover, task)
}
