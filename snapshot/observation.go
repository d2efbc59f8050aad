package snapshot

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// State of a VolumeSnapshot, as far as it can be observed.
type State string

const (
	// Absent is proven: the API is served and has no such object.
	Absent State = "Absent"
	// Creating is a snapshot of no point in time yet.
	Creating State = "Creating"
	// Taken has its point in time (status.creationTime) and is not ready: what
	// is written from now on is not in it.
	Taken State = "Taken"
	// Ready is readyToUse=true and nothing less: not bound, not nil.
	Ready State = "Ready"
	// Failing shows an error and is not ready. It is advisory: CSI tries again,
	// and only a deadline ends the wait.
	Failing State = "Failing"
	// Deleting has a deletion timestamp, whatever else it says.
	Deleting State = "Deleting"
)

// Observation is what was seen of one VolumeSnapshot.
type Observation struct {
	State State
	// Namespace and Name are always set.
	Namespace, Name string
	// UID is empty when Absent.
	UID types.UID
	// Labels as they are.
	Labels map[string]string
	// Claim is the source claim's name; empty for a pre-provisioned snapshot.
	Claim string
	// Class is the VolumeSnapshotClass's name.
	Class string
	// Created is when the object was created, by the API server's clock.
	Created time.Time
	// TakenAt is the point in time of the data, by the storage's clock; zero
	// until taken.
	TakenAt time.Time
	// RestoreSize is the least size in bytes of a volume made from it; zero
	// while unknown.
	RestoreSize int64
	// ContentName is the bound VolumeSnapshotContent's; empty until bound.
	ContentName string
	// Handle and Driver name the snapshot in the storage; filled when Ready and
	// Options.Contents is set.
	Handle, Driver string
	// LastError is the error that the status shows, and LastErrorAt its time. An
	// error of a Ready snapshot is history.
	LastError   string
	LastErrorAt time.Time
}

// Age is how long ago the object was created; zero when Absent, never negative.
func (o Observation) Age(now time.Time) time.Duration {
	if o.Created.IsZero() {
		return 0
	}
	return max(0, now.Sub(o.Created))
}

// Observe reads one VolumeSnapshot. One that does not exist is Absent, without
// an error; an API that is not served is ErrNotInstalled.
func (c *Client) Observe(ctx context.Context, namespace, name string) (Observation, error) {
	if err := checkName("VolumeSnapshot", namespace, name); err != nil {
		return Observation{}, err
	}
	var vs snapshotv1.VolumeSnapshot
	err := c.calls.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &vs)
	if IsGone(err) {
		return absent(namespace, name), nil
	}
	if err != nil {
		return Observation{}, APIError("get", subjectOf(namespace, name), err)
	}
	return c.observation(ctx, &vs)
}

// List returns this owner's VolumeSnapshots in a namespace, narrowed by labels:
// the newest data first, and those not taken yet last. For a keep rule, TakenAt
// is an item's time and State == Ready what makes it good.
func (c *Client) List(ctx context.Context, namespace string, owner Owner, labels map[string]string) ([]Observation, error) {
	if err := cmp.Or(checkNamespace(namespace), owner.Validate()); err != nil {
		return nil, err
	}
	var list snapshotv1.VolumeSnapshotList
	err := c.calls.List(ctx, &list, client.InNamespace(namespace), owner.Selector(labels))
	if err != nil {
		return nil, APIError("list", "VolumeSnapshots in "+namespace, err)
	}
	out := make([]Observation, 0, len(list.Items))
	for i := range list.Items {
		out = append(out, Look(&list.Items[i]))
	}
	slices.SortFunc(out, func(a, b Observation) int {
		if d := b.TakenAt.Compare(a.TakenAt); d != 0 {
			return d
		}
		return strings.Compare(a.Name, b.Name)
	})
	return out, nil
}

func absent(namespace, name string) Observation {
	return Observation{State: Absent, Namespace: namespace, Name: name}
}

func (c *Client) observation(ctx context.Context, vs *snapshotv1.VolumeSnapshot) (Observation, error) {
	o := Look(vs)
	if !c.contents || o.State != Ready || o.ContentName == "" {
		return o, nil
	}
	var content snapshotv1.VolumeSnapshotContent
	if err := c.calls.GetLive(ctx, client.ObjectKey{Name: o.ContentName}, &content); err != nil {
		return Observation{}, APIError("get", "VolumeSnapshotContent "+o.ContentName, err)
	}
	o.Driver = content.Spec.Driver
	if content.Status != nil {
		o.Handle = deref(content.Status.SnapshotHandle)
	}
	return o, nil
}

// Look reads an Observation off an object, without Handle and Driver. Nil is Absent.
func Look(vs *snapshotv1.VolumeSnapshot) Observation {
	if vs == nil {
		return Observation{State: Absent}
	}
	o := Observation{
		State:     stateOf(vs),
		Namespace: vs.Namespace, Name: vs.Name, UID: vs.UID, Labels: vs.Labels,
		Claim:   deref(vs.Spec.Source.PersistentVolumeClaimName),
		Class:   deref(vs.Spec.VolumeSnapshotClassName),
		Created: vs.CreationTimestamp.Time,
	}
	if vs.Status == nil {
		return o
	}
	o.ContentName = deref(vs.Status.BoundVolumeSnapshotContentName)
	o.TakenAt = deref(vs.Status.CreationTime).Time
	if vs.Status.RestoreSize != nil {
		o.RestoreSize = vs.Status.RestoreSize.Value()
	}
	if e := vs.Status.Error; e != nil {
		o.LastError, o.LastErrorAt = deref(e.Message), deref(e.Time).Time
	}
	return o
}

func stateOf(vs *snapshotv1.VolumeSnapshot) State {
	status := vs.Status
	switch {
	case vs.DeletionTimestamp != nil:
		return Deleting
	case status == nil:
		return Creating
	case deref(status.ReadyToUse):
		return Ready
	case status.Error != nil:
		return Failing
	case status.CreationTime != nil:
		return Taken
	default:
		return Creating
	}
}
