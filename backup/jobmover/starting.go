package jobmover

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"example.com/pvcbackup/backup"
)

// starting says what a Pod whose mover never ran is waiting for.
func starting(task backup.Task, pod *corev1.Pod, waiting *corev1.ContainerStateWaiting) backup.MoverState {
	reason, message := waitingFor(task, pod, waiting)
	return backup.MoverState{Phase: backup.MoverStarting, Reason: reason, Message: message}
}

func waitingFor(task backup.Task, pod *corev1.Pod, waiting *corev1.ContainerStateWaiting) (reason, message string) {
	if scheduled := condition(pod, corev1.PodScheduled); scheduled != nil && scheduled.Status == corev1.ConditionFalse {
		return ReasonUnschedulable, fmt.Sprintf("no node takes Pod %s: %s", pod.Name, words(scheduled.Message, scheduled.Reason))
	}
	if waiting == nil {
		return ReasonPreparing, fmt.Sprintf("Pod %s was not taken up by a node yet", pod.Name)
	}
	said := words(waiting.Message, waiting.Reason)
	switch waiting.Reason {
	case "ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "RegistryUnavailable", "ImageInspectError":
		return ReasonImagePull, fmt.Sprintf("the mover's image cannot be pulled: %s; check the image's name and the pull secrets", said)
	case "CreateContainerConfigError":
		if text := missingSecret(task.Secrets, said); text != "" {
			return ReasonSecretMissing, text
		}
		return ReasonCannotStart, fmt.Sprintf("the container of Pod %s cannot be configured: %s", pod.Name, said)
	case "CreateContainerError", "RunContainerError", "PreStartHookError":
		return ReasonCannotStart, fmt.Sprintf("the container of Pod %s cannot start: %s", pod.Name, said)
	}
	if ready := condition(pod, corev1.PodReadyToStartContainers); ready == nil || ready.Status != corev1.ConditionTrue {
		return ReasonPreparing, fmt.Sprintf("node %s prepares the volumes of Pod %s (%s); if it lasts, the Pod's events say why",
			pod.Spec.NodeName, pod.Name, said)
	}
	return ReasonPreparing, fmt.Sprintf("node %s prepares the container of Pod %s (%s)", pod.Spec.NodeName, pod.Name, said)
}

// missingSecret says which Secret the kubelet did not find; empty when its words name none of the task's.
func missingSecret(s backup.Secrets, said string) string {
	switch {
	case s.Password != "" && names(said, s.Password) && strings.Contains(said, "find key"):
		return fmt.Sprintf("Secret %q has no key %q, which holds the repository's password: "+
			"put back the key that the repository was created with", s.Password, passwordKey(s))
	case s.Password != "" && names(said, s.Password):
		return fmt.Sprintf("Secret %q, which holds the repository's password, is missing: "+
			"put back the Secret that the repository was created with", s.Password)
	case s.Credentials != "" && names(said, s.Credentials):
		return fmt.Sprintf("Secret %q, which holds the store's credentials, is missing: create it", s.Credentials)
	}
	return ""
}

// names reports whether the kubelet's words name the Secret: `secret "name" not found`, or
// `couldn't find key password in Secret namespace/name`.
func names(said, secret string) bool {
	return strings.Contains(said, `"`+secret+`"`) || strings.HasSuffix(said, "/"+secret) || strings.Contains(said, "/"+secret+" ")
}

func condition(pod *corev1.Pod, kind corev1.PodConditionType) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == kind {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

func words(message, reason string) string {
	if message == "" {
		return reason
	}
	return message
}
