package jobmover

import (
	"fmt"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"example.com/pvcbackup/backup"
	"example.com/pvcbackup/backup/contract"
)

// Observed is what a Job and its Pod show, before any deadline is held against it.
type Observed struct {
	backup.MoverState
	// Created is when the attempt was created; zero when nothing is left of it.
	Created time.Time
	// ProgressChanged is when the progress last differed from the one before, ProgressRead is when it was last read.
	// Zero while it was never read.
	ProgressChanged time.Time
	ProgressRead    time.Time
	// Pod is the Pod that the state was taken from; nil when there is none.
	Pod *corev1.Pod
}

// Observe derives the state of an attempt from its Job and the Job's Pods. Either may be missing. It is pure.
func Observe(task backup.Task, job *batchv1.Job, pods []corev1.Pod) Observed {
	pod := choosePod(pods)
	switch {
	case job == nil && pod == nil:
		return Observed{MoverState: backup.MoverState{Phase: backup.MoverAbsent}}
	case pod == nil:
		return observeJob(job)
	}
	seen := Observed{Created: pod.CreationTimestamp.Time, Pod: pod}
	if job != nil {
		seen.Created = job.CreationTimestamp.Time
	}
	status := moverStatus(pod)
	switch {
	case status.State.Terminated != nil && tellsMore(pod, status.State.Terminated):
		seen.MoverState = backup.MoverState{Phase: backup.MoverRunning, Since: status.State.Terminated.StartedAt.Time}
	case status.State.Terminated != nil:
		// The container's end counts, not the Pod's phase: a container that a service mesh adds may run on.
		seen.MoverState = ended(task, pod, status.State.Terminated)
	case pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded:
		seen.MoverState = ended(task, pod, nil)
	case status.State.Running != nil:
		seen.MoverState = backup.MoverState{Phase: backup.MoverRunning, Since: status.State.Running.StartedAt.Time}
	default:
		seen.MoverState = starting(task, pod, status.State.Waiting)
		seen.Since = seen.Created
	}
	return seen
}

// choosePod prefers a Pod that ended well, then the newest. A Job of ours has one Pod unless somebody meddles.
func choosePod(pods []corev1.Pod) *corev1.Pod {
	var chosen *corev1.Pod
	for i := range pods {
		pod := &pods[i]
		switch {
		case chosen == nil, pod.Status.Phase == corev1.PodSucceeded:
			chosen = pod
		case chosen.Status.Phase != corev1.PodSucceeded && chosen.CreationTimestamp.Before(&pod.CreationTimestamp):
			chosen = pod
		}
	}
	return chosen
}

// tellsMore reports whether the Pod's end, which its node is about to report, may say more about how the mover ended
// than the container's does: it was killed or told to stop, and only the Pod's status says why.
func tellsMore(pod *corev1.Pod, how *corev1.ContainerStateTerminated) bool {
	result, err := contract.DecodeResult(how.Message)
	if podEnded(pod) || err == nil && result.Reason != contract.ReasonInterrupted {
		return false
	}
	for _, status := range pod.Status.ContainerStatuses {
		if status.State.Terminated == nil {
			return false // what somebody added to the Pod keeps it from ending
		}
	}
	return true
}

func moverStatus(pod *corev1.Pod) corev1.ContainerStatus {
	for _, status := range pod.Status.ContainerStatuses {
		if status.Name == ContainerName {
			return status
		}
	}
	return corev1.ContainerStatus{}
}

// observeJob is about a Job without a Pod: not yet, or no longer.
func observeJob(job *batchv1.Job) Observed {
	seen := Observed{Created: job.CreationTimestamp.Time}
	if why, at, over := jobOver(job); over {
		result := failed(ReasonResultLost, true, "the mover's Pod is gone and its result was not read%s", why)
		seen.MoverState = backup.MoverState{Phase: backup.MoverEnded, Since: at, Result: &result}
		return seen
	}
	seen.MoverState = backup.MoverState{
		Phase: backup.MoverStarting, Since: seen.Created, Reason: ReasonNoPod,
		Message: fmt.Sprintf("job %s has no Pod yet: a quota or the namespace's Pod Security level may refuse it, "+
			"the Job's events say so", job.Name),
	}
	return seen
}

func jobOver(job *batchv1.Job) (why string, at time.Time, over bool) {
	for _, condition := range job.Status.Conditions {
		switch condition.Type {
		case batchv1.JobComplete, batchv1.JobFailed, batchv1.JobFailureTarget, batchv1.JobSuccessCriteriaMet:
			if condition.Status == corev1.ConditionTrue {
				return strings.TrimRight(": the Job says "+condition.Reason+" "+condition.Message, " "), condition.LastTransitionTime.Time, true
			}
		}
	}
	return "", job.CreationTimestamp.Time, job.Status.Failed > 0 || job.Status.Succeeded > 0
}

func failed(reason string, retry bool, format string, args ...any) contract.Result {
	return contract.Result{
		Version: contract.Version, Outcome: contract.Failed, Reason: reason, Retry: retry, Message: fmt.Sprintf(format, args...),
	}
}
