package reconcilekit

import (
	"time"

	"golang.org/x/time/rate"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	firstRetry = 200 * time.Millisecond
	lastRetry  = 5 * time.Minute
)

// RateLimiter returns a rate limiter for controller.Options: the tries of one
// object are 200 ms apart at first, twice as far each time, and at most 5
// minutes (the default grows to 16); together a controller retries ten times a
// second, with bursts of 100.
func RateLimiter() workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedMaxOfRateLimiter(
		workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
		&workqueue.TypedBucketRateLimiter[reconcile.Request]{Limiter: rate.NewLimiter(10, 100)},
	)
}
