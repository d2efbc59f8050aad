package main

import (
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"

	"example.com/pvcbackup/backup/scheduled"
	"example.com/pvcbackup/snapshot"
)

// What the backups need to know of a kind.

func (d *Database) BackupClaim() string                { return snapshot.Name(d.Name, string(d.UID)) }
func (d *Database) BackupSpec() *scheduled.Spec        { return &d.Spec.Backup }
func (d *Database) BackupStatus() *scheduled.Status    { return &d.Status }
func (d *Database) GetConditions() []metav1.Condition  { return d.Status.Conditions }
func (d *Database) SetConditions(c []metav1.Condition) { d.Status.Conditions = c }
func (d *Database) GetObservedGeneration() int64       { return d.Status.ObservedGeneration }
func (d *Database) SetObservedGeneration(g int64)      { d.Status.ObservedGeneration = g }

// setUp adds the operator to a manager. The mover is a jobmover in a cluster, and can be anything else.
func setUp(mgr ctrl.Manager, mover scheduled.Mover) error {
	backups, err := scheduled.New(scheduled.Options{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Mover: mover,
		Stores:     scheduled.Stores{ClusterID: "my-cluster"}, // begins the path of every repository
		Controller: "database", Recorder: mgr.GetEventRecorder("database"),
	})
	if err != nil {
		return err
	}
	// Whatever a run waits for tells its owner.
	return ctrl.NewControllerManagedBy(mgr).For(&Database{}).
		Owns(&batchv1.Job{}, builder.MatchEveryOwner).
		Owns(&corev1.PersistentVolumeClaim{}, builder.MatchEveryOwner).
		Owns(&snapshotv1.VolumeSnapshot{}, builder.MatchEveryOwner).
		Complete(&operator{Client: mgr.GetClient(), backups: backups})
}
