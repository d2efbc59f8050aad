package backup_test

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"example.com/pvcbackup/backup"
	"example.com/pvcbackup/backup/contract"
	"example.com/pvcbackup/backup/movertest"
	"example.com/pvcbackup/reconcilekit"
)

// The first attempt meets a store that is down; the second one is started after a pause.
func ExampleAdvance() {
	mover := movertest.NewScript()
	mover.Plan = func(_ backup.Task, attempt int) *contract.Result {
		if attempt == 1 {
			return &contract.Result{Outcome: contract.Failed, Reason: contract.ReasonStoreUnavailable, Retry: true}
		}
		return &contract.Result{Outcome: contract.Succeeded}
	}
	task := backup.Task{Owner: backup.Owner{Namespace: "ns", Name: "orders", UID: "5f3a"}, Role: backup.RoleBackup, Slot: "1"}
	for {
		state, err := backup.Advance(context.Background(), mover, task, backup.Attempts{Backoff: time.Nanosecond}, time.Now())
		if state.Result != nil {
			fmt.Println("attempt", state.Attempt, state.Result.Outcome)
			return
		}
		fmt.Println("attempt", state.Attempt, state.Mover.Phase, reconcilekit.Reason(err))
	}
	// Output:
	// attempt 1 Starting MoverStarting
	// attempt 2 Starting MoverStarting
	// attempt 2 Succeeded
}

// Whatever a run leaves is found by its owner, after a crash too.
func ExampleSweep() {
	ctx := context.Background()
	runner, _, err := cluster(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	gone, err := backup.Sweep(ctx, runner.Stages, backup.Owner{Namespace: "ns", Name: "orders", UID: "5f3a"}, nil)
	fmt.Println(gone, err)
	// Output: true <nil>
}

func ExampleMounts() {
	pod := &corev1.Pod{Spec: corev1.PodSpec{Volumes: []corev1.Volume{{VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"},
	}}}}}
	fmt.Println(backup.Mounts(pod, "data"), backup.Mounts(pod, "other"))
	// Output: true false
}

func ExampleOwner_ChildName() {
	owner := backup.Owner{Namespace: "ns", Name: "orders", UID: "5f3a"}
	fmt.Println(owner.ChildName(backup.RoleBackup, "20260102t030000z", 1))
	// Output: orders-backup-codb83agb9vks23g
}
