package stage

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/pvcbackup/snapshot"
)

// State of a claim, as far as it can be observed.
type State string

const (
	// Absent is proven: there is no such claim.
	Absent State = "Absent"
	// Pending waits for its volume.
	Pending State = "Pending"
	// WaitingForConsumer gets its volume once a Pod uses it, and not before: the
	// Pod may be created now.
	WaitingForConsumer State = "WaitingForConsumer"
	// Bound has its volume.
	Bound State = "Bound"
	// Lost had one.
	Lost State = "Lost"
	// Failing is Pending with an error that is shown in a condition, or with a
	// storage class that does not exist. Advisory: only a deadline ends the wait.
	Failing State = "Failing"
	// Deleting has a deletion timestamp, whatever else it says.
	Deleting State = "Deleting"
)

// selectedNode is set by the scheduler once it has chosen a node for the first
// consumer: from then on the claim waits for its volume, not for a Pod.
const selectedNode = "volume.kubernetes.io/selected-node"

// Observation is what was seen of one claim.
type Observation struct {
	State State
	// Namespace and Name are always set.
	Namespace, Name string
	// UID is empty when Absent.
	UID types.UID
	// Labels as they are.
	Labels map[string]string
	// Created is when the claim was created, by the API server's clock.
	Created time.Time
	// VolumeName is the PersistentVolume's; empty until bound.
	VolumeName string
	// StorageClass is the claim's; empty while it has none.
	StorageClass string
	// Mode is Filesystem or Block; empty when Absent.
	Mode corev1.PersistentVolumeMode
	// Capacity of the volume in bytes; zero until bound.
	Capacity int64
	// Message says what is known about a claim that has no volume yet.
	Message string
}

// Startable reports whether a Pod that uses the claim may be created: it has
// its volume, or gets it then.
func (o Observation) Startable() bool { return o.State == Bound || o.State == WaitingForConsumer }

// Age is how long ago the claim was created; zero when Absent, never negative.
func (o Observation) Age(now time.Time) time.Duration {
	if o.Created.IsZero() {
		return 0
	}
	return max(0, now.Sub(o.Created))
}

// Ref refers to what was observed.
func (o Observation) Ref() snapshot.Ref {
	return snapshot.Ref{Namespace: o.Namespace, Name: o.Name, UID: o.UID}
}

// Observe reads one claim. One that does not exist is Absent, without an error.
func (c *Client) Observe(ctx context.Context, namespace, name string) (Observation, error) {
	if namespace == "" || name == "" {
		return Observation{}, invalid("claim %q/%q: set both namespace and name", namespace, name)
	}
	var pvc corev1.PersistentVolumeClaim
	err := c.calls.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &pvc)
	if snapshot.IsGone(err) {
		return absent(namespace, name), nil
	}
	if err != nil {
		return Observation{}, snapshot.APIError("get", subjectOf(namespace, name), err)
	}
	return c.observation(ctx, &pvc)
}

// observation reads the storage class only where the state depends on it.
func (c *Client) observation(ctx context.Context, pvc *corev1.PersistentVolumeClaim) (Observation, error) {
	name := deref(pvc.Spec.StorageClassName)
	if phaseOf(pvc) != Pending || name == "" || pvc.Annotations[selectedNode] != "" {
		return Look(pvc, nil), nil
	}
	var class storagev1.StorageClass
	err := c.calls.Get(ctx, client.ObjectKey{Name: name}, &class)
	if snapshot.IsGone(err) {
		o := Look(pvc, nil)
		o.State, o.Message = Failing, fmt.Sprintf("storage class %q does not exist", name)
		return o, nil
	}
	if err != nil {
		return Observation{}, snapshot.APIError("get", "StorageClass "+name, err)
	}
	return Look(pvc, &class), nil
}

