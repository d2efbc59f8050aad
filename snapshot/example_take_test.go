package snapshot_test

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/pvcbackup/reconcilekit/kittest"
	"example.com/pvcbackup/snapshot"
	"example.com/pvcbackup/snapshot/snapshottest"
)

// storage returns a cluster with a bound claim, and what plays its storage.
func storage(ctx context.Context) (client.Client, *snapshottest.Driver, error) {
	scheme := runtime.NewScheme()
	if err := snapshot.AddToScheme(scheme); err != nil {
		return nil, nil, err
	}
	class := snapshottest.StorageClass
	c := kittest.FakeClient(scheme, &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "data"},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &class,
			Resources:        corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	})
	driver := snapshottest.New(c, snapshottest.Options{})
	if err := driver.Install(ctx); err != nil {
		return nil, nil, err
	}
	return c, driver, driver.Step(ctx)
}

// take is what a reconcile does: it may be called at any time, and its error says when to call it again.
func take(ctx context.Context, snapshots *snapshot.Client, owner snapshot.Owner) (snapshot.Observation, error) {
	claim, err := snapshots.ResolveClaim(ctx, "default", "data")
	if err != nil {
		return snapshot.Observation{}, err
	}
	class, err := snapshots.ChooseClass(ctx, claim.Driver, "")
	if err != nil {
		return snapshot.Observation{}, err
	}
	seen, err := snapshots.Ensure(ctx, snapshot.Request{
		Namespace: "default", Name: snapshot.Name("backup", string(owner.UID), "slot-1"),
		Claim: "data", Class: class.Name, Owner: owner,
	})
	if err != nil {
		return seen, err
	}
	return seen, snapshot.Judge(seen, snapshot.Deadlines{Taken: 10 * time.Minute, Ready: time.Hour}, time.Now())
}

// A VolumeSnapshot is taken, and waited for without waiting.
func Example() {
	ctx := context.Background()
	c, driver, err := storage(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	snapshots, owner := snapshot.New(c, snapshot.Options{}), snapshot.Owner{UID: "5f3a"}
	for range 2 {
		seen, err := take(ctx, snapshots, owner)
		fmt.Println(seen.State, err)
		if err := driver.Step(ctx); err != nil { // the storage does its work
			fmt.Println(err)
		}
	}
	// Output:
	// Creating VolumeSnapshot default/backup-5f3a-slot-1-nsvvgjvi6arm7xmo is Creating
	// Ready <nil>
}
