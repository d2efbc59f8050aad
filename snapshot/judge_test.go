package snapshot_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"example.com/pvcbackup/snapshot"
)

// classed is what reconcilers look for in an error.
type classed interface {
	error
	Terminal() bool
	Reason() string
}

type verdict struct {
	Reason   string
	Terminal bool
	After    time.Duration
	Text     string
}

func verdictOf(t *testing.T, err error) verdict {
	t.Helper()
	if err == nil {
		return verdict{}
	}
	var c classed
	require.ErrorAs(t, err, &c)
	v := verdict{Reason: c.Reason(), Terminal: c.Terminal(), Text: err.Error()}
	var later interface{ RetryAfter() time.Duration }
	if !v.Terminal {
		require.ErrorAs(t, err, &later)
		v.After = later.RetryAfter()
	}
	return v
}

func TestJudge(t *testing.T) {
	created := time.Date(2026, 1, 1, 3, 0, 0, 0, time.UTC)
	see := func(state snapshot.State, change func(*snapshot.Observation)) snapshot.Observation {
		o := snapshot.Observation{State: state, Namespace: "ns", Name: "s", Created: created}
		if change != nil {
			change(&o)
		}
		return o
	}
	taken := func(o *snapshot.Observation) { o.TakenAt = created.Add(time.Second) }
	failing := func(o *snapshot.Observation) { o.LastError = "quota" }
	d := snapshot.Deadlines{Taken: 10 * time.Minute, Ready: time.Hour}
	for name, tc := range map[string]struct {
		seen snapshot.Observation
		d    snapshot.Deadlines
		at   time.Duration
		want verdict
	}{
		"ready is nil however late": {see(snapshot.Ready, nil), d, 24 * time.Hour, verdict{}},
		"absent waits": {snapshot.Observation{State: snapshot.Absent, Namespace: "ns", Name: "s"}, d, 24 * time.Hour,
			verdict{"SnapshotAbsent", false, 30 * time.Second, "VolumeSnapshot ns/s is Absent"}},
		"creating waits": {see(snapshot.Creating, nil), d, time.Minute,
			verdict{"SnapshotCreating", false, 30 * time.Second, "VolumeSnapshot ns/s is Creating"}},
		"the look is in time for the next deadline": {see(snapshot.Creating, nil), d, 10*time.Minute - 5*time.Second,
			verdict{"SnapshotCreating", false, 5 * time.Second, "VolumeSnapshot ns/s is Creating"}},
		"the look is never sooner than a second": {see(snapshot.Creating, nil), d, 10*time.Minute - time.Millisecond,
			verdict{"SnapshotCreating", false, time.Second, "VolumeSnapshot ns/s is Creating"}},
		"the taken deadline is named": {see(snapshot.Creating, nil), d, 10 * time.Minute,
			verdict{"SnapshotTakenDeadlineExceeded", true, 0, "VolumeSnapshot ns/s is still Creating after 10m0s; deadline SnapshotTaken is 10m0s"}},
		"once taken only ready counts": {see(snapshot.Taken, taken), d, 30 * time.Minute,
			verdict{"SnapshotTaken", false, 30 * time.Second, "VolumeSnapshot ns/s is Taken"}},
		"the ready deadline is named": {see(snapshot.Taken, taken), d, time.Hour,
			verdict{"SnapshotReadyDeadlineExceeded", true, 0, "VolumeSnapshot ns/s is still Taken after 1h0m0s; deadline SnapshotReady is 1h0m0s"}},
		"an error alone fails nothing": {see(snapshot.Failing, failing), d, 9 * time.Minute,
			verdict{"SnapshotFailing", false, 30 * time.Second, "VolumeSnapshot ns/s is Failing; the last error seen: quota"}},
		"the deadline tells the last error": {see(snapshot.Failing, failing), d, 11 * time.Minute,
			verdict{"SnapshotTakenDeadlineExceeded", true, 0, "VolumeSnapshot ns/s is still Failing after 11m0s; deadline SnapshotTaken is 10m0s; the last error seen: quota"}},
		"a stuck deletion ends too": {see(snapshot.Deleting, taken), d, time.Hour,
			verdict{"SnapshotReadyDeadlineExceeded", true, 0, "VolumeSnapshot ns/s is still Deleting after 1h0m0s; deadline SnapshotReady is 1h0m0s"}},
		"zero is no deadline": {see(snapshot.Creating, nil), snapshot.Deadlines{}, 1000 * time.Hour,
			verdict{"SnapshotCreating", false, 30 * time.Second, "VolumeSnapshot ns/s is Creating"}},
		"a creation in the future is age zero": {see(snapshot.Creating, nil), d, -time.Hour,
			verdict{"SnapshotCreating", false, 30 * time.Second, "VolumeSnapshot ns/s is Creating"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := verdictOf(t, snapshot.Judge(tc.seen, tc.d, created.Add(tc.at)))
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Fatal(d)
			}
		})
	}
}

func TestDeadlineErrorTellsWhichHowLongAndTheLastError(t *testing.T) {
	created := time.Now()
	err := snapshot.Judge(snapshot.Observation{State: snapshot.Failing, Created: created, LastError: "e"},
		snapshot.Deadlines{Taken: time.Minute}, created.Add(2*time.Minute))
	var late *snapshot.DeadlineError
	require.ErrorAs(t, err, &late)
	require.Equal(t, "SnapshotTaken", late.Deadline)
	require.Equal(t, time.Minute, late.Limit)
	require.Equal(t, 2*time.Minute, late.Age)
	require.Equal(t, "e", late.LastError)
}
