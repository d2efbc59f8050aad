package jobmover

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"example.com/pvcbackup/backup"
	"example.com/pvcbackup/backup/contract"
)

// cacheOf writes to the server and reads from a cache of its own, which lags.
type cacheOf struct {
	client.WithWatch
	cache client.Reader
}

func (c cacheOf) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	return c.cache.Get(ctx, key, obj, opts...)
}

func (c cacheOf) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return c.cache.List(ctx, list, opts...)
}

func newMover(live client.WithWatch, cache client.Reader) *Mover {
	return New(Options{
		Client: cacheOf{live, cache}, Reader: live, Image: "image", Now: func() time.Time { return start },
	})
}

func fakeClient(objects ...client.Object) client.WithWatch {
	return fake.NewClientBuilder().WithObjects(objects...).Build()
}

func theJob(t *testing.T, c client.Client, name string) *batchv1.Job {
	t.Helper()
	job := &batchv1.Job{}
	require.NoError(t, c.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: name}, job))
	return job
}

func TestStartTwiceMakesOneJobThoughTheCacheLags(t *testing.T) {
	live, stale := fakeClient(), fakeClient()
	mover, task := newMover(live, stale), testTask()
	require.NoError(t, mover.Start(t.Context(), task, 1))
	first := theJob(t, live, task.Name(1))
	require.NoError(t, mover.Start(t.Context(), task, 1))
	if diff := cmp.Diff(first, theJob(t, live, task.Name(1))); diff != "" {
		t.Errorf("the second start changed the job:\n%s", diff)
	}
}

func TestStartNeverAdoptsAForeignJob(t *testing.T) {
	task := testTask()
	for name, change := range map[string]func(*batchv1.Job){
		"another owner": func(j *batchv1.Job) { j.OwnerReferences[0].UID = "other" },
		"no owner":      func(j *batchv1.Job) { j.OwnerReferences = nil },
		"other labels":  func(j *batchv1.Job) { j.Labels[backup.LabelSlot] = "other" },
	} {
		for _, lags := range []bool{false, true} {
			job := testJob(task, 1)
			change(job)
			live := fakeClient(job)
			var cache client.Reader = live
			if lags {
				cache = fakeClient()
			}
			mover := newMover(live, cache)
			err := mover.Start(t.Context(), task, 1)
			require.ErrorIs(t, err, ErrForeign, name)
			var typed *Error
			require.ErrorAs(t, err, &typed)
			require.True(t, typed.Terminal())
			_, err = mover.Poll(t.Context(), task, 1)
			require.ErrorIs(t, err, ErrForeign, name)
			_, err = mover.Stop(t.Context(), task)
			require.NoError(t, err)
			theJob(t, live, task.Name(1)) // still there
		}
	}
}

func TestStartTellsWhichJobsMayStillRun(t *testing.T) {
	task := testTask()
	running1, over := testJob(task, 1), testJob(task, 2)
	over.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue}}
	orphaned := testTask()
	orphaned.Slot = "earlier"
	deletedJob := testJob(orphaned, 1)
	stranger := testTask()
	stranger.Owner.UID = "uid-2"
	live := fakeClient(running1, over, testPod(deletedJob, running), testJob(stranger, 1), testPod(over, podFailed))
	require.NoError(t, newMover(live, fakeClient()).Start(t.Context(), task, 3))

	value := variable(t, theJob(t, live, task.Name(3)).Spec.Template.Spec.Containers[0], contract.EnvRequest).Value
	request, err := contract.DecodeRequest(value)
	require.NoError(t, err)
	require.Equal(t, "uid-1", request.Locks.Owner)
	require.ElementsMatch(t, []string{running1.Name, deletedJob.Name}, request.Locks.Live)
}

func TestStartEndsEarlierAttemptsThatRunOn(t *testing.T) {
	task, otherSlot := testTask(), testTask()
	otherSlot.Slot = "another"
	given, other := testPod(testJob(task, 1), running), testPod(testJob(otherSlot, 1), running)
	live := fakeClient(testJob(task, 1), testJob(otherSlot, 1), given, other)
	require.NoError(t, newMover(live, live).Start(t.Context(), task, 2))
	for pod, ends := range map[*corev1.Pod]bool{given: true, other: false} {
		got := &corev1.Pod{}
		require.NoError(t, live.Get(t.Context(), client.ObjectKeyFromObject(pod), got))
		require.Equal(t, ends, got.DeletionTimestamp != nil, pod.Name)
		require.Equal(t, []string{Finalizer}, got.Finalizers, "its result must stay readable")
	}
}

