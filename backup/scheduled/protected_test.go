package scheduled

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/pvcbackup/backup/contract"
	"example.com/pvcbackup/schedule"
)

func TestReadyMeansProtected(t *testing.T) {
	empty := &Attempt{Outcome: string(contract.Empty)}
	// Hourly: an hour, half an hour to start, and a minute to run.
	const allowed = 91 * time.Minute
	for name, test := range map[string]struct {
		status Status
		policy schedule.Policy
		ready  metav1.ConditionStatus
		reason string
		until  time.Time
	}{
		"never":     {ready: "False", reason: ReasonNoBackupYet},
		"empty":     {status: Status{LastAttempt: empty}, ready: "False", reason: ReasonVolumeEmpty},
		"fresh":     {status: Status{LastBackup: at(-time.Hour)}, ready: "True", reason: ReasonProtected, until: noon.Add(allowed - time.Hour)},
		"just":      {status: Status{LastBackup: at(time.Second - allowed)}, ready: "True", reason: ReasonProtected, until: noon.Add(time.Second)},
		"overdue":   {status: Status{LastBackup: at(-allowed)}, ready: "False", reason: ReasonOverdue},
		"suspended": {status: Status{LastBackup: at(-allowed)}, policy: schedule.Policy{Suspend: true}, ready: "False", reason: ReasonSuspended},
		"suspended and fresh": {
			status: Status{LastBackup: at(-time.Hour)}, policy: schedule.Policy{Suspend: true},
			ready: "True", reason: ReasonProtected, until: noon.Add(allowed - time.Hour),
		},
		"an empty one does not displace a good one": {
			status: Status{LastBackup: at(-time.Hour), LastAttempt: empty}, ready: "True", reason: ReasonProtected, until: noon.Add(allowed - time.Hour),
		},
		"a longer deadline, jitter and run allow more": {
			status: Status{LastBackup: at(-allowed), History: []Attempt{{Started: *at(-time.Hour), Finished: *at(-40 * time.Minute)}}},
			policy: schedule.Policy{StartingDeadline: time.Hour, Jitter: 5 * time.Minute},
			ready:  "True", reason: ReasonProtected, until: noon.Add((60 + 60 + 5 + 20) * time.Minute).Add(-allowed),
		},
	} {
		t.Run(name, func(t *testing.T) {
			check := func(s Status) {
				condition, until := s.protected(mustCompile("0 * * * *"), test.policy, noon)
				require.Equal(t, test.ready, condition.Status)
				require.Equal(t, test.reason, condition.Reason)
				require.NotEmpty(t, condition.Message)
				require.Equal(t, test.until, until)
			}
			check(test.status)
			t.Run("and a run in flight never changes it", func(t *testing.T) {
				test.status.Current = &Current{Slot: "s", Stage: "Moving"}
				check(test.status)
			})
		})
	}
}

func TestThePhaseIsForPeople(t *testing.T) {
	for want, s := range map[string]Status{
		"Waiting": {}, "Starting": {Current: &Current{}}, "Moving": {Current: &Current{Stage: "Moving"}},
		"Failed": {LastAttempt: &Attempt{Outcome: "Failed"}}, "Idle": {LastAttempt: &Attempt{Outcome: "Succeeded"}},
	} {
		require.Equal(t, want, s.phase(false))
	}
	idle := Status{LastAttempt: &Attempt{Outcome: "Succeeded"}}
	require.Equal(t, "Suspended", idle.phase(true))
}
