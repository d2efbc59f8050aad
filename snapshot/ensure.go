package snapshot

import (
	"context"
	"fmt"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"example.com/pvcbackup/snapshot/internal/kube"
)

// Request is the VolumeSnapshot that Ensure is to see exist.
type Request struct {
	// Namespace and Name of the VolumeSnapshot; required. The name must be the
	// same each time the same snapshot is meant: build it with Name.
	Namespace, Name string
	// Claim is the name of the claim to take it of; required.
	Claim string
	// Class is the name of the VolumeSnapshotClass; required, see ChooseClass.
	Class string
	// Owner is whose it is; its UID is required.
	Owner Owner
	// Labels and Annotations are added on creation and never compared.
	Labels, Annotations map[string]string
}

// Ensure creates the VolumeSnapshot once, or finds the one of that name and
// verifies it. It never updates one. One that is not this owner's, or is of
// another source, is ErrForeign; one whose class was changed is ErrChanged; a
// cluster without the API is ErrNotInstalled. A snapshot that is being deleted
// is an Observation, not an error.
func (c *Client) Ensure(ctx context.Context, r Request) (Observation, error) {
	if err := r.validate(); err != nil {
		return Observation{}, err
	}
	subject := subjectOf(r.Namespace, r.Name)
	got, _, err := kube.Ensure(ctx, c.calls, r.build(), &snapshotv1.VolumeSnapshot{})
	if err != nil {
		return Observation{}, APIError("create", subject, err)
	}
	if err := r.verify(got); err != nil {
		return Observation{}, err
	}
	return c.observation(ctx, got)
}

func (r Request) validate() error {
	for _, field := range []struct{ name, value string }{
		{"namespace", r.Namespace}, {"name", r.Name}, {"claim", r.Claim}, {"class", r.Class},
	} {
		if field.value == "" {
			return invalid("the %s of the VolumeSnapshot is empty; set it", field.name)
		}
	}
	if problems := validation.IsDNS1123Subdomain(r.Name); len(problems) > 0 {
		return invalid("name %q is not an object name (%s); build it with Name", r.Name, problems[0])
	}
	return r.Owner.Validate()
}

func (r Request) build() *snapshotv1.VolumeSnapshot {
	vs := &snapshotv1.VolumeSnapshot{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: r.Name},
		Spec: snapshotv1.VolumeSnapshotSpec{
			Source:                  snapshotv1.VolumeSnapshotSource{PersistentVolumeClaimName: &r.Claim},
			VolumeSnapshotClassName: &r.Class,
		},
	}
	r.Owner.Stamp(vs, r.Labels, r.Annotations)
	return vs
}

func (r Request) verify(got *snapshotv1.VolumeSnapshot) error {
	subject := subjectOf(got.Namespace, got.Name)
	if err := r.Owner.Refuse(subject, got); err != nil {
		return err
	}
	if source := deref(got.Spec.Source.PersistentVolumeClaimName); source != r.Claim {
		return &Error{Kind: ErrForeign, Subject: subject, Problem: fmt.Sprintf(
			"spec.source.persistentVolumeClaimName is %q and not %q; delete it, or choose another name", source, r.Claim)}
	}
	if class := deref(got.Spec.VolumeSnapshotClassName); class != r.Class {
		return &Error{Kind: ErrChanged, Subject: subject, Problem: fmt.Sprintf(
			"spec.volumeSnapshotClassName is %q and not %q; delete it to have it taken anew", class, r.Class)}
	}
	return nil
}

func subjectOf(namespace, name string) string { return "VolumeSnapshot " + namespace + "/" + name }

func deref[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}
