package jobmover

import (
	"context"
	"maps"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"example.com/pvcbackup/backup"
)

// live returns the names of the owner's Jobs that may still run, from the API server itself: what is missing here is
// taken for dead by the next mover, which removes its locks. A Job counts while it is unfinished, and one that was
// deleted counts while a Pod of it has not ended.
func (m *Mover) live(ctx context.Context, owner backup.Owner) ([]string, error) {
	labels := map[string]string{backup.LabelManagedBy: backup.ManagedBy, backup.LabelOwnerUID: string(owner.UID)}
	// Jobs first: a Pod that starts between the two lists is seen by the second.
	jobs, err := m.listJobs(ctx, m.options.Reader, owner, labels)
	if err != nil {
		return nil, err
	}
	pods, err := m.listPods(ctx, m.options.Reader, owner, labels)
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for _, job := range jobs {
		if !finished(&job) {
			names[job.Name] = true
		}
	}
	for _, pod := range pods {
		if name := pod.Labels[batchv1.JobNameLabel]; name != "" && !podEnded(&pod) {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names)), nil
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
