package snapshottest

import (
	"context"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

const (
	claimProtection  = "kubernetes.io/pvc-protection"
	volumeProtection = "kubernetes.io/pv-protection"
	selectedNode     = "volume.kubernetes.io/selected-node"
)

func (d *Driver) stepClaims(ctx context.Context) error {
	var classes storagev1.StorageClassList
	var list corev1.PersistentVolumeClaimList
	var pods corev1.PodList
	for _, l := range []client.ObjectList{&classes, &list, &pods} {
		if err := d.client.List(ctx, l); err != nil {
			return err
		}
	}
	ours := map[string]*storagev1.StorageClass{}
	for i, c := range classes.Items {
		if c.Provisioner == d.o.Name {
			ours[c.Name] = &classes.Items[i]
		}
	}
	return each(list.Items, func(pvc *corev1.PersistentVolumeClaim) error {
		class := ours[deref(pvc.Spec.StorageClassName)]
		used := usedBy(pods.Items, pvc)
		switch {
		case class == nil:
			return nil
		case pvc.DeletionTimestamp != nil:
			if used || !controllerutil.RemoveFinalizer(pvc, claimProtection) {
				return nil
			}
			return d.client.Update(ctx, pvc)
		case pvc.Status.Phase == corev1.ClaimBound:
			return nil
		case waits(class) && !used && pvc.Annotations[selectedNode] == "":
			return nil
		default:
			return d.provision(ctx, pvc, class)
		}
	})
}

func waits(class *storagev1.StorageClass) bool {
	return deref(class.VolumeBindingMode) == storagev1.VolumeBindingWaitForFirstConsumer
}

func usedBy(pods []corev1.Pod, pvc *corev1.PersistentVolumeClaim) bool {
	for _, pod := range pods {
		if pod.Namespace != pvc.Namespace || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
			continue
		}
		for _, v := range pod.Spec.Volumes {
			if v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == pvc.Name {
				return true
			}
		}
	}
	return false
}

// provision makes and binds a volume, once the data source is ready.
func (d *Driver) provision(ctx context.Context, pvc *corev1.PersistentVolumeClaim, class *storagev1.StorageClass) error {
	if ok, err := d.sourceReady(ctx, pvc); !ok || err != nil {
		return err
	}
	pv := d.volumeFor(pvc, class)
	if err := d.client.Create(ctx, pv); client.IgnoreAlreadyExists(err) != nil {
		return err
	}
	if err := d.client.Get(ctx, client.ObjectKeyFromObject(pv), pv); err != nil {
		return err
	}
	pv.Status.Phase = corev1.VolumeBound
	if err := d.client.Status().Update(ctx, pv); err != nil {
		return err
	}
	if pvc.Spec.VolumeName == "" {
		pvc.Spec.VolumeName = pv.Name
		if err := d.client.Update(ctx, pvc); err != nil {
			return err
		}
	}
	pvc.Status.Phase = corev1.ClaimBound
	pvc.Status.Capacity = pv.Spec.Capacity
	pvc.Status.AccessModes = pvc.Spec.AccessModes
	return d.client.Status().Update(ctx, pvc)
}

// sourceReady is false for as long as the real provisioner would not begin:
// also for a kind of source that somebody else populates.
func (d *Driver) sourceReady(ctx context.Context, pvc *corev1.PersistentVolumeClaim) (bool, error) {
	ref := pvc.Spec.DataSourceRef
	if ref == nil {
		return true, nil
	}
	if ref.Kind != "VolumeSnapshot" || deref(ref.APIGroup) != snapshotv1.GroupName {
		return false, nil
	}
	var vs snapshotv1.VolumeSnapshot
	if err := d.client.Get(ctx, client.ObjectKey{Namespace: pvc.Namespace, Name: ref.Name}, &vs); err != nil {
		return false, err
	}
	return vs.DeletionTimestamp == nil && vs.Status != nil && deref(vs.Status.ReadyToUse), nil
}

func (d *Driver) volumeFor(pvc *corev1.PersistentVolumeClaim, class *storagev1.StorageClass) *corev1.PersistentVolume {
	policy := corev1.PersistentVolumeReclaimDelete
	if class.ReclaimPolicy != nil {
		policy = *class.ReclaimPolicy
	}
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pvc-" + idOf(pvc)},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:    corev1.ResourceList{corev1.ResourceStorage: pvc.Spec.Resources.Requests[corev1.ResourceStorage]},
			AccessModes: pvc.Spec.AccessModes,
			VolumeMode:  pvc.Spec.VolumeMode,
			ClaimRef: &corev1.ObjectReference{
				APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: pvc.Namespace, Name: pvc.Name, UID: pvc.UID,
			},
			StorageClassName:              class.Name,
			PersistentVolumeReclaimPolicy: policy,
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				CSI: &corev1.CSIPersistentVolumeSource{Driver: d.o.Name, VolumeHandle: "vol-" + idOf(pvc)},
			},
		},
	}
}

// stepVolumes releases the volumes whose claims are gone, and deletes those
// that are to be deleted then.
func (d *Driver) stepVolumes(ctx context.Context) error {
	var list corev1.PersistentVolumeList
	if err := d.client.List(ctx, &list); err != nil {
		return err
	}
	return each(list.Items, func(pv *corev1.PersistentVolume) error {
		if pv.Spec.CSI == nil || pv.Spec.CSI.Driver != d.o.Name || pv.Spec.ClaimRef == nil {
			return nil
		}
		if pv.DeletionTimestamp != nil {
			if !controllerutil.RemoveFinalizer(pv, volumeProtection) {
				return nil
			}
			return d.client.Update(ctx, pv)
		}
		ref := pv.Spec.ClaimRef
		var pvc corev1.PersistentVolumeClaim
		err := d.client.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, &pvc)
		switch {
		case client.IgnoreNotFound(err) != nil:
			return err
		case err == nil && pvc.UID == ref.UID:
			return nil
		case pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete:
			return d.client.Delete(ctx, pv)
		case pv.Status.Phase != corev1.VolumeReleased:
			pv.Status.Phase = corev1.VolumeReleased
			return d.client.Status().Update(ctx, pv)
		default:
			return nil
		}
	})
}
