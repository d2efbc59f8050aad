package snapshot

import (
	"context"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Ref is one object, and no later one of the same name.
type Ref struct {
	Namespace, Name string
	// UID is required: nothing is deleted by its name alone.
	UID types.UID
}

// Ref refers to what was observed.
func (o Observation) Ref() Ref { return Ref{Namespace: o.Namespace, Name: o.Name, UID: o.UID} }

// Delete deletes this owner's VolumeSnapshot, read past the cache and deleted
// only as it was read. It may be called again at any time: Absent says that it
// is gone (also when another object has its name by now), Deleting that the
// cluster is at it, which finalizers of others may prolong. A snapshot that is
// not this owner's is ErrForeign. An API that is not served is ErrNotInstalled:
// that is not a finished deletion. A conflict means to call again.
func (c *Client) Delete(ctx context.Context, ref Ref, owner Owner) (Observation, error) {
	if err := ref.Validate(owner); err != nil {
		return Observation{}, err
	}
	subject := subjectOf(ref.Namespace, ref.Name)
	var vs snapshotv1.VolumeSnapshot
	err := c.calls.GetLive(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, &vs)
	switch {
	case IsGone(err), err == nil && vs.UID != ref.UID:
		return absent(ref.Namespace, ref.Name), nil
	case err != nil:
		return Observation{}, APIError("get", subject, err)
	}
	if err := owner.Refuse(subject, &vs); err != nil {
		return Observation{}, err
	}
	o := Look(&vs)
	if o.State == Deleting {
		return o, nil
	}
	switch err := c.calls.Delete(ctx, &vs); {
	case IsGone(err):
		return absent(ref.Namespace, ref.Name), nil
	case err != nil:
		return Observation{}, APIError("delete", subject, err)
	}
	o.State = Deleting
	return o, nil
}

// Validate returns ErrInvalid unless the reference is complete and the owner usable.
func (r Ref) Validate(owner Owner) error {
	if r.Namespace == "" || r.Name == "" || r.UID == "" {
		return invalid("reference %s/%s with UID %q is incomplete; nothing is deleted by its name alone", r.Namespace, r.Name, r.UID)
	}
	return owner.Validate()
}
