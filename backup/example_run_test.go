package backup_test

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/pvcbackup/backup"
	"example.com/pvcbackup/backup/contract"
	"example.com/pvcbackup/backup/movertest"
	"example.com/pvcbackup/reconcilekit"
	"example.com/pvcbackup/reconcilekit/kittest"
	"example.com/pvcbackup/schedule"
	"example.com/pvcbackup/snapshot"
	"example.com/pvcbackup/snapshot/snapshottest"
	"example.com/pvcbackup/snapshot/stage"
)

// cluster returns one with the claim "data", what plays its storage, and a runner whose movers succeed at once.
func cluster(ctx context.Context) (*backup.Runner, *snapshottest.Driver, error) {
	scheme := runtime.NewScheme()
	if err := snapshot.AddToScheme(scheme); err != nil {
		return nil, nil, err
	}
	class := snapshottest.StorageClass
	var c client.Client = kittest.FakeClient(scheme, &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "data"},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: &class,
			Resources:        corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	})
	driver, mover := snapshottest.New(c, snapshottest.Options{}), movertest.NewScript()
	if err := driver.Install(ctx); err != nil {
		return nil, nil, err
	}
	mover.Plan = func(backup.Task, int) *contract.Result {
		return &contract.Result{Outcome: contract.Succeeded, SnapshotID: "3fa8", Files: 2}
	}
	runner := &backup.Runner{Snapshots: snapshot.New(c, snapshot.Options{}), Stages: stage.New(c, stage.Options{}), Mover: mover}
	return runner, driver, driver.Step(ctx)
}

// One run, step by step. Between two steps the process may stop, and another one goes on.
func Example() {
	ctx := context.Background()
	runner, driver, err := cluster(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	slot := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	run := backup.Run{
		Owner: backup.Owner{APIVersion: "example.com/v1", Kind: "Database", Namespace: "ns", Name: "orders", UID: "5f3a"},
		Claim: "data",
		Slot:  schedule.Slot{Time: slot, Kind: schedule.Scheduled, ID: schedule.SlotID(slot)},
		Task: backup.Task{Repository: "s3://bucket/orders", Request: contract.Request{
			Operation: contract.OperationBackup, Backup: &contract.Backup{Run: "orders-1"},
		}},
	}
	for {
		progress, err := runner.Step(ctx, run, time.Now())
		if progress.Result != nil {
			fmt.Println(progress.Result.Outcome, progress.Result.SnapshotID)
			break
		}
		if err := driver.Step(ctx); err != nil { // the storage does its work
			fmt.Println(err)
			return
		}
		fmt.Println(progress.Stage, reconcilekit.Classify(err), reconcilekit.Reason(err))
	}
	for gone := false; !gone; {
		if gone, err = runner.Cleanup(ctx, run, nil); err == nil {
			err = driver.Step(ctx)
		}
		if err != nil {
			fmt.Println(err)
			return
		}
	}
	fmt.Println("nothing is left")
	// Output:
	// Snapshot Waiting SnapshotCreating
	// Staging Waiting StagedPending
	// Moving Waiting MoverStarting
	// Succeeded 3fa8
	// nothing is left
}
