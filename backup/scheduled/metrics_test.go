package scheduled

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/pvcbackup/backup/contract"
)

func TestMetricsTellOfAnObjectAndNothingIsLeftOfOneThatIsGone(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	m, err := NewMetrics(registry, func() time.Time { return noon.Add(time.Minute) })
	require.NoError(t, err)
	obj := &thing{Status: Status{
		LastBackup: at(0), NextBackup: at(time.Hour), ConsecutiveFailures: 2,
		LastSuccess: &Success{Bytes: 10, Added: 5, Duration: metav1.Duration{Duration: 3 * time.Second}},
		Conditions:  []metav1.Condition{{Type: ConditionReady, Status: metav1.ConditionTrue}},
	}}
	obj.Namespace, obj.Name = "ns", "b"
	m.observe(obj, obj.BackupStatus())
	m.ended(obj, contract.Result{Outcome: contract.Succeeded})
	m.ended(obj, contract.Result{Outcome: contract.Failed, Reason: "StoreDenied"})
	m.left()
	want := `
# HELP pvcbackup_backups_left_total Deletions of objects that had to leave their backups in the store.
# TYPE pvcbackup_backups_left_total counter
pvcbackup_backups_left_total 1
# HELP pvcbackup_consecutive_failures Runs that failed since the newest good one.
# TYPE pvcbackup_consecutive_failures gauge
pvcbackup_consecutive_failures{name="b",namespace="ns"} 2
# HELP pvcbackup_failures_total Runs that failed, by reason.
# TYPE pvcbackup_failures_total counter
pvcbackup_failures_total{name="b",namespace="ns",reason="StoreDenied"} 1
# HELP pvcbackup_last_success_added_bytes Bytes that the newest good run added to the store.
# TYPE pvcbackup_last_success_added_bytes gauge
pvcbackup_last_success_added_bytes{name="b",namespace="ns"} 5
# HELP pvcbackup_last_success_age_seconds How long ago the newest good backup was completed.
# TYPE pvcbackup_last_success_age_seconds gauge
pvcbackup_last_success_age_seconds{name="b",namespace="ns"} 60
# HELP pvcbackup_last_success_bytes Bytes in the files of the newest good backup.
# TYPE pvcbackup_last_success_bytes gauge
pvcbackup_last_success_bytes{name="b",namespace="ns"} 10
# HELP pvcbackup_last_success_duration_seconds How long the newest good run took.
# TYPE pvcbackup_last_success_duration_seconds gauge
pvcbackup_last_success_duration_seconds{name="b",namespace="ns"} 3
# HELP pvcbackup_last_success_timestamp_seconds When the newest good backup was completed.
# TYPE pvcbackup_last_success_timestamp_seconds gauge
pvcbackup_last_success_timestamp_seconds{name="b",namespace="ns"} 1.7723664e+09
# HELP pvcbackup_next_run_timestamp_seconds When the next run will start.
# TYPE pvcbackup_next_run_timestamp_seconds gauge
pvcbackup_next_run_timestamp_seconds{name="b",namespace="ns"} 1.77237e+09
# HELP pvcbackup_protected Whether the newest good backup is as fresh as the schedule asks.
# TYPE pvcbackup_protected gauge
pvcbackup_protected{name="b",namespace="ns"} 1
# HELP pvcbackup_runs_total Runs that ended, by outcome.
# TYPE pvcbackup_runs_total counter
pvcbackup_runs_total{name="b",namespace="ns",outcome="Failed"} 1
pvcbackup_runs_total{name="b",namespace="ns",outcome="Succeeded"} 1
`
	require.NoError(t, testutil.GatherAndCompare(registry, strings.NewReader(want)))

	again, err := NewMetrics(registry, nil)
	require.NoError(t, err, "constructed twice works")
	require.Same(t, m, again)

	m.forget("ns", "b")
	left, err := testutil.GatherAndCount(registry)
	require.NoError(t, err)
	require.Equal(t, 1, left, "only the counter that is about no object")
}

func TestWhatIsNotKnownHasNoSeries(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	m, err := NewMetrics(registry, nil)
	require.NoError(t, err)
	obj := &thing{}
	m.observe(obj, obj.BackupStatus())
	n, err := testutil.GatherAndCount(registry)
	require.NoError(t, err)
	require.Equal(t, 3, n, "backups left, consecutive failures, protected")
}

func TestNoMetricsCountNothing(*testing.T) {
	var m *Metrics
	obj := &thing{}
	m.observe(obj, obj.BackupStatus())
	m.ended(obj, contract.Result{})
	m.left()
	m.forget("ns", "b")
}

func TestReasonsThatAMoverMakesUpAreSeriesUpToALimit(t *testing.T) {
	registry := prometheus.NewPedanticRegistry()
	m, err := NewMetrics(registry, nil)
	require.NoError(t, err)
	for i := range 10 * reasonsLimit {
		m.ended(&thing{}, contract.Result{Outcome: contract.Failed, Reason: fmt.Sprintf("Made%d", i)})
	}
	m.ended(&thing{}, contract.Result{Outcome: contract.Failed, Reason: "Made0"})
	n, err := testutil.GatherAndCount(registry, "pvcbackup_failures_total")
	require.NoError(t, err)
	require.Equal(t, reasonsLimit+1, n)
}
