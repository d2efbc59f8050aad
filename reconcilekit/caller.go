package reconcilekit

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// DefaultCallTimeout is the deadline of an outside call that has no other.
const DefaultCallTimeout = 30 * time.Second

// Caller makes the calls that leave the process. The zero value, and nil, are
// ready to use.
type Caller struct {
	// Timeout is the deadline of a call; [DefaultCallTimeout] when zero.
	Timeout time.Duration
	// Timeouts are the deadlines of the operations that need another.
	Timeouts map[string]time.Duration
	// Metrics counts and times the calls by operation and class; nil: nothing is counted.
	Metrics *Metrics
}

// Do calls fn with a context that ends at the deadline of op, counts and times
// it, and returns its error with op in front. fn has to return when its context
// ends. A call that fails because of that deadline is [Transient] with the
// reason Timeout. op names a kind of call, such as "store.put": it is a label
// of a metric and must not hold names of objects.
func (c *Caller) Do(ctx context.Context, op string, fn func(ctx context.Context) error) error {
	if c == nil {
		c = &Caller{}
	}
	timeout := positive(c.Timeouts[op], positive(c.Timeout, DefaultCallTimeout))
	callCtx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	start := time.Now()
	err := fn(callCtx)
	if err != nil {
		err = describeCall(ctx, callCtx, op, timeout, err)
	}
	c.Metrics.call(op, Classify(err), time.Since(start))
	return err
}

func describeCall(ctx, callCtx context.Context, op string, timeout time.Duration, err error) error {
	expired := errors.Is(callCtx.Err(), context.DeadlineExceeded) && ctx.Err() == nil
	if class := Classify(err); expired && (class == ClassTransient || class == ClassStopping) {
		return Transient("Timeout", fmt.Errorf("%s: no answer within %s: %w", op, timeout, err))
	}
	return fmt.Errorf("%s: %w", op, err)
}
