package stage

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/pvcbackup/snapshot"
)

// reclaim sets the reclaim policy of a staged claim's volume to Delete: with
// Retain, every run would leave a volume behind. It touches the volume only
// when that is bound to exactly this claim, by UID, and only with a locked
// patch, so that a volume bound to another claim by then is refused by the
// server.
func (c *Client) reclaim(ctx context.Context, pvc *corev1.PersistentVolumeClaim) error {
	if pvc.Labels[PurposeLabel] != PurposeStage || pvc.Spec.VolumeName == "" {
		return nil
	}
	subject := "PersistentVolume " + pvc.Spec.VolumeName
	var pv corev1.PersistentVolume
	err := c.calls.GetLive(ctx, client.ObjectKey{Name: pvc.Spec.VolumeName}, &pv)
	if snapshot.IsGone(err) {
		return nil
	}
	if err != nil {
		return snapshot.APIError("get", subject, err)
	}
	ref := pv.Spec.ClaimRef
	if ref == nil || ref.UID != pvc.UID || pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete {
		return nil
	}
	changed := pv.DeepCopy()
	changed.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
	return snapshot.APIError("patch", subject, c.calls.PatchLocked(ctx, &pv, changed))
}
