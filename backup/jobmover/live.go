package jobmover

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/pvcbackup/backup"
)

// readLive reads the owner's Jobs and Pods from the API server itself. Jobs come first: a Pod that starts between the
// two lists is seen by the second.
func (m *Mover) readLive(ctx context.Context, owner backup.Owner) (jobs []batchv1.Job, pods []corev1.Pod, err error) {
	if jobs, err = m.listJobs(ctx, m.options.Reader, owner, ownerLabels(owner)); err != nil {
		return nil, nil, err
	}
	pods, err = m.listPods(ctx, m.options.Reader, owner, ownerLabels(owner))
	return jobs, pods, err
}

// liveJobs returns the names of the Jobs that may still run: what is missing here is taken for dead by the next mover,
// which removes its locks. A Job counts while it is unfinished, and one that was deleted counts while a Pod of it has
// not ended.
func liveJobs(jobs []batchv1.Job, pods []corev1.Pod) []string {
	names := map[string]bool{}
	for i := range jobs {
		if !finished(&jobs[i]) {
			names[jobs[i].Name] = true
		}
	}
	for i := range pods {
		if name := pods[i].Labels[batchv1.JobNameLabel]; name != "" && !podEnded(&pods[i]) {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// endEarlier ends the Pods of attempts before this one. They were given up, or this one would not be started; if one
// was about to succeed nevertheless, its Pod still tells so, since our finalizer keeps it.
func (m *Mover) endEarlier(ctx context.Context, task backup.Task, attempt int, pods []corev1.Pod) error {
	var errs []error
	for i := range pods {
		pod := &pods[i]
		number, err := strconv.Atoi(pod.Labels[backup.LabelAttempt])
		same := err == nil && number < attempt && taskOf(task.Owner, pod).Role == task.Role && taskOf(task.Owner, pod).Slot == task.Slot
		if !same || !podOfTask(pod, task) || podEnded(pod) || pod.DeletionTimestamp != nil {
			continue
		}
		err = m.call(ctx, func(ctx context.Context) error {
			return m.options.Client.Delete(ctx, pod, client.Preconditions{UID: &pod.UID})
		})
		errs = append(errs, gone("end pod", pod.Namespace, pod.Name, err))
	}
	return errors.Join(errs...)
}

// finished is stricter than jobOver: a Job that is about to fail may still have a Pod that runs.
func finished(job *batchv1.Job) bool {
	for _, condition := range job.Status.Conditions {
		if (condition.Type == batchv1.JobComplete || condition.Type == batchv1.JobFailed) && condition.Status == corev1.ConditionTrue {
			return true
		}
	}
	return false
}

func podEnded(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}
