package snapshot_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"example.com/pvcbackup/snapshot"
)

func TestLookTellsTheSixStates(t *testing.T) {
	created := metav1.NewTime(time.Date(2026, 1, 1, 3, 0, 0, 0, time.UTC))
	taken := metav1.NewTime(created.Add(5 * time.Second))
	failed := metav1.NewTime(created.Add(9 * time.Second))
	failure := &snapshotv1.VolumeSnapshotError{Time: &failed, Message: ptr.To("no space")}
	base := snapshot.Observation{Namespace: "ns", Name: "s", UID: "u", Claim: "data", Class: "gold", Created: created.Time}
	for name, tc := range map[string]struct {
		deleting bool
		status   *snapshotv1.VolumeSnapshotStatus
		want     func(*snapshot.Observation)
	}{
		"no status is creating": {want: func(o *snapshot.Observation) { o.State = snapshot.Creating }},
		"bound is not ready": {status: &snapshotv1.VolumeSnapshotStatus{BoundVolumeSnapshotContentName: ptr.To("c")},
			want: func(o *snapshot.Observation) { o.State, o.ContentName = snapshot.Creating, "c" }},
		"nil readyToUse is not ready": {status: &snapshotv1.VolumeSnapshotStatus{CreationTime: &taken},
			want: func(o *snapshot.Observation) { o.State, o.TakenAt = snapshot.Taken, taken.Time }},
		"false readyToUse is not ready": {status: &snapshotv1.VolumeSnapshotStatus{CreationTime: &taken, ReadyToUse: ptr.To(false)},
			want: func(o *snapshot.Observation) { o.State, o.TakenAt = snapshot.Taken, taken.Time }},
		"readyToUse is ready, an old error notwithstanding": {
			status: &snapshotv1.VolumeSnapshotStatus{CreationTime: &taken, ReadyToUse: ptr.To(true), RestoreSize: ptr.To(resource.MustParse("1Gi")), Error: failure},
			want: func(o *snapshot.Observation) {
				o.State, o.TakenAt, o.RestoreSize = snapshot.Ready, taken.Time, 1<<30
				o.LastError, o.LastErrorAt = "no space", failed.Time
			}},
		"an error is failing": {status: &snapshotv1.VolumeSnapshotStatus{CreationTime: &taken, Error: failure},
			want: func(o *snapshot.Observation) {
				o.State, o.TakenAt, o.LastError, o.LastErrorAt = snapshot.Failing, taken.Time, "no space", failed.Time
			}},
		"an error without a message is failing": {status: &snapshotv1.VolumeSnapshotStatus{Error: &snapshotv1.VolumeSnapshotError{}},
			want: func(o *snapshot.Observation) { o.State = snapshot.Failing }},
		"ready and deleting is deleting": {deleting: true, status: &snapshotv1.VolumeSnapshotStatus{ReadyToUse: ptr.To(true)},
			want: func(o *snapshot.Observation) { o.State = snapshot.Deleting }},
	} {
		t.Run(name, func(t *testing.T) {
			vs := &snapshotv1.VolumeSnapshot{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s", UID: "u", CreationTimestamp: created},
				Spec: snapshotv1.VolumeSnapshotSpec{
					Source:                  snapshotv1.VolumeSnapshotSource{PersistentVolumeClaimName: ptr.To("data")},
					VolumeSnapshotClassName: ptr.To("gold"),
				},
				Status: tc.status,
			}
			if tc.deleting {
				vs.DeletionTimestamp = &taken
			}
			want := base
			tc.want(&want)
			if d := cmp.Diff(want, snapshot.Look(vs)); d != "" {
				t.Fatal(d)
			}
		})
	}
}