// Look reads an Observation off a claim and its storage class. Without a class
// WaitingForConsumer cannot be told from Pending. A nil claim is Absent.
func Look(pvc *corev1.PersistentVolumeClaim, class *storagev1.StorageClass) Observation {
	if pvc == nil {
		return Observation{State: Absent}
	}
	capacity := pvc.Status.Capacity[corev1.ResourceStorage]
	o := Observation{
		State:     phaseOf(pvc),
		Namespace: pvc.Namespace, Name: pvc.Name, UID: pvc.UID, Labels: pvc.Labels,
		Created:      pvc.CreationTimestamp.Time,
		VolumeName:   pvc.Spec.VolumeName,
		StorageClass: deref(pvc.Spec.StorageClassName),
		Mode:         modeOf(pvc),
		Capacity:     capacity.Value(),
	}
	if o.State != Pending {
		return o
	}
	if message, failing := failureOf(pvc); failing {
		o.State, o.Message = Failing, message
		return o
	}
	switch {
	case o.StorageClass == "":
		o.Message = "the claim has no storage class"
	case waitsForConsumer(pvc, class):
		o.State, o.Message = WaitingForConsumer, "the volume is made for the first pod that uses the claim"
	default:
		o.Message = "the volume is being made"
	}
	return o
}

func phaseOf(pvc *corev1.PersistentVolumeClaim) State {
	switch {
	case pvc.DeletionTimestamp != nil:
		return Deleting
	case pvc.Status.Phase == corev1.ClaimLost:
		return Lost
	case pvc.Status.Phase == corev1.ClaimBound && pvc.Spec.VolumeName != "":
		return Bound
	default:
		return Pending
	}
}

func waitsForConsumer(pvc *corev1.PersistentVolumeClaim, class *storagev1.StorageClass) bool {
	return class != nil && deref(class.VolumeBindingMode) == storagev1.VolumeBindingWaitForFirstConsumer &&
		pvc.Annotations[selectedNode] == "" && pvc.Spec.VolumeName == ""
}

func failureOf(pvc *corev1.PersistentVolumeClaim) (string, bool) {
	for _, c := range pvc.Status.Conditions {
		if c.Status == corev1.ConditionTrue && (strings.HasSuffix(string(c.Type), "Error") || strings.HasSuffix(string(c.Type), "Failed")) {
			return fmt.Sprintf("%s: %s", c.Type, c.Message), true
		}
	}
	return "", false
}

// Judge says whether a Pod may use the claim: nil when Startable, a
// snapshot.WaitError while there is time, ErrLost, or a snapshot.DeadlineError
// named Staged when the limit, counted from the claim's creation, is over. A
// limit of zero is none.
func Judge(o Observation, limit time.Duration, now time.Time) error {
	subject := subjectOf(o.Namespace, o.Name)
	switch {
	case o.Startable():
		return nil
	case o.State == Lost:
		return &snapshot.Error{Kind: ErrLost, Subject: subject}
	}
	wait := snapshot.Wait{Subject: subject, Prefix: "Staged", State: string(o.State), Age: o.Age(now), LastError: o.Message}
	return wait.Within(snapshot.Limit{Name: "Staged", After: limit})
}

func absent(namespace, name string) Observation {
	return Observation{State: Absent, Namespace: namespace, Name: name}
}

func subjectOf(namespace, name string) string {
	return "PersistentVolumeClaim " + namespace + "/" + name
}

func uidOf(pvc *corev1.PersistentVolumeClaim) types.UID {
	return types.UID(pvc.Labels[snapshot.OwnerUIDLabel])
}

func modeOf(pvc *corev1.PersistentVolumeClaim) corev1.PersistentVolumeMode {
	return orDefault(deref(pvc.Spec.VolumeMode), corev1.PersistentVolumeFilesystem)
}

func foreign(pvc *corev1.PersistentVolumeClaim, why string) error {
	return &snapshot.Error{Kind: snapshot.ErrForeign, Subject: subjectOf(pvc.Namespace, pvc.Name),
		Problem: why + "; delete it, or choose another name"}
}

func deref[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}
