package scheduled_test

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/pvcbackup/backup"
	"example.com/pvcbackup/backup/contract"
	"example.com/pvcbackup/backup/movertest"
	"example.com/pvcbackup/backup/scheduled"
	"example.com/pvcbackup/reconcilekit/kittest"
	"example.com/pvcbackup/snapshot"
	"example.com/pvcbackup/snapshot/snapshottest"
)

// Database is a kind with scheduled backups of its claim.
type Database struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   DatabaseSpec     `json:"spec"`
	Status scheduled.Status `json:"status"`
}

// DatabaseSpec is what is wanted.
type DatabaseSpec struct {
	Backup scheduled.Spec `json:"backup"`
}

func (d *Database) BackupClaim() string                { return "data-" + d.Name }
func (d *Database) BackupSpec() *scheduled.Spec        { return &d.Spec.Backup }
func (d *Database) BackupStatus() *scheduled.Status    { return &d.Status }
func (d *Database) GetConditions() []metav1.Condition  { return d.Status.Conditions }
func (d *Database) SetConditions(c []metav1.Condition) { d.Status.Conditions = c }
func (d *Database) GetObservedGeneration() int64       { return d.Status.ObservedGeneration }
func (d *Database) SetObservedGeneration(g int64)      { d.Status.ObservedGeneration = g }

// DeepCopyObject is what controller-gen writes.
func (d *Database) DeepCopyObject() runtime.Object {
	out := &Database{TypeMeta: d.TypeMeta, ObjectMeta: *d.ObjectMeta.DeepCopy()}
	d.Spec.Backup.DeepCopyInto(&out.Spec.Backup)
	d.Status.DeepCopyInto(&out.Status)
	return out
}

// objects are a Database and its claim.
func objects() []client.Object {
	class := snapshottest.StorageClass
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "data-orders"},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &class,
			Resources:        corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
	db := &Database{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "orders", UID: "5f3a", Generation: 1, CreationTimestamp: metav1.Now()}}
	db.Spec.Backup = scheduled.Spec{
		Schedule: "0 3 * * *", Storage: &scheduled.Storage{URL: "s3://bucket"},
		Encryption: &scheduled.Encryption{PasswordSecretRef: &scheduled.SecretKeyRef{Name: "orders-key"}},
	}
	return []client.Object{claim, db}
}

// The loop does all that backups of a kind take. In an operator its result and its error are what Reconcile returns.
func Example() {
	ctx, scheme := context.Background(), runtime.NewScheme()
	scheme.AddKnownTypes(schema.GroupVersion{Group: "example.com", Version: "v1"}, &Database{})
	if err := snapshot.AddToScheme(scheme); err != nil {
		fmt.Println(err)
		return
	}
	c, mover := kittest.FakeClient(scheme, objects()...), movertest.NewScript()
	mover.Plan = func(task backup.Task, _ int) *contract.Result { // a jobmover in a cluster
		return &contract.Result{Outcome: contract.Succeeded, SnapshotID: "3fa8", RepositoryID: "r", KeyFingerprint: "k"}
	}
	storage := snapshottest.New(c, snapshottest.Options{})
	if err := storage.Install(ctx); err != nil {
		fmt.Println(err)
		return
	}
	loop, err := scheduled.New(scheduled.Options{Client: c, Live: c, Mover: mover, Stores: scheduled.Stores{ClusterID: "prod"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	db := &Database{}
	for range 20 {
		if err := storage.Step(ctx); err != nil {
			fmt.Println(err)
			return
		}
		if err := c.Get(ctx, client.ObjectKey{Namespace: "ns", Name: "orders"}, db); err != nil {
			fmt.Println(err)
			return
		}
		if _, err := loop.Reconcile(ctx, db); err != nil {
			fmt.Println(err)
			return
		}
	}
	fmt.Println(db.Status.Repository.URL, db.Status.LastSuccess.SnapshotID)
	fmt.Println(db.Status.Conditions[0].Type, db.Status.Conditions[0].Status, db.Status.Conditions[0].Reason)
	fmt.Println("next backup at", db.Status.NextBackup.UTC().Format(time.Kitchen))
	// Output:
	// s3://bucket/prod/ns/data-orders 3fa8
	// Ready True Protected
	// next backup at 3:00AM
}
