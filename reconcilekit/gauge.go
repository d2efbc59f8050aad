package reconcilekit

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// ObjectGauges are the gauges that a controller keeps for each of its objects,
// with the labels namespace and name. Delete removes all series of an object at
// once, so that none outlives it. Make it with [NewObjectGauges].
type ObjectGauges struct {
	registerer prometheus.Registerer

	mu     sync.Mutex
	gauges []*prometheus.GaugeVec
}

// NewObjectGauges returns an empty set whose gauges are registered with
// registerer; nil registers them nowhere.
func NewObjectGauges(registerer prometheus.Registerer) *ObjectGauges {
	return &ObjectGauges{registerer: registerer}
}

// ObjectGauge is one gauge of a set of [ObjectGauges].
type ObjectGauge struct{ vec *prometheus.GaugeVec }

// Gauge adds a gauge to the set. Adding the same gauge again, also through
// another set on the same registerer, returns the same series.
func (g *ObjectGauges) Gauge(name, help string, labels ...string) (*ObjectGauge, error) {
	vec, err := Register(g.registerer, prometheus.NewGaugeVec(
		prometheus.GaugeOpts{Name: name, Help: help}, append([]string{"namespace", "name"}, labels...)))
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.gauges = append(g.gauges, vec)
	return &ObjectGauge{vec: vec}, nil
}

// Delete removes every series of the object from every gauge of the set. Call
// it when the object is gone.
func (g *ObjectGauges) Delete(namespace, name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, vec := range g.gauges {
		vec.DeletePartialMatch(prometheus.Labels{"namespace": namespace, "name": name})
	}
}

// Set sets the gauge of an object. It takes one value for each further label of
// the gauge and panics when their number differs.
func (g *ObjectGauge) Set(namespace, name string, value float64, labelValues ...string) {
	g.vec.WithLabelValues(append([]string{namespace, name}, labelValues...)...).Set(value)
}

// Clear removes the series of an object from this gauge, for a value that is
// no longer known.
func (g *ObjectGauge) Clear(namespace, name string) {
	g.vec.DeletePartialMatch(prometheus.Labels{"namespace": namespace, "name": name})
}
