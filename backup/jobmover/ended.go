package jobmover

import (
	corev1 "k8s.io/api/core/v1"

	"example.com/pvcbackup/backup"
	"example.com/pvcbackup/backup/contract"
)

// ended takes the result from a Pod whose mover ended. How it ended is nil when the Pod does not tell.
func ended(task backup.Task, pod *corev1.Pod, how *corev1.ContainerStateTerminated) backup.MoverState {
	state := backup.MoverState{Phase: backup.MoverEnded}
	if how == nil {
		how = &corev1.ContainerStateTerminated{ExitCode: -1}
	}
	state.Since = how.FinishedAt.Time
	result, err := contract.DecodeResult(how.Message)
	if err != nil {
		result = withoutResult(task, pod, how, err)
	} else {
		result = checked(task, pod, how, result)
	}
	result.Operation = task.Request.Operation
	state.Result = &result
	return state
}

// checked accepts a result only where everything agrees.
func checked(task backup.Task, pod *corev1.Pod, how *corev1.ContainerStateTerminated, r contract.Result) contract.Result {
	switch {
	case r.Outcome == contract.Failed && r.Reason == contract.ReasonInterrupted:
		// The mover knows only that it was told to stop; the Pod knows why.
		if why, ok := cause(task, pod, how); ok {
			r.Reason, r.Message, r.Retry = why.Reason, why.Message, why.Retry
		}
		return r
	case r.Outcome == contract.Failed:
		return r
	case int(how.ExitCode) != r.ExitCode():
		return failed(ReasonResultWrong, true, "the mover of Pod %s reported %s and ended with exit code %d instead of %d: "+
			"what it did is not known", pod.Name, r.Outcome, how.ExitCode, r.ExitCode())
	case r.Operation != task.Request.Operation:
		return failed(ReasonResultWrong, false, "Pod %s reported on operation %.40q and was asked for %q: "+
			"use the mover image of the operator's release", pod.Name, r.Operation, task.Request.Operation)
	}
	return r
}

func withoutResult(task backup.Task, pod *corev1.Pod, how *corev1.ContainerStateTerminated, err error) contract.Result {
	if why, ok := cause(task, pod, how); ok {
		return why
	}
	if how.ExitCode < 0 {
		return failed(ReasonResultLost, true, "Pod %s ended (%s) and its node did not report how: what the mover did is not known",
			pod.Name, words(pod.Status.Message, words(pod.Status.Reason, string(pod.Status.Phase))))
	}
	return failed(ReasonResultLost, true, "Pod %s ended with exit code %d (%s) and told no result: %v",
		pod.Name, how.ExitCode, how.Reason, err)
}

// cause finds what ended a mover from outside.
func cause(task backup.Task, pod *corev1.Pod, how *corev1.ContainerStateTerminated) (contract.Result, bool) {
	disrupted := condition(pod, corev1.DisruptionTarget)
	switch {
	case pod.Status.Reason == "DeadlineExceeded":
		return failed(ReasonDeadline, false, "the mover ran longer than its deadline of %s: raise the run deadline, or give it "+
			"more CPU", task.Deadlines.Run), true
	case how.Reason == "OOMKilled":
		return failed(ReasonOutOfMemory, false, "the mover needed more memory than its limit of %s: raise the memory limit of "+
			"the mover's resources", memoryLimit(pod)), true
	case pod.Status.Reason == "Evicted":
		return failed(ReasonEvicted, true, "the node evicted Pod %s: %s", pod.Name, pod.Status.Message), true
	case disrupted != nil && disrupted.Status == corev1.ConditionTrue:
		return failed(ReasonEvicted, true, "the cluster took Pod %s from its node: %s", pod.Name,
			words(disrupted.Message, disrupted.Reason)), true
	case how.Reason == "StartError" || how.Reason == "ContainerCannotRun":
		return failed(ReasonCannotStart, false, "the mover's program cannot start: %.300s; check the mover image", how.Message), true
	case pod.DeletionTimestamp != nil:
		return failed(ReasonPodDeleted, true, "somebody deleted Pod %s while its mover ran", pod.Name), true
	}
	return contract.Result{}, false
}

func memoryLimit(pod *corev1.Pod) string {
	for _, container := range pod.Spec.Containers {
		if limit, ok := container.Resources.Limits[corev1.ResourceMemory]; ok && container.Name == ContainerName {
			return limit.String()
		}
	}
	return "none of its own, the node's memory"
}
