package jobmover

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"example.com/pvcbackup/backup"
	"example.com/pvcbackup/reconcilekit"
)

// Stop deletes the Jobs of every attempt of the task and lets go of their Pods. Call it only once the results were
// read and recorded: they are gone afterwards. It does not wait for a node that is dead: a Pod that should have ended
// five minutes ago is no longer waited for, since nobody but an administrator can tell whether it did.
func (m *Mover) Stop(ctx context.Context, task backup.Task) (bool, error) {
	gone, err := m.stop(ctx, m.options.Client, task)
	if err != nil || !gone {
		return false, err
	}
	// The cache may not have seen yet what was just created.
	return m.stop(ctx, m.options.Reader, task)
}

func (m *Mover) stop(ctx context.Context, reader client.Reader, task backup.Task) (gone bool, err error) {
	labels := taskLabels(task)
	jobs, err := m.listJobs(ctx, reader, task.Owner, labels)
	if err != nil {
		return false, err
	}
	jobs = slices.DeleteFunc(jobs, func(job batchv1.Job) bool { return !owned(&job, task, labels) })
	pods, err := m.listPods(ctx, reader, task.Owner, labels)
	if err != nil {
		return false, err
	}
	pods = slices.DeleteFunc(pods, func(pod corev1.Pod) bool { return !podOfTask(&pod, task) })
	var errs []error
	for i := range jobs {
		errs = append(errs, m.deleteJob(ctx, &jobs[i]))
	}
	for i := range pods {
		errs = append(errs, m.letGo(ctx, &pods[i]))
		m.progress.forget(pods[i].UID)
	}
	waited := slices.ContainsFunc(pods, func(pod corev1.Pod) bool { return !m.overdue(&pod) })
	return len(jobs) == 0 && !waited, errors.Join(errs...)
}

// nodeSilence is how long after its grace period a Pod may take to go. The cluster itself gives up on a node that does
// not answer after five minutes.
const nodeSilence = 5 * time.Minute

// overdue reports whether the node has not confirmed the end of a deleted Pod for longer than a living one takes. The
// time of a deletion includes the grace period.
func (m *Mover) overdue(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp != nil && m.options.Now().Sub(pod.DeletionTimestamp.Time) > nodeSilence &&
		!controllerutil.ContainsFinalizer(pod, Finalizer)
}

// podOfTask leaves out Pods that only carry the task's labels.
func podOfTask(pod *corev1.Pod, task backup.Task) bool {
	attempt, err := strconv.Atoi(pod.Labels[backup.LabelAttempt])
	return err == nil && podOf(pod, task.Name(attempt), nil)
}

func (m *Mover) deleteJob(ctx context.Context, job *batchv1.Job) error {
	if job.DeletionTimestamp != nil {
		return nil
	}
	err := m.call(ctx, func(ctx context.Context) error {
		return m.options.Client.Delete(ctx, job, client.Preconditions{UID: &job.UID},
			client.PropagationPolicy(metav1.DeletePropagationBackground))
	})
	return gone("delete job", job.Namespace, job.Name, err)
}

// letGo removes our finalizer from a Pod. The garbage collector deletes the Pod after its Job; one that lost its Job
// has nobody else to delete it.
func (m *Mover) letGo(ctx context.Context, pod *corev1.Pod) error {
	if controllerutil.ContainsFinalizer(pod, Finalizer) {
		changed := pod.DeepCopy()
		controllerutil.RemoveFinalizer(changed, Finalizer)
		err := m.call(ctx, func(ctx context.Context) error {
			return m.options.Client.Patch(ctx, changed, client.MergeFromWithOptions(pod, client.MergeFromWithOptimisticLock{}))
		})
		if err := gone("release pod", pod.Namespace, pod.Name, err); err != nil {
			return err
		}
	}
	if metav1.GetControllerOf(pod) != nil || pod.DeletionTimestamp != nil {
		return nil
	}
	err := m.call(ctx, func(ctx context.Context) error {
		return m.options.Client.Delete(ctx, pod, client.Preconditions{UID: &pod.UID})
	})
	return gone("delete pod", pod.Namespace, pod.Name, err)
}

// gone drops the errors that say that it is gone already, or that another object has its name now: the next Stop looks
// again. A conflict of the locked patch means that the kubelet wrote in between, and the next Stop looks at that too.
func gone(what, namespace, name string, err error) error {
	if err == nil || reconcilekit.IsGone(err) || apierrors.IsConflict(err) {
		return nil
	}
	return fmt.Errorf("%s %s/%s: %w", what, namespace, name, err)
}
