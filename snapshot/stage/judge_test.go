package stage_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"example.com/pvcbackup/snapshot"
	"example.com/pvcbackup/snapshot/stage"
)

func TestLookTellsTheStates(t *testing.T) {
	waits := &storagev1.StorageClass{VolumeBindingMode: ptr.To(storagev1.VolumeBindingWaitForFirstConsumer)}
	at := metav1.NewTime(time.Date(2026, 1, 1, 3, 0, 0, 0, time.UTC))
	for name, tc := range map[string]struct {
		change    func(*corev1.PersistentVolumeClaim)
		class     *storagev1.StorageClass
		want      stage.State
		message   string
		startable bool
	}{
		"immediate is pending":                {want: stage.Pending, message: "the volume is being made"},
		"waiting for a consumer is startable": {class: waits, want: stage.WaitingForConsumer, message: "the volume is made for the first pod that uses the claim", startable: true},
		"once a node is selected it is pending": {class: waits, want: stage.Pending, message: "the volume is being made",
			change: func(c *corev1.PersistentVolumeClaim) {
				c.Annotations = map[string]string{"volume.kubernetes.io/selected-node": "n"}
			}},
		"without a class it is pending": {want: stage.Pending, message: "the claim has no storage class",
			change: func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = nil }},
		"bound is startable": {want: stage.Bound, startable: true,
			change: func(c *corev1.PersistentVolumeClaim) { c.Status.Phase, c.Spec.VolumeName = corev1.ClaimBound, "v" }},
		"a volume name alone is not bound": {want: stage.Pending, message: "the volume is being made",
			change: func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "v" }},
		"lost": {want: stage.Lost, change: func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = corev1.ClaimLost }},
		"an error condition is failing": {want: stage.Failing, message: "ModifyVolumeError: no such class",
			change: func(c *corev1.PersistentVolumeClaim) {
				c.Status.Conditions = []corev1.PersistentVolumeClaimCondition{
					{Type: "Resizing", Status: corev1.ConditionTrue},
					{Type: "ModifyVolumeError", Status: corev1.ConditionTrue, Message: "no such class"}}
			}},
		"an error that has passed is not": {want: stage.Pending, message: "the volume is being made",
			change: func(c *corev1.PersistentVolumeClaim) {
				c.Status.Conditions = []corev1.PersistentVolumeClaimCondition{{Type: "ModifyVolumeError", Status: corev1.ConditionFalse}}
			}},
		"bound and deleting is deleting": {want: stage.Deleting,
			change: func(c *corev1.PersistentVolumeClaim) {
				c.DeletionTimestamp, c.Status.Phase, c.Spec.VolumeName = &at, corev1.ClaimBound, "v"
			}},
	} {
		t.Run(name, func(t *testing.T) {
			pvc := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", UID: "u", CreationTimestamp: at},
				Spec:   corev1.PersistentVolumeClaimSpec{StorageClassName: ptr.To("fast")},
				Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending}}
			if tc.change != nil {
				tc.change(pvc)
			}
			got := stage.Look(pvc, tc.class)
			want := stage.Observation{State: tc.want, Namespace: "ns", Name: "c", UID: "u", Created: at.Time, Message: tc.message,
				VolumeName: pvc.Spec.VolumeName, Mode: corev1.PersistentVolumeFilesystem}
			if pvc.Spec.StorageClassName != nil {
				want.StorageClass = "fast"
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Fatal(d)
			}
			require.Equal(t, tc.startable, got.Startable())
		})
	}
}

func TestJudge(t *testing.T) {
	created := time.Date(2026, 1, 1, 3, 0, 0, 0, time.UTC)
	see := func(state stage.State) stage.Observation {
		return stage.Observation{State: state, Namespace: "ns", Name: "c", Created: created, Message: "m"}
	}
	for name, tc := range map[string]struct {
		seen     stage.Observation
		at       time.Duration
		reason   string
		terminal bool
		text     string
	}{
		"bound goes on":                   {seen: see(stage.Bound), at: time.Hour},
		"waiting for a consumer goes on":  {seen: see(stage.WaitingForConsumer), at: time.Hour},
		"pending waits":                   {seen: see(stage.Pending), at: time.Second, reason: "StagedPending", text: "PersistentVolumeClaim ns/c is Pending; the last error seen: m"},
		"failing waits too":               {seen: see(stage.Failing), at: time.Second, reason: "StagedFailing", text: "PersistentVolumeClaim ns/c is Failing; the last error seen: m"},
		"lost ends":                       {seen: see(stage.Lost), at: time.Second, reason: "StagedLost", terminal: true, text: "PersistentVolumeClaim ns/c: the staged claim has lost its volume"},
		"the deadline ends, with message": {seen: see(stage.Failing), at: time.Minute, reason: "StagedDeadlineExceeded", terminal: true, text: "PersistentVolumeClaim ns/c is still Failing after 1m0s; deadline Staged is 1m0s; the last error seen: m"},
	} {
		t.Run(name, func(t *testing.T) {
			err := stage.Judge(tc.seen, time.Minute, created.Add(tc.at))
			if tc.reason == "" {
				require.NoError(t, err)
				return
			}
			var c interface {
				error
				Terminal() bool
				Reason() string
			}
			require.ErrorAs(t, err, &c)
			require.Equal(t, []any{tc.reason, tc.terminal, tc.text}, []any{c.Reason(), c.Terminal(), err.Error()})
		})
	}
	require.NotErrorIs(t, stage.Judge(see(stage.Pending), 0, created.Add(1000*time.Hour)), snapshot.ErrInvalid)
	var wait *snapshot.WaitError
	require.ErrorAs(t, stage.Judge(see(stage.Pending), 0, created.Add(1000*time.Hour)), &wait, "zero is no limit")
}
