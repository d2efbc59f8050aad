package controller

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/pvcbackup/backup"
	"example.com/pvcbackup/backup/scheduled"
	"example.com/pvcbackup/reconcilekit"
)

// Options are what the reconcilers have in common.
type Options struct {
	// Mover moves the data. Required.
	Mover scheduled.Mover
	// Stores completes the URLs of repositories. Required.
	Stores scheduled.Stores
	// Claims is a cache of the metadata of every claim, so that a claim that appears is noticed at once. Nil: it is
	// noticed when it is looked for, every 30 seconds.
	Claims cache.Cache
	// Attempts bounds the movers of one task; the zero value has backup's defaults.
	Attempts backup.Attempts
	// MaintainEvery is the least time between two runs of forget and prune. Zero means 24 h.
	MaintainEvery time.Duration
	// Workers is how many objects of a kind are reconciled at once. Zero means 4.
	Workers int
	// KitMetrics and Metrics count; nil counts nothing.
	KitMetrics *reconcilekit.Metrics
	Metrics    *scheduled.Metrics
	// Now tells the time; nil means time.Now.
	Now func() time.Time
	// SkipNameValidation lets several managers of one process use the same controller names, and share their metrics.
	SkipNameValidation bool
}

func (o Options) controller() controller.Options {
	workers := o.Workers
	if workers <= 0 {
		workers = 4
	}
	options := controller.Options{MaxConcurrentReconciles: workers, RateLimiter: reconcilekit.RateLimiter()}
	if o.SkipNameValidation {
		skip := true
		options.SkipNameValidation = &skip
	}
	return options
}

func (o Options) now() time.Time {
	if o.Now == nil {
		return time.Now()
	}
	return o.Now()
}

func request(namespace, name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
}
