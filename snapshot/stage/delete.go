package stage

import (
	"cmp"
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/pvcbackup/snapshot"
)

// Delete deletes this owner's staged claim, read past the cache and deleted
// only as it was read; before that its volume's reclaim policy is set to
// Delete. It may be called again at any time: Absent says that the claim is
// gone (also when another one has its name by now), Deleting that the cluster
// is at it. A claim that is not this owner's, or that was made for a user, is
// ErrForeign. A conflict means to call again.
func (c *Client) Delete(ctx context.Context, ref snapshot.Ref, owner snapshot.Owner) (Observation, error) {
	if err := ref.Validate(owner); err != nil {
		return Observation{}, err
	}
	subject := subjectOf(ref.Namespace, ref.Name)
	var pvc corev1.PersistentVolumeClaim
	err := c.calls.GetLive(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, &pvc)
	switch {
	case snapshot.IsGone(err), err == nil && pvc.UID != ref.UID:
		return absent(ref.Namespace, ref.Name), nil
	case err != nil:
		return Observation{}, snapshot.APIError("get", subject, err)
	}
	if err := owner.Refuse(subject, &pvc); err != nil {
		return Observation{}, err
	}
	if pvc.Labels[PurposeLabel] != PurposeStage {
		return Observation{}, foreign(&pvc, "it was made for a user and not for a run")
	}
	if err := c.reclaim(ctx, &pvc); err != nil {
		return Observation{}, err
	}
	o := Look(&pvc, nil)
	if o.State == Deleting {
		return o, nil
	}
	switch err := c.calls.Delete(ctx, &pvc); {
	case snapshot.IsGone(err):
		return absent(ref.Namespace, ref.Name), nil
	case err != nil:
		return Observation{}, snapshot.APIError("delete", subject, err)
	}
	o.State = Deleting
	return o, nil
}

// Leftover is one object that Sweep found.
type Leftover struct {
	// Kind is PersistentVolumeClaim or VolumeSnapshot.
	Kind            string
	Namespace, Name string
	UID             types.UID
	Labels          map[string]string
	// Created is when it was created, by the API server's clock.
	Created time.Time
	// State as in the Observation of its kind.
	State string
}

// Swept is what a Sweep did.
type Swept struct {
	// Kept are those that keep wanted.
	Kept []Leftover
	// Deleting are those on their way out, now or before, that are still there.
	Deleting []Leftover
}

// Sweep deletes what an owner's earlier runs left in a namespace: its staged
// claims first, then its VolumeSnapshots, except those that keep (which may be
// nil: none) wants. Claims made for a user are not looked at. It goes on after
// an error and returns all of them joined; nothing kept, nothing deleting and
// no error is proof that nothing is left. Without the VolumeSnapshot API the
// claims are swept and the error is snapshot.ErrNotInstalled.
func (c *Client) Sweep(ctx context.Context, namespace string, owner snapshot.Owner, keep func(Leftover) bool) (Swept, error) {
	if err := cmp.Or(checkNamespace(namespace), owner.Validate()); err != nil {
		return Swept{}, err
	}
	var out Swept
	var errs []error
	remove := func(l Leftover, del func(snapshot.Ref) (string, error)) {
		if keep != nil && keep(l) {
			out.Kept = append(out.Kept, l)
			return
		}
		state, err := del(snapshot.Ref{Namespace: l.Namespace, Name: l.Name, UID: l.UID})
		if err != nil {
			errs = append(errs, err)
		}
		if err == nil && state != string(Absent) {
			l.State = state
			out.Deleting = append(out.Deleting, l)
		}
	}
	claims, err := c.List(ctx, namespace, owner)
	errs = append(errs, err)
	for _, o := range claims {
		remove(Leftover{"PersistentVolumeClaim", o.Namespace, o.Name, o.UID, o.Labels, o.Created, string(o.State)},
			func(ref snapshot.Ref) (string, error) {
				o, err := c.Delete(ctx, ref, owner)
				return string(o.State), err
			})
	}
	snapshots, err := c.snapshots.List(ctx, namespace, owner, nil)
	errs = append(errs, err)
	for _, o := range snapshots {
		remove(Leftover{"VolumeSnapshot", o.Namespace, o.Name, o.UID, o.Labels, o.Created, string(o.State)},
			func(ref snapshot.Ref) (string, error) {
				o, err := c.snapshots.Delete(ctx, ref, owner)
				return string(o.State), err
			})
	}
	return out, errors.Join(errs...)
}

// List returns this owner's staged claims in a namespace. Their storage classes
// are not read, so WaitingForConsumer shows as Pending.
func (c *Client) List(ctx context.Context, namespace string, owner snapshot.Owner) ([]Observation, error) {
	if err := cmp.Or(checkNamespace(namespace), owner.Validate()); err != nil {
		return nil, err
	}
	var list corev1.PersistentVolumeClaimList
	err := c.calls.List(ctx, &list, client.InNamespace(namespace), owner.Selector(map[string]string{PurposeLabel: PurposeStage}))
	if err != nil {
		return nil, snapshot.APIError("list", "PersistentVolumeClaims in "+namespace, err)
	}
	out := make([]Observation, 0, len(list.Items))
	for i := range list.Items {
		out = append(out, Look(&list.Items[i], nil))
	}
	return out, nil
}
