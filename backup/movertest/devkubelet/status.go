package devkubelet

import (
	"encoding/json"
	"errors"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// podStatus is the part of a Pod's status that a kubelet writes.
type podStatus struct {
	uid    types.UID
	status corev1.PodStatus
}

func hasEnded(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// ranBefore reports whether a process of the Pod was started, which must then have ended with its kubelet.
func ranBefore(pod *corev1.Pod) bool {
	for _, status := range pod.Status.ContainerStatuses {
		if status.State.Running != nil || status.State.Terminated != nil || status.LastTerminationState.Terminated != nil {
			return true
		}
	}
	return pod.Status.Phase == corev1.PodRunning
}

func newPodStatus(pod *corev1.Pod) *podStatus {
	s := &podStatus{uid: pod.UID, status: corev1.PodStatus{Phase: corev1.PodPending}}
	s.status.StartTime = pod.Status.StartTime
	s.status.ContainerStatuses = append([]corev1.ContainerStatus(nil), pod.Status.ContainerStatuses...)
	for _, container := range pod.Spec.Containers {
		if s.container(container.Name) == nil {
			s.status.ContainerStatuses = append(s.status.ContainerStatuses, corev1.ContainerStatus{
				Name: container.Name, Image: container.Image,
				State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}},
			})
		}
	}
	return s
}

func (s *podStatus) container(name string) *corev1.ContainerStatus {
	for i := range s.status.ContainerStatuses {
		if s.status.ContainerStatuses[i].Name == name {
			return &s.status.ContainerStatuses[i]
		}
	}
	return nil
}

// patch is the strategic merge patch that writes the status, and applies to no other Pod of the name. Conditions of
// others stay.
func (s *podStatus) patch() []byte {
	text, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": s.uid}, "status": s.status})
	if err != nil {
		panic(err) // plain data always encodes
	}
	return text
}

func (s *podStatus) set(kind corev1.PodConditionType, yes bool, reason string) {
	want := corev1.PodCondition{Type: kind, Status: corev1.ConditionFalse, Reason: reason, LastTransitionTime: metav1.Now()}
	if yes {
		want.Status = corev1.ConditionTrue
	}
	for i := range s.status.Conditions {
		condition := &s.status.Conditions[i]
		if condition.Type != kind {
			continue
		}
		if condition.Status == want.Status {
			want.LastTransitionTime = condition.LastTransitionTime
		}
		*condition = want
		return
	}
	s.status.Conditions = append(s.status.Conditions, want)
}

func (s *podStatus) ready(yes bool, reason string) {
	s.set(corev1.ContainersReady, yes, reason)
	s.set(corev1.PodReady, yes, reason)
}

// creating: the node took the Pod up.
func (s *podStatus) creating() {
	now := metav1.Now()
	s.status.StartTime = &now
	s.status.HostIP = localhost
	s.status.HostIPs = []corev1.HostIP{{IP: localhost}}
	s.set(corev1.PodReadyToStartContainers, false, "")
	s.set(corev1.PodInitialized, true, "")
	s.ready(false, "ContainersNotReady")
}

// sandboxReady: volumes are there.
func (s *podStatus) sandboxReady() {
	s.status.PodIP = localhost
	s.status.PodIPs = []corev1.PodIP{{IP: localhost}}
	s.set(corev1.PodReadyToStartContainers, true, "")
	s.waitAll("ContainerCreating", "")
}

func (s *podStatus) waitAll(reason, message string) {
	for i := range s.status.ContainerStatuses {
		s.wait(s.status.ContainerStatuses[i].Name, reason, message)
	}
}

func (s *podStatus) wait(container, reason, message string) {
	s.container(container).State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
}

func (s *podStatus) running(container string, since metav1.Time) {
	c, yes := s.container(container), true
	c.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: since}}
	c.Ready, c.Started = true, &yes
	s.status.Phase = corev1.PodRunning
	all := true
	for _, other := range s.status.ContainerStatuses {
		all = all && other.Ready
	}
	if all {
		s.ready(true, "")
	}
}

// terminated: the process ended, for good or to be started again. The Pod's end is told with its last container's.
func (s *podStatus) terminated(container string, end corev1.ContainerStateTerminated, again bool, why error) {
	c, no := s.container(container), false
	c.Ready, c.Started = false, &no
	s.ready(false, "ContainersNotReady")
	if !again {
		c.State = corev1.ContainerState{Terminated: &end}
		for _, other := range s.status.ContainerStatuses {
			if other.State.Terminated == nil {
				return
			}
		}
		s.finish(why)
		return
	}
	c.RestartCount++
	c.LastTerminationState = corev1.ContainerState{Terminated: &end}
	s.wait(container, "CrashLoopBackOff", "the container ended and is started again")
}

// finish: no container runs any more, and none will.
func (s *podStatus) finish(why error) {
	if s.status.Phase == corev1.PodFailed || s.status.Phase == corev1.PodSucceeded {
		return // said before
	}
	s.status.Phase = corev1.PodSucceeded
	for _, c := range s.status.ContainerStatuses {
		if c.State.Terminated == nil || c.State.Terminated.ExitCode != 0 {
			s.status.Phase = corev1.PodFailed
		}
	}
	reason := "PodCompleted"
	if s.status.Phase == corev1.PodFailed {
		reason = "PodFailed"
	}
	s.ready(false, reason)
	if errors.Is(why, errDeadline) {
		s.status.Phase, s.status.Reason = corev1.PodFailed, "DeadlineExceeded"
		s.status.Message = "Pod was active on the node longer than the specified deadline"
	}
}

// lost: the Pod ran under a kubelet that is no more.
func (s *podStatus) lost() {
	for i := range s.status.ContainerStatuses {
		c, no := &s.status.ContainerStatuses[i], false
		c.Ready, c.Started = false, &no
		if c.State.Terminated == nil {
			c.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
				ExitCode: 137, Reason: "ContainerStatusUnknown", FinishedAt: metav1.Now(),
				Message: "The container could not be located when the pod was terminated",
			}}
		}
	}
	s.finish(nil)
}

func (s *podStatus) refuse(message string) {
	s.status.Phase, s.status.Reason, s.status.Message = corev1.PodFailed, "Unsupported", message
	s.ready(false, "PodFailed")
}
