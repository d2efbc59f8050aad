package reconcilekit

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics counts what controller-runtime does not see. A nil *Metrics counts nothing.
type Metrics struct {
	terminals *prometheus.CounterVec
	conflicts *prometheus.CounterVec
	calls     *prometheus.HistogramVec

	mu      sync.Mutex
	reasons map[string]bool
}

// reasonsLimit bounds the series of terminal errors: a reason may come from outside the program.
const reasonsLimit = 100

// NewMetrics returns the metrics, registered with registerer; nil registers
// them nowhere. Names get a prefix with prometheus.WrapRegistererWithPrefix.
// Calling it again with the same registerer returns the same metrics.
//
//	reconcilekit_terminal_total{controller,reason}     reconciles that ended with a terminal error; from the 101st
//	                                                   reason on they are "Other"
//	reconcilekit_conflicts_total{controller}           reconciles that ended with a conflict
//	reconcilekit_call_duration_seconds{op,class}       calls that left the process
func NewMetrics(registerer prometheus.Registerer) (*Metrics, error) {
	terminals, err := Register(registerer, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "reconcilekit_terminal_total",
		Help: "Reconciles that ended with an error that trying again cannot help.",
	}, []string{"controller", "reason"}))
	if err != nil {
		return nil, err
	}
	conflicts, err := Register(registerer, prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "reconcilekit_conflicts_total",
		Help: "Reconciles that ended because the object had changed meanwhile.",
	}, []string{"controller"}))
	if err != nil {
		return nil, err
	}
	calls, err := Register(registerer, prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "reconcilekit_call_duration_seconds",
		Help:    "Duration of calls that leave the process, by operation and class of their error.",
		Buckets: prometheus.ExponentialBuckets(0.005, 4, 8), // 5 ms to 82 s
	}, []string{"op", "class"}))
	if err != nil {
		return nil, err
	}
	return &Metrics{terminals: terminals, conflicts: conflicts, calls: calls, reasons: map[string]bool{}}, nil
}

// Register registers collector and returns it, or the one that is already
// registered in its place. A nil registerer registers nothing.
func Register[C prometheus.Collector](registerer prometheus.Registerer, collector C) (C, error) {
	if registerer == nil {
		return collector, nil
	}
	err := registerer.Register(collector)
	var already prometheus.AlreadyRegisteredError
	if errors.As(err, &already) {
		if existing, ok := already.ExistingCollector.(C); ok {
			return existing, nil
		}
	}
	if err != nil {
		return collector, fmt.Errorf("registering a metric: %w", err)
	}
	return collector, nil
}

func (m *Metrics) terminal(controller, reason string) {
	if m != nil {
		m.terminals.WithLabelValues(controller, m.label(reason)).Inc()
	}
}

func (m *Metrics) label(reason string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.reasons[reason] && len(m.reasons) >= reasonsLimit {
		return "Other"
	}
	m.reasons[reason] = true
	return reason
}

func (m *Metrics) conflict(controller string) {
	if m != nil {
		m.conflicts.WithLabelValues(controller).Inc()
	}
}

func (m *Metrics) call(op string, class Class, took time.Duration) {
	if m != nil {
		m.calls.WithLabelValues(op, class.String()).Observe(took.Seconds())
	}
}
