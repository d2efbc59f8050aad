package snapshottest

import (
	"context"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The classes that Install creates.
const (
	// StorageClass binds at once and deletes its volumes.
	StorageClass = "standin"
	// StorageClassWaits binds for the first Pod.
	StorageClassWaits = "standin-waits"
	// StorageClassRetain binds at once and keeps released volumes.
	StorageClassRetain = "standin-retain"
	// SnapshotClass deletes the snapshot in the storage with its VolumeSnapshot.
	SnapshotClass = "standin"
)

// Install creates the driver's classes; those that exist stay as they are.
func (d *Driver) Install(ctx context.Context) error {
	objs := []client.Object{
		d.storageClass(StorageClass, storagev1.VolumeBindingImmediate, corev1.PersistentVolumeReclaimDelete),
		d.storageClass(StorageClassWaits, storagev1.VolumeBindingWaitForFirstConsumer, corev1.PersistentVolumeReclaimDelete),
		d.storageClass(StorageClassRetain, storagev1.VolumeBindingImmediate, corev1.PersistentVolumeReclaimRetain),
		&snapshotv1.VolumeSnapshotClass{
			ObjectMeta:     metav1.ObjectMeta{Name: SnapshotClass},
			Driver:         d.o.Name,
			DeletionPolicy: snapshotv1.VolumeSnapshotContentDelete,
		},
	}
	for _, obj := range objs {
		if err := d.client.Create(ctx, obj); client.IgnoreAlreadyExists(err) != nil {
			return err
		}
	}
	return nil
}

func (d *Driver) storageClass(name string, mode storagev1.VolumeBindingMode, policy corev1.PersistentVolumeReclaimPolicy) *storagev1.StorageClass {
	return &storagev1.StorageClass{
		ObjectMeta:        metav1.ObjectMeta{Name: name},
		Provisioner:       d.o.Name,
		VolumeBindingMode: &mode,
		ReclaimPolicy:     &policy,
	}
}
