package snapshot

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Claim is a bound claim of a CSI volume.
type Claim struct {
	// PVC and PV as read; not to be changed.
	PVC *corev1.PersistentVolumeClaim
	PV  *corev1.PersistentVolume
	// Driver is the volume's CSI driver and Handle its name there.
	Driver, Handle string
	// Mode is Filesystem or Block, never empty.
	Mode corev1.PersistentVolumeMode
	// Capacity is the larger of what was asked for and what there is.
	Capacity resource.Quantity
	// AccessModes are those of the claim's spec.
	AccessModes []corev1.PersistentVolumeAccessMode
	// StorageClass is the claim's; empty when it has none.
	StorageClass string
}

// ResolveClaim reads a claim and its volume; both names must be set. ErrClaimMissing and
// ErrClaimUnbound may pass (look again in 30 s); ErrClaimDeleting, ErrClaimLost
// and ErrClaimNotCSI will not.
func (c *Client) ResolveClaim(ctx context.Context, namespace, name string) (Claim, error) {
	if err := checkName("PersistentVolumeClaim", namespace, name); err != nil {
		return Claim{}, err
	}
	subject := "PersistentVolumeClaim " + namespace + "/" + name
	var pvc corev1.PersistentVolumeClaim
	err := c.calls.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &pvc)
	if IsGone(err) {
		return Claim{}, &Error{Kind: ErrClaimMissing, Subject: subject, Err: err}
	}
	if err != nil {
		return Claim{}, APIError("get", subject, err)
	}
	if err := checkClaim(subject, &pvc); err != nil {
		return Claim{}, err
	}
	var pv corev1.PersistentVolume
	err = c.calls.Get(ctx, client.ObjectKey{Name: pvc.Spec.VolumeName}, &pv)
	if IsGone(err) {
		return Claim{}, &Error{Kind: ErrClaimUnbound, Subject: subject,
			Problem: fmt.Sprintf("its PersistentVolume %q does not exist", pvc.Spec.VolumeName), Err: err}
	}
	if err != nil {
		return Claim{}, APIError("get", "PersistentVolume "+pvc.Spec.VolumeName, err)
	}
	return claimOf(subject, &pvc, &pv)
}

func checkClaim(subject string, pvc *corev1.PersistentVolumeClaim) error {
	kind, problem := (*Kind)(nil), ""
	switch {
	case pvc.DeletionTimestamp != nil:
		kind = ErrClaimDeleting
	case pvc.Status.Phase == corev1.ClaimLost:
		kind, problem = ErrClaimLost, fmt.Sprintf("the claim has lost its volume %q; restore into a new claim", pvc.Spec.VolumeName)
	case pvc.Status.Phase != corev1.ClaimBound || pvc.Spec.VolumeName == "":
		kind, problem = ErrClaimUnbound, fmt.Sprintf("the claim is not bound to a volume (phase %q)", pvc.Status.Phase)
	default:
		return nil
	}
	return &Error{Kind: kind, Subject: subject, Problem: problem}
}

func claimOf(subject string, pvc *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) (Claim, error) {
	if ref := pv.Spec.ClaimRef; ref == nil || ref.UID != pvc.UID {
		return Claim{}, &Error{Kind: ErrClaimUnbound, Subject: subject,
			Problem: fmt.Sprintf("its PersistentVolume %q is not bound to it", pv.Name)}
	}
	if pv.Spec.CSI == nil {
		return Claim{}, &Error{Kind: ErrClaimNotCSI, Subject: subject, Problem: fmt.Sprintf(
			"its PersistentVolume %q has no spec.csi, so there are no VolumeSnapshots of it; move the data to a CSI volume", pv.Name)}
	}
	claim := Claim{
		PVC: pvc, PV: pv,
		Driver: pv.Spec.CSI.Driver, Handle: pv.Spec.CSI.VolumeHandle,
		Mode:         corev1.PersistentVolumeFilesystem,
		Capacity:     pvc.Spec.Resources.Requests[corev1.ResourceStorage],
		AccessModes:  pvc.Spec.AccessModes,
		StorageClass: deref(pvc.Spec.StorageClassName),
	}
	if pvc.Spec.VolumeMode != nil {
		claim.Mode = *pvc.Spec.VolumeMode
	}
	if actual := pvc.Status.Capacity[corev1.ResourceStorage]; actual.Cmp(claim.Capacity) > 0 {
		claim.Capacity = actual
	}
	return claim, nil
}
