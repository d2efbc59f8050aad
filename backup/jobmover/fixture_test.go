package jobmover

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.com/pvcbackup/backup"
	"example.com/pvcbackup/backup/contract"
)

var start = time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)

func testTask() backup.Task {
	return backup.Task{
		Owner: backup.Owner{APIVersion: "v1", Kind: "ConfigMap", Namespace: "ns", Name: "data", UID: "uid-1"},
		Role:  backup.RoleBackup, Slot: "20260102t030000z-scheduled", Repository: "s3://bucket/prefix",
		Request: contract.Request{Operation: contract.OperationBackup, Backup: &contract.Backup{Run: "run"}},
		Volumes: backup.Volumes{Source: "staged"},
		Secrets: backup.Secrets{Password: "key", Credentials: "creds", CredentialsOptional: true},
	}
}

func testJob(task backup.Task, attempt int) *batchv1.Job {
	job, err := BuildJob(task, attempt, Options{Image: "image"})
	if err != nil {
		panic(err)
	}
	job.UID, job.CreationTimestamp = types.UID("uid-of-"+job.Name), metav1.NewTime(start)
	return job
}

// testPod is what the Job controller makes of a Job.
func testPod(job *batchv1.Job, change ...func(*corev1.Pod)) *corev1.Pod {
	yes := true
	pod := &corev1.Pod{ObjectMeta: *job.Spec.Template.ObjectMeta.DeepCopy(), Spec: *job.Spec.Template.Spec.DeepCopy()}
	pod.Namespace, pod.Name, pod.UID = job.Namespace, job.Name+"-abcde", "uid-of-pod"
	pod.CreationTimestamp = job.CreationTimestamp
	pod.Labels[batchv1.JobNameLabel] = job.Name
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: job.Name, UID: job.UID, Controller: &yes}}
	pod.Status.Phase = corev1.PodPending
	for _, f := range change {
		f(pod)
	}
	return pod
}

func waiting(reason, message string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Spec.NodeName = "node"
		setState(pod, corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}})
	}
}

func running(pod *corev1.Pod) {
	pod.Spec.NodeName, pod.Status.Phase = "node", corev1.PodRunning
	setState(pod, corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(start.Add(time.Second))}})
}

func terminated(exit int32, reason, message string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Spec.NodeName, pod.Status.Phase = "node", corev1.PodFailed
		if exit == 0 {
			pod.Status.Phase = corev1.PodSucceeded
		}
		setState(pod, corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: exit, Reason: reason, Message: message, FinishedAt: metav1.NewTime(start.Add(time.Minute)),
		}})
	}
}

func setState(pod *corev1.Pod, state corev1.ContainerState) {
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: ContainerName, State: state}}
}

func setCondition(kind corev1.PodConditionType, status corev1.ConditionStatus, reason, message string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
			Type: kind, Status: status, Reason: reason, Message: message,
		})
	}
}

func podReason(reason, message string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Status.Reason, pod.Status.Message = reason, message }
}

func message(r contract.Result) string { return string(r.Encode()) }

func success() contract.Result {
	return contract.Result{
		Version: contract.Version, Operation: contract.OperationBackup, Outcome: contract.Succeeded, SnapshotID: "s1",
	}
}

func interrupted() contract.Result {
	return contract.Result{Operation: contract.OperationBackup, Outcome: contract.Failed, Reason: contract.ReasonInterrupted, Message: "told to stop"}
}
