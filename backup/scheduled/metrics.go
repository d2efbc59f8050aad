package scheduled

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"example.com/pvcbackup/backup/contract"
	"example.com/pvcbackup/reconcilekit"
)

// Metrics is what can be seen of every object with scheduled backups. It is a prometheus.Collector that computes ages
// when it is scraped. A nil *Metrics observes nothing. Series of an object that is gone are gone with it.
//
//	pvcbackup_last_success_timestamp_seconds{namespace,name}
//	pvcbackup_last_success_age_seconds{namespace,name}
//	pvcbackup_last_success_duration_seconds{namespace,name}
//	pvcbackup_last_success_bytes{namespace,name}
//	pvcbackup_last_success_added_bytes{namespace,name}
//	pvcbackup_next_run_timestamp_seconds{namespace,name}
//	pvcbackup_consecutive_failures{namespace,name}
//	pvcbackup_protected{namespace,name}             1 or 0
//	pvcbackup_runs_total{namespace,name,outcome}    since this process started
//	pvcbackup_failures_total{namespace,name,reason} since this process started; from the 21st reason on they are "Other"
//	pvcbackup_backups_left_total                    deletions that left backups in the store, since this process started
type Metrics struct {
	now func() time.Time

	mu      sync.Mutex
	objects map[types.NamespacedName]*objectMetrics
	lefts   float64
}

type objectMetrics struct {
	gauges   map[*prometheus.Desc]float64
	success  time.Time
	runs     map[string]float64
	failures map[string]float64
}

var objectLabels = []string{"namespace", "name"}

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("pvcbackup_"+name, help, labels, nil)
}

var (
	descSuccess  = desc("last_success_timestamp_seconds", "When the newest good backup was completed.", objectLabels...)
	descAge      = desc("last_success_age_seconds", "How long ago the newest good backup was completed.", objectLabels...)
	descDuration = desc("last_success_duration_seconds", "How long the newest good run took.", objectLabels...)
	descBytes    = desc("last_success_bytes", "Bytes in the files of the newest good backup.", objectLabels...)
	descAdded    = desc("last_success_added_bytes", "Bytes that the newest good run added to the store.", objectLabels...)
	descNext     = desc("next_run_timestamp_seconds", "When the next run will start.", objectLabels...)
	descFailing  = desc("consecutive_failures", "Runs that failed since the newest good one.", objectLabels...)
	descSafe     = desc("protected", "Whether the newest good backup is as fresh as the schedule asks.", objectLabels...)
	descRuns     = desc("runs_total", "Runs that ended, by outcome.", "namespace", "name", "outcome")
	descFailures = desc("failures_total", "Runs that failed, by reason.", "namespace", "name", "reason")
	descLeft     = desc("backups_left_total", "Deletions of objects that had to leave their backups in the store.")
)

// NewMetrics returns the metrics, registered with registerer; nil registers them nowhere. now tells the time; nil means
// time.Now. Calling it again with the same registerer returns the same metrics.
func NewMetrics(registerer prometheus.Registerer, now func() time.Time) (*Metrics, error) {
	if now == nil {
		now = time.Now
	}
	return reconcilekit.Register(registerer, &Metrics{now: now, objects: map[types.NamespacedName]*objectMetrics{}})
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descSuccess, descAge, descDuration, descBytes, descAdded, descNext, descFailing, descSafe,
		descRuns, descFailures, descLeft} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(ch chan<- prometheus.Metric) {
	m.mu.Lock()
	defer m.mu.Unlock()
	ch <- prometheus.MustNewConstMetric(descLeft, prometheus.CounterValue, m.lefts)
	for key, o := range m.objects {
		for d, value := range o.gauges {
			ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, key.Namespace, key.Name)
		}
		if !o.success.IsZero() {
			ch <- prometheus.MustNewConstMetric(descAge, prometheus.GaugeValue, m.now().Sub(o.success).Seconds(), key.Namespace, key.Name)
		}
		for outcome, n := range o.runs {
			ch <- prometheus.MustNewConstMetric(descRuns, prometheus.CounterValue, n, key.Namespace, key.Name, outcome)
		}
		for reason, n := range o.failures {
			ch <- prometheus.MustNewConstMetric(descFailures, prometheus.CounterValue, n, key.Namespace, key.Name, reason)
		}
	}
}

// object must be called with the lock held.
func (m *Metrics) object(obj Object) *objectMetrics {
	key := types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}
	o := m.objects[key]
	if o == nil {
		o = &objectMetrics{runs: map[string]float64{}, failures: map[string]float64{}}
		m.objects[key] = o
	}
	return o
}

func (m *Metrics) observe(obj Object, s *Status) {
	if m == nil {
		return
	}
	gauges := map[*prometheus.Desc]float64{descFailing: float64(s.ConsecutiveFailures), descSafe: 0}
	for _, c := range s.Conditions {
		if c.Type == ConditionReady && c.Status == "True" {
			gauges[descSafe] = 1
		}
	}
	if s.NextBackup != nil {
		gauges[descNext] = float64(s.NextBackup.Unix())
	}
	var success time.Time
	if s.LastBackup != nil && s.LastSuccess != nil {
		success = s.LastBackup.Time
		gauges[descSuccess] = float64(success.Unix())
		gauges[descDuration] = s.LastSuccess.Duration.Seconds()
		gauges[descBytes] = float64(s.LastSuccess.Bytes)
		gauges[descAdded] = float64(s.LastSuccess.Added)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	o := m.object(obj)
	o.gauges, o.success = gauges, success
}

func (m *Metrics) ended(obj Object, r contract.Result) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	o := m.object(obj)
	o.runs[string(r.Outcome)]++
	if r.Outcome == contract.Failed {
		o.failures[o.failureLabel(resultReason(r))]++
	}
}

// reasonsLimit bounds the series of one object: what a mover calls its failures is up to who chose its image.
const reasonsLimit = 20

func (o *objectMetrics) failureLabel(reason string) string {
	if _, known := o.failures[reason]; known || len(o.failures) < reasonsLimit {
		return reason
	}
	return "Other"
}

func (m *Metrics) left() {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lefts++
}

func (m *Metrics) forget(namespace, name string) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.objects, types.NamespacedName{Namespace: namespace, Name: name})
}
