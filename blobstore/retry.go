package blobstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"gocloud.dev/blob"
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
	return s.run(ctx, op, key, false, fn)
}

// run is do, or with once a single try.
func (s *Store) run(ctx context.Context, op, key string, once bool, fn func(context.Context, attempt) error) error {
	start := time.Now()
	for n := 1; ; n++ {
		if ctx.Err() != nil {
			return ended(op, key, ctx.Err(), nil)
		}
		err := s.try(ctx, attempt{n}, fn)
		if err != nil && op != "list" && s.classify(err) == KindNotFound {
			err = s.confirmMissing(ctx, err)
		}
		if err == nil {
			s.facts.bucketSeen.Store(true)
			return nil
		}
		e := s.wrap(ctx, op, key, err)
		if once || !e.Kind.transient() || ctx.Err() != nil {
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

// confirmMissing looks, once per store, whether it is the bucket that is missing:
// a HEAD request, and GCS in general, do not tell the two apart, and some stores
// answer 404 to a key that they do not know. What cannot be looked at is not
// known to be missing, so every error counts.
func (s *Store) confirmMissing(ctx context.Context, missing error) error {
	if s.facts.bucketSeen.Load() {
		return missing
	}
	err := s.try(ctx, attempt{1}, func(ctx context.Context, _ attempt) error {
		_, _, err := s.driver.Bucket.ListPage(ctx, blob.FirstPageToken, 1, &blob.ListOptions{Prefix: s.prefix})
		return err
	})
	if err == nil {
		s.facts.bucketSeen.Store(true)
		return missing
	}
	return s.wrap(ctx, "list", "", err)
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
