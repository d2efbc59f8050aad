package blobstore

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// attempt tells fn which try it is.
type attempt struct {
	number int // from 1
}

// retried says that an earlier attempt may have been carried out although it
// was reported as failed.
func (a attempt) retried() bool { return a.number > 1 }

// do runs fn until it works, fails for good, or the budget or context ends.
func (s *Store) do(ctx context.Context, op, key string, fn func(context.Context, attempt) error) error {
	start := time.Now()
	for n := 1; ; n++ {
		if ctx.Err() != nil {
			return ended(op, key, ctx.Err(), nil)
		}
		err := s.try(ctx, attempt{n}, fn)
		if err == nil {
			return nil
		}
		e := s.wrap(ctx, op, key, err)
		if f := (*final)(nil); errors.As(err, &f) {
			return e
		}
		if !e.Kind.transient() || ctx.Err() != nil {
			return e
		}
		wait, again := nextDelay(s.opts.RetryDelay, s.opts.RetryBudget, time.Since(start), n, spread())
		if !again {
			if n > 1 {
				e.Err = fmt.Errorf("gave up after %d attempts: %w", n, e.Err)
			}
			return e
		}
		if s.opts.OnRetry != nil {
			s.opts.OnRetry(op, key, n, wait, e)
		}
		if pause(ctx, wait) != nil {
			return ended(op, key, ctx.Err(), e.Err)
		}
	}
}

// try runs fn once under the watchdog.
func (s *Store) try(ctx context.Context, a attempt, fn func(context.Context, attempt) error) error {
	actx, w := newWatch(ctx, s.opts.StallTimeout)
	defer w.stop()
	return stalled(actx, fn(actx, a))
}

// stalled replaces err by the watchdog's finding if that is what ended ctx.
func stalled(ctx context.Context, err error) error {
	var stall *Error
	if err != nil && errors.As(context.Cause(ctx), &stall) {
		return stall
	}
	return err
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
