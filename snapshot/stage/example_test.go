package stage_test

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/pvcbackup/snapshot/stage"
)

// A claim that waits for its first Pod is as good as a bound one: it is for the Pod to be created.
func ExampleLook() {
	waits, class := storagev1.VolumeBindingWaitForFirstConsumer, "fast"
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "stage-1"},
		Spec:       corev1.PersistentVolumeClaimSpec{StorageClassName: &class},
		Status:     corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending},
	}
	seen := stage.Look(claim, &storagev1.StorageClass{VolumeBindingMode: &waits})
	fmt.Println(seen.State, seen.Startable(), stage.Judge(seen, time.Hour, time.Now()))
	// Output: WaitingForConsumer true <nil>
}

func ExampleJudge() {
	created := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	seen := stage.Observation{State: stage.Pending, Namespace: "default", Name: "stage-1", Created: created}
	fmt.Println(stage.Judge(seen, 10*time.Minute, created.Add(time.Minute)))
	fmt.Println(stage.Judge(seen, 10*time.Minute, created.Add(time.Hour)))
	// Output:
	// PersistentVolumeClaim default/stage-1 is Pending
	// PersistentVolumeClaim default/stage-1 is still Pending after 1h0m0s; deadline Staged is 10m0s
}
