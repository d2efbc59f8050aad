// Command database is an operator with a kind of its own, Database, whose claim is backed up on a schedule.
//
// +kubebuilder:object:generate=true
// +groupName=databases.example.com
// +versionName=v1
package main

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/pvcbackup/backup/scheduled"
	"example.com/pvcbackup/reconcilekit"
	"example.com/pvcbackup/snapshot"
)

// Database has a claim, an entry in a directory that is kept elsewhere, and scheduled backups.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
type Database struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   DatabaseSpec     `json:"spec"`
	Status scheduled.Status `json:"status,omitempty"`
}

// DatabaseSpec is what is wanted.
type DatabaseSpec struct {
	// storage is the size of the claim that holds the data.
	Storage resource.Quantity `json:"storage"`
	// backup says when the claim is backed up, where to, and what is kept.
	Backup scheduled.Spec `json:"backup"`
}

// DatabaseList is a list of Databases.
//
// +kubebuilder:object:root=true
type DatabaseList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Database `json:"items"`
}

var version = schema.GroupVersion{Group: "databases.example.com", Version: "v1"}

const (
	// finalizer keeps a Database until its entry is gone, which no owner reference reaches in another namespace.
	finalizer = "databases.example.com/entry"
	directory = "default"
)

// operator reconciles Databases.
type operator struct {
	client.Client
	backups *scheduled.Loop
}

// Reconcile does the operator's own work, and hands over to the backups.
func (o *operator) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	db := &Database{}
	switch err := o.Get(ctx, req.NamespacedName, db); {
	case reconcilekit.IsGone(err):
		o.backups.Forget(req.Namespace, req.Name)
		return ctrl.Result{}, nil
	case err != nil:
		return ctrl.Result{}, err
	case !db.DeletionTimestamp.IsZero():
		removeEntry := func(ctx context.Context) error { return o.remove(ctx, db.entry()) }
		if _, err := reconcilekit.Finalize(ctx, o, db, finalizer, removeEntry); err != nil {
			return ctrl.Result{}, err
		}
		return o.backups.Reconcile(ctx, db) // they have a finalizer of their own
	}
	if _, err := reconcilekit.EnsureFinalizer(ctx, o, db, finalizer); err != nil {
		return ctrl.Result{}, err
	}
	for _, child := range []client.Object{db.claim(), db.entry()} {
		if err := o.ensure(ctx, child); err != nil {
			return ctrl.Result{}, err
		}
	}
	return o.backups.Reconcile(ctx, db)
}

// ensure creates a child unless it is there.
func (o *operator) ensure(ctx context.Context, child client.Object) error {
	err := o.Get(ctx, client.ObjectKeyFromObject(child), child.DeepCopyObject().(client.Object))
	if reconcilekit.IsGone(err) {
		err = client.IgnoreAlreadyExists(o.Create(ctx, child))
	}
	return err
}

// remove deletes a child. Its name holds the owner's UID, so it is never another one's.
func (o *operator) remove(ctx context.Context, child client.Object) error {
	if err := o.Delete(ctx, child); !reconcilekit.IsGone(err) {
		return err
	}
	return nil
}

func (d *Database) claim() client.Object {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: d.Namespace, Name: d.BackupClaim(),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(d, version.WithKind("Database"))},
		},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: d.Spec.Storage},
			},
		},
	}
}

func (d *Database) entry() client.Object {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: directory, Name: snapshot.Name(d.Name, string(d.UID))},
		Data:       map[string]string{"claim": d.Namespace + "/" + d.BackupClaim()},
	}
}
