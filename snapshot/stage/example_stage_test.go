package stage_test

import (
	"context"
	"fmt"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/pvcbackup/reconcilekit/kittest"
	"example.com/pvcbackup/snapshot"
	"example.com/pvcbackup/snapshot/stage"
)

// cluster is one with a storage class, whose volumes are never made.
func cluster() client.Client {
	scheme := runtime.NewScheme()
	if err := snapshot.AddToScheme(scheme); err != nil {
		panic(err)
	}
	return kittest.FakeClient(scheme, &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}})
}

// A claim is made from a snapshot, looked at as often as one likes, and found again by its owner.
func Example() {
	ctx, owner := context.Background(), snapshot.Owner{UID: "5f3a"}
	// In an operator the client is mgr.GetClient(), and Options.Live mgr.GetAPIReader().
	staging := stage.New(cluster(), stage.Options{})
	for range 2 {
		seen, err := staging.Ensure(ctx, stage.Request{
			Namespace: "default", Name: "stage-1", Owner: owner,
			Snapshot: snapshot.Observation{State: snapshot.Ready, Namespace: "default", Name: "backup-1", RestoreSize: 1 << 30},
			Source:   snapshot.Claim{StorageClass: "fast", Capacity: resource.MustParse("2Gi")}, // from ResolveClaim
		})
		fmt.Println(seen.State, err, "and", stage.Judge(seen, 10*time.Minute, time.Now()))
	}
	claims, err := staging.List(ctx, "default", owner)
	fmt.Println(len(claims), err)
	// Output:
	// Pending <nil> and PersistentVolumeClaim default/stage-1 is Pending; the last error seen: the volume is being made
	// Pending <nil> and PersistentVolumeClaim default/stage-1 is Pending; the last error seen: the volume is being made
	// 1 <nil>
}