func TestTasksListsWhatStopWouldRemove(t *testing.T) {
	task, orphaned, stranger := testTask(), testTask(), testTask()
	orphaned.Slot, orphaned.Role = "another", backup.RoleMaintain
	stranger.Owner.UID = "uid-2"
	orphan := testPod(testJob(orphaned, 3), running)
	live := fakeClient(testJob(task, 1), testJob(task, 2), orphan, testJob(stranger, 1))
	mover := newMover(live, live)
	got, err := mover.Tasks(t.Context(), task.Owner)
	require.NoError(t, err)
	want := []backup.TaskRef{{Role: backup.RoleBackup, Slot: task.Slot}, {Role: backup.RoleMaintain, Slot: "another"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestRefusedCreates(t *testing.T) {
	group := schema.GroupResource{Group: "batch", Resource: "jobs"}
	terminating := apierrors.NewForbidden(group, "x", errors.New("because it is being terminated"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	for name, tc := range map[string]struct {
		refusal  error
		is       error
		terminal bool
		reason   string
	}{
		"namespace terminating": {terminating, ErrNamespaceTerminating, true, "NamespaceTerminating"},
		"namespace gone":        {apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "ns"), ErrNamespaceTerminating, true, "NamespaceTerminating"},
		"invalid":               {apierrors.NewInvalid(schema.GroupKind{Kind: "Job"}, "x", nil), ErrInvalidTask, true, "InvalidTask"},
		"forbidden":             {apierrors.NewForbidden(group, "x", errors.New("exceeded quota")), ErrForbidden, false, "MoverForbidden"},
	} {
		t.Run(name, func(t *testing.T) {
			live := interceptor.NewClient(fakeClient(), interceptor.Funcs{
				Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
					return tc.refusal
				},
			})
			err := newMover(live, live).Start(t.Context(), testTask(), 1)
			require.ErrorIs(t, err, tc.is)
			require.ErrorIs(t, err, tc.refusal)
			var typed *Error
			require.ErrorAs(t, err, &typed)
			require.Equal(t, tc.terminal, typed.Terminal())
			require.Equal(t, tc.reason, typed.Reason())
		})
	}
}

func TestAbsentIsConfirmedByTheServer(t *testing.T) {
	task := testTask()
	live, stale := fakeClient(), fakeClient()
	mover := newMover(live, stale)
	state, err := mover.Poll(t.Context(), task, 1)
	require.NoError(t, err)
	require.Equal(t, backup.MoverState{Phase: backup.MoverAbsent}, state)

	require.NoError(t, mover.Start(t.Context(), task, 1))
	state, err = mover.Poll(t.Context(), task, 1)
	require.NoError(t, err)
	require.Equal(t, backup.MoverStarting, state.Phase)
}

func TestLostResultIsConfirmedByTheServer(t *testing.T) {
	task := testTask()
	job := testJob(task, 1)
	job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
	live := fakeClient(job, testPod(job, terminated(0, "Completed", message(success()))))
	state, err := newMover(live, fakeClient(job)).Poll(t.Context(), task, 1)
	require.NoError(t, err)
	require.True(t, state.Result.Good())

	live = fakeClient(job)
	state, err = newMover(live, live).Poll(t.Context(), task, 1)
	require.NoError(t, err)
	require.Equal(t, ReasonResultLost, state.Result.Reason)
}

func TestAPodThatOnlyCarriesTheLabelsTellsNoResult(t *testing.T) {
	task := testTask()
	job := testJob(task, 1)
	forged := testPod(job, terminated(0, "Completed", message(success())))
	forged.OwnerReferences[0].UID = "another job"
	live := fakeClient(job, forged)
	state, err := newMover(live, live).Poll(t.Context(), task, 1)
	require.NoError(t, err)
	require.Equal(t, backup.MoverStarting, state.Phase)
}

func TestStopEndsEveryAttemptAndNothingElse(t *testing.T) {
	task, otherSlot := testTask(), testTask()
	otherSlot.Slot = "another"
	one, two, other := testJob(task, 1), testJob(task, 2), testJob(otherSlot, 1)
	pod := testPod(one, running)
	live := fakeClient(one, two, other, pod)
	mover := newMover(live, live)
	gone, err := mover.Stop(t.Context(), task)
	require.NoError(t, err)
	require.False(t, gone)

	jobs := &batchv1.JobList{}
	require.NoError(t, live.List(t.Context(), jobs))
	require.Len(t, jobs.Items, 1)
	require.Equal(t, other.Name, jobs.Items[0].Name)

	gone, err = mover.Stop(t.Context(), task)
	require.NoError(t, err)
	require.False(t, gone, "the Pod is still there")
	left := &corev1.Pod{}
	require.NoError(t, live.Get(t.Context(), client.ObjectKeyFromObject(pod), left))
	require.Empty(t, left.Finalizers)

	require.NoError(t, live.Delete(t.Context(), left)) // the garbage collector
	gone, err = mover.Stop(t.Context(), task)
	require.NoError(t, err)
	require.True(t, gone)
}

func TestStopIsNotFooledByTheCache(t *testing.T) {
	task := testTask()
	live := fakeClient(testJob(task, 1))
	gone, err := newMover(live, fakeClient()).Stop(t.Context(), task)
	require.NoError(t, err)
	require.False(t, gone)
	jobs := &batchv1.JobList{}
	require.NoError(t, live.List(t.Context(), jobs))
	require.Empty(t, jobs.Items)
}

func TestStopDeletesAPodThatLostItsJob(t *testing.T) {
	task := testTask()
	orphan := testPod(testJob(task, 1), running)
	orphan.OwnerReferences = nil
	live := fakeClient(orphan)
	mover := newMover(live, live)
	_, err := mover.Stop(t.Context(), task)
	require.NoError(t, err)
	gone, err := mover.Stop(t.Context(), task)
	require.NoError(t, err)
	require.True(t, gone)
}

func TestEveryCallHasADeadline(t *testing.T) {
	task := testTask()
	job := testJob(task, 1)
	hang := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	base := fakeClient(job, testPod(job, running))
	live := interceptor.NewClient(base, interceptor.Funcs{
		Get: func(ctx context.Context, _ client.WithWatch, _ client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
			return hang(ctx)
		},
		List: func(ctx context.Context, _ client.WithWatch, _ client.ObjectList, _ ...client.ListOption) error {
			return hang(ctx)
		},
		Create: func(ctx context.Context, _ client.WithWatch, _ client.Object, _ ...client.CreateOption) error {
			return hang(ctx)
		},
		Delete: func(ctx context.Context, _ client.WithWatch, _ client.Object, _ ...client.DeleteOption) error {
			return hang(ctx)
		},
		Patch: func(ctx context.Context, _ client.WithWatch, _ client.Object, _ client.Patch, _ ...client.PatchOption) error {
			return hang(ctx)
		},
	})
	for name, do := range map[string]func(*Mover) error{
		"start": func(m *Mover) error { return m.Start(t.Context(), task, 2) },
		"poll":  func(m *Mover) error { _, err := m.Poll(t.Context(), task, 2); return err },
		"stop":  func(m *Mover) error { _, err := m.Stop(t.Context(), task); return err },
	} {
		t.Run(name, func(t *testing.T) {
			mover := New(Options{Client: cacheOf{live, base}, Reader: live, Image: "image", Timeout: 10 * time.Millisecond})
			require.ErrorIs(t, do(mover), context.DeadlineExceeded)
		})
	}
}

func TestStopWaitsForALivingNodeAndNotForADeadOne(t *testing.T) {
	for name, test := range map[string]struct {
		deleted    time.Duration
		finalizers []string
		gone       bool
	}{
		"just deleted":             {0, []string{"of/somebody"}, false},
		"deleted a while ago":      {nodeSilence + time.Second, []string{"of/somebody"}, true},
		"its result was not taken": {nodeSilence + time.Second, []string{Finalizer}, false},
	} {
		t.Run(name, func(t *testing.T) {
			task := testTask()
			now := start.Add(time.Hour)
			pod := testPod(testJob(task, 1), running)
			pod.DeletionTimestamp, pod.Finalizers = &metav1.Time{Time: now.Add(-test.deleted)}, test.finalizers
			live := fakeClient(pod)
			mover := New(Options{Client: live, Reader: live, Image: "image", Now: func() time.Time { return now }})
			gone, err := mover.Stop(t.Context(), task)
			require.NoError(t, err)
			require.Equal(t, test.gone, gone)
		})
	}
}
