package scheduled

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"example.com/pvcbackup/backup"
	"example.com/pvcbackup/backup/contract"
	"example.com/pvcbackup/schedule"
	"example.com/pvcbackup/snapshot"
)

func TestDeadlinesHaveDefaultsEachForItself(t *testing.T) {
	var none *Deadlines
	require.Equal(t, snapshot.Deadlines{Taken: DefaultSnapshotTaken, Ready: DefaultSnapshotReady}, none.Snapshot())
	require.Equal(t, DefaultStaged, none.Stage())
	require.Equal(t, backup.MoverDeadlines{Start: DefaultMoverStarted, NoProgress: DefaultNoProgress, Run: DefaultRun}, none.Mover())
	some := &Deadlines{SnapshotReady: &metav1.Duration{Duration: time.Minute}, Run: &metav1.Duration{}, NoProgress: &metav1.Duration{Duration: time.Second}}
	require.Equal(t, snapshot.Deadlines{Taken: DefaultSnapshotTaken, Ready: time.Minute}, some.Snapshot())
	require.Equal(t, backup.MoverDeadlines{Start: DefaultMoverStarted, NoProgress: time.Second, Run: DefaultRun}, some.Mover(), "zero is the default")
}

func TestAMoverIsRestrictedUnlessAskedOtherwise(t *testing.T) {
	var none *MoverSpec
	require.Equal(t, backup.PodSettings{Privilege: backup.Restricted}, none.PodSettings())
	require.Equal(t, backup.PodSettings{Privilege: backup.Restricted}, (&MoverSpec{}).PodSettings())
	require.Equal(t, backup.PodSettings{Privilege: backup.Baseline, RunAsUser: ptr.To(int64(5)), PriorityClassName: "p"},
		(&MoverSpec{Privilege: "Baseline", RunAsUser: ptr.To(int64(5)), PriorityClassName: "p"}).PodSettings())
}

func TestRetentionAndVerifyDefaults(t *testing.T) {
	var none *Retention
	require.Equal(t, contract.Keep{Hourly: 24, Daily: 7, Weekly: 4, Monthly: 12}, none.keepRules())
	require.Equal(t, contract.Keep{Last: 1, Yearly: 2, Within: "3d"}, (&Retention{Last: 1, Yearly: 2, Within: "3d"}).keepRules())
	for want, spec := range map[int]Spec{
		0: {}, -1: {Verify: &Verify{SampleBlobs: ptr.To(int32(0))}}, 5: {Verify: &Verify{SampleBlobs: ptr.To(int32(5))}},
	} {
		require.Equal(t, want, spec.sampleBlobs())
	}
	for want, spec := range map[int]Spec{
		1: {}, 0: {Snapshot: &SnapshotPolicy{Keep: ptr.To(int32(0))}}, 3: {Snapshot: &SnapshotPolicy{Keep: ptr.To(int32(3))}},
	} {
		require.Equal(t, want, spec.keepSnapshots())
	}
	require.Equal(t, "", (&Spec{}).className())
	require.Equal(t, "c", (&Spec{Snapshot: &SnapshotPolicy{ClassName: "c"}}).className())
}

func TestThePolicyOfASpec(t *testing.T) {
	for name, test := range map[string]struct {
		spec Spec
		want schedule.Policy
	}{
		"defaults": {Spec{}, schedule.Policy{RunOnCreate: true, Seed: "seed", Overlap: schedule.Forbid}},
		"everything": {
			Spec{
				Suspend: true, RunOnCreate: ptr.To(false), ConcurrencyPolicy: Replace, StartingDeadlineSeconds: ptr.To(int64(30)),
				Jitter: &metav1.Duration{Duration: time.Minute},
			},
			schedule.Policy{Suspend: true, Seed: "seed", Overlap: schedule.Replace, StartingDeadline: 30 * time.Second, Jitter: time.Minute},
		},
	} {
		require.Empty(t, cmp.Diff(test.want, test.spec.policy("seed")), name)
	}
}
