package stage

import (
	"fmt"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"example.com/pvcbackup/snapshot"
)

// Request is the claim from a snapshot that Ensure is to see exist.
type Request struct {
	// Namespace and Name of the new claim; required. Build the name with
	// snapshot.Name.
	Namespace, Name string
	// Owner is whose it is; its UID is required.
	Owner snapshot.Owner
	// Labels and Annotations are added on creation and never compared.
	Labels, Annotations map[string]string
	// Snapshot is what the claim is made from, once it is Ready: its Name, its
	// RestoreSize, and its Namespace when that is another one (which clusters
	// support only behind a feature gate: where it is off, that is
	// ErrSourceDropped).
	Snapshot snapshot.Observation
	// Source is the claim the snapshot was taken of: storage class, volume mode
	// and size are taken over.
	Source snapshot.Claim
	// StorageClass replaces the source's; empty keeps it.
	StorageClass string
	// AccessMode defaults to ReadWriteOnce. ReadWriteOncePod keeps every other
	// Pod away, where the driver supports it.
	AccessMode corev1.PersistentVolumeAccessMode
}

func (r Request) validate() error {
	if r.Snapshot.Name == "" {
		return invalid("the snapshot's name is empty; pass the Observation of a ready VolumeSnapshot")
	}
	if size := r.size(); size.Sign() <= 0 {
		return invalid("neither the snapshot nor the source claim has a size; pass the resolved source claim")
	}
	return validate(r.Namespace, r.Name, r.Owner)
}

// size is never less than what the snapshot needs nor than the source has:
// drivers refuse a volume smaller than either.
func (r Request) size() resource.Quantity {
	size := *resource.NewQuantity(r.Snapshot.RestoreSize, resource.BinarySI)
	if r.Source.Capacity.Cmp(size) > 0 {
		size = r.Source.Capacity
	}
	return size
}

func (r Request) build() *corev1.PersistentVolumeClaim {
	mode := orDefault(r.AccessMode, corev1.ReadWriteOnce)
	class := orDefault(r.StorageClass, r.Source.StorageClass)
	pvc := newClaim(r.Namespace, r.Name, r.size(), class, orDefault(r.Source.Mode, corev1.PersistentVolumeFilesystem),
		[]corev1.PersistentVolumeAccessMode{mode})
	pvc.Spec.DataSourceRef = r.dataSource()
	mark(pvc, r.Owner, PurposeStage, r.Labels, r.Annotations)
	return pvc
}

// dataSource uses dataSourceRef: the older dataSource is silently removed by
// the server when it does not know the kind.
func (r Request) dataSource() *corev1.TypedObjectReference {
	group := snapshotv1.GroupName
	ref := &corev1.TypedObjectReference{APIGroup: &group, Kind: "VolumeSnapshot", Name: r.Snapshot.Name}
	if ns := r.Snapshot.Namespace; ns != "" && ns != r.Namespace {
		ref.Namespace = &ns
	}
	return ref
}

// EmptyRequest is the empty claim that EnsureEmpty is to see exist.
type EmptyRequest struct {
	// Namespace and Name of the new claim; required.
	Namespace, Name string
	// Owner is whose it is; its UID is required.
	Owner snapshot.Owner
	// Labels and Annotations are added on creation and never compared.
	Labels, Annotations map[string]string
	// Size is required.
	Size resource.Quantity
	// StorageClass empty takes the cluster's default class.
	StorageClass string
	// Mode defaults to Filesystem.
	Mode corev1.PersistentVolumeMode
	// AccessModes default to ReadWriteOnce.
	AccessModes []corev1.PersistentVolumeAccessMode
	// Disposable marks a claim for a rehearsal: Delete and Sweep may remove it,
	// and its volume with it. The zero value is a claim for a user, which
	// nothing here deletes.
	Disposable bool
}

func (r EmptyRequest) validate() error {
	if r.Size.Sign() <= 0 {
		return invalid("size %s of claim %s/%s is not positive; set it", r.Size.String(), r.Namespace, r.Name)
	}
	return validate(r.Namespace, r.Name, r.Owner)
}

func (r EmptyRequest) purpose() string {
	if r.Disposable {
		return PurposeStage
	}
	return PurposeTarget
}

func (r EmptyRequest) build() *corev1.PersistentVolumeClaim {
	modes := r.AccessModes
	if len(modes) == 0 {
		modes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	}
	pvc := newClaim(r.Namespace, r.Name, r.Size, r.StorageClass, orDefault(r.Mode, corev1.PersistentVolumeFilesystem), modes)
	mark(pvc, r.Owner, r.purpose(), r.Labels, r.Annotations)
	return pvc
}

func newClaim(namespace, name string, size resource.Quantity, class string, mode corev1.PersistentVolumeMode,
	access []corev1.PersistentVolumeAccessMode) *corev1.PersistentVolumeClaim {
	pvc := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: access,
			VolumeMode:  &mode,
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: size},
			},
		},
	}
	if class != "" {
		pvc.Spec.StorageClassName = &class
	}
	return pvc
}

func mark(pvc *corev1.PersistentVolumeClaim, owner snapshot.Owner, purpose string, labels, annotations map[string]string) {
	owner.Stamp(pvc, labels, annotations)
	pvc.Labels[PurposeLabel] = purpose
}

func validate(namespace, name string, owner snapshot.Owner) error {
	if namespace == "" {
		return invalid("the namespace of claim %q is empty; set it", name)
	}
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		return invalid("claim name %q is not an object name (%s); build it with snapshot.Name", name, problems[0])
	}
	return owner.Validate()
}

// checkNamespace returns ErrInvalid for no namespace, which the API takes for all of them.
func checkNamespace(namespace string) error {
	if namespace == "" {
		return invalid("the namespace is empty; set it to the owner's")
	}
	return nil
}

func invalid(format string, args ...any) error {
	return &snapshot.Error{Kind: snapshot.ErrInvalid, Problem: fmt.Sprintf(format, args...)}
}

func orDefault[T ~string](value, otherwise T) T {
	if value == "" {
		return otherwise
	}
	return value
}
