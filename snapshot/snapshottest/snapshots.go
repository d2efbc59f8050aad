package snapshottest

import (
	"context"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// boundFinalizer is the one that the real snapshot controller uses.
const boundFinalizer = "snapshot.storage.kubernetes.io/volumesnapshot-bound-protection"

func (d *Driver) stepSnapshots(ctx context.Context) error {
	var classes snapshotv1.VolumeSnapshotClassList
	if err := d.client.List(ctx, &classes); err != nil {
		return passing(err)
	}
	var list snapshotv1.VolumeSnapshotList
	if err := d.client.List(ctx, &list); err != nil {
		return passing(err)
	}
	policies := map[string]snapshotv1.DeletionPolicy{}
	for _, c := range classes.Items {
		if c.Driver == d.o.Name {
			policies[c.Name] = c.DeletionPolicy
		}
	}
	return each(list.Items, func(vs *snapshotv1.VolumeSnapshot) error {
		policy, ours := policies[deref(vs.Spec.VolumeSnapshotClassName)]
		switch {
		case controllerutil.ContainsFinalizer(vs, boundFinalizer) && vs.DeletionTimestamp != nil:
			return d.release(ctx, vs)
		case !ours || vs.DeletionTimestamp != nil || vs.Spec.Source.PersistentVolumeClaimName == nil:
			return nil
		default:
			return d.advance(ctx, vs, policy)
		}
	})
}

// advance brings one snapshot to where its script says it is by now.
func (d *Driver) advance(ctx context.Context, vs *snapshotv1.VolumeSnapshot, policy snapshotv1.DeletionPolicy) error {
	if controllerutil.AddFinalizer(vs, boundFinalizer) {
		if err := d.client.Update(ctx, vs); err != nil {
			return err
		}
	}
	script := d.scriptOf(vs)
	elapsed := d.since(vs, "created")
	scene := script.at(elapsed)
	if !scene.bound {
		return nil
	}
	pvc, pv, err := d.source(ctx, vs)
	if err != nil {
		return err
	}
	if pv == nil {
		return d.show(ctx, vs, &snapshotv1.VolumeSnapshotStatus{Error: d.failure("the source claim is not bound to a volume of this driver")})
	}
	content, err := d.content(ctx, vs, pv, policy)
	if err != nil {
		return err
	}
	status := &snapshotv1.VolumeSnapshotStatus{BoundVolumeSnapshotContentName: &content.Name}
	ready := scene.ready
	status.ReadyToUse = &ready
	if scene.failure != "" {
		status.Error = d.failure(scene.failure)
	}
	if scene.taken {
		at := metav1.NewTime(d.o.Now().Add(scene.takenAfter - elapsed)).Rfc3339Copy()
		size := pvc.Status.Capacity[corev1.ResourceStorage]
		if script.RestoreSize != nil {
			size = *script.RestoreSize
		}
		status.CreationTime, status.RestoreSize = &at, &size
	}
	return d.show(ctx, vs, status)
}

// show writes the status, unless it says so already. The time of an error is
// not compared, so that the same error is written once.
func (d *Driver) show(ctx context.Context, vs *snapshotv1.VolumeSnapshot, status *snapshotv1.VolumeSnapshotStatus) error {
	if old := vs.Status; old != nil {
		if old.Error != nil && status.Error != nil && deref(old.Error.Message) == deref(status.Error.Message) {
			status.Error = old.Error
		}
		if apiequality.Semantic.DeepEqual(old, status) {
			return nil
		}
	}
	vs.Status = status
	return d.client.Status().Update(ctx, vs)
}

// release lets a deleted snapshot go, with its content, once its script does.
func (d *Driver) release(ctx context.Context, vs *snapshotv1.VolumeSnapshot) error {
	script := d.scriptOf(vs)
	if script.NeverDelete || d.since(vs, "deleted") < script.DeleteAfter {
		return nil
	}
	var content snapshotv1.VolumeSnapshotContent
	err := d.client.Get(ctx, client.ObjectKey{Name: contentName(vs)}, &content)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	if err == nil && content.Spec.DeletionPolicy == snapshotv1.VolumeSnapshotContentDelete {
		if err := client.IgnoreNotFound(d.client.Delete(ctx, &content)); err != nil {
			return err
		}
	}
	controllerutil.RemoveFinalizer(vs, boundFinalizer)
	return d.client.Update(ctx, vs)
}

// source is the claim and the volume; a nil volume when the claim has none of
// this driver.
func (d *Driver) source(ctx context.Context, vs *snapshotv1.VolumeSnapshot) (*corev1.PersistentVolumeClaim, *corev1.PersistentVolume, error) {
	var pvc corev1.PersistentVolumeClaim
	var pv corev1.PersistentVolume
	err := d.client.Get(ctx, client.ObjectKey{Namespace: vs.Namespace, Name: *vs.Spec.Source.PersistentVolumeClaimName}, &pvc)
	if apierrors.IsNotFound(err) || err == nil && pvc.Spec.VolumeName == "" {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	if err := d.client.Get(ctx, client.ObjectKey{Name: pvc.Spec.VolumeName}, &pv); err != nil {
		return nil, nil, err
	}
	if pv.Spec.CSI == nil || pv.Spec.CSI.Driver != d.o.Name {
		return nil, nil, nil
	}
	return &pvc, &pv, nil
}

func contentName(vs *snapshotv1.VolumeSnapshot) string { return "snapcontent-" + idOf(vs) }

// content returns the snapshot's content, created where needed, with a handle.
func (d *Driver) content(ctx context.Context, vs *snapshotv1.VolumeSnapshot, pv *corev1.PersistentVolume,
	policy snapshotv1.DeletionPolicy) (*snapshotv1.VolumeSnapshotContent, error) {
	content := &snapshotv1.VolumeSnapshotContent{
		ObjectMeta: metav1.ObjectMeta{Name: contentName(vs)},
		Spec: snapshotv1.VolumeSnapshotContentSpec{
			VolumeSnapshotRef: corev1.ObjectReference{
				APIVersion: snapshotv1.SchemeGroupVersion.String(), Kind: "VolumeSnapshot",
				Namespace: vs.Namespace, Name: vs.Name, UID: vs.UID,
			},
			DeletionPolicy:          policy,
			Driver:                  d.o.Name,
			VolumeSnapshotClassName: vs.Spec.VolumeSnapshotClassName,
			Source:                  snapshotv1.VolumeSnapshotContentSource{VolumeHandle: &pv.Spec.CSI.VolumeHandle},
			SourceVolumeMode:        pv.Spec.VolumeMode,
		},
	}
	err := d.client.Create(ctx, content)
	if apierrors.IsAlreadyExists(err) {
		err = d.client.Get(ctx, client.ObjectKeyFromObject(content), content)
	}
	if err != nil || content.Status != nil {
		return content, err
	}
	handle := "snap-" + idOf(vs)
	content.Status = &snapshotv1.VolumeSnapshotContentStatus{SnapshotHandle: &handle}
	return content, d.client.Status().Update(ctx, content)
}

func (d *Driver) failure(text string) *snapshotv1.VolumeSnapshotError {
	at := metav1.NewTime(d.o.Now())
	return &snapshotv1.VolumeSnapshotError{Time: &at, Message: &text}
}
