package blockdev

import (
	"context"
	"iter"
	"sync"
	"time"
)

// inParallel gives the jobs to n workers, each with its own state, and returns the first error, or why ctx ended.
func inParallel[T any](ctx context.Context, n int, jobs iter.Seq[T],
	worker func() func(context.Context, T) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	queue := make(chan T)
	var running sync.WaitGroup
	for range n {
		running.Go(func() {
			do := worker()
			for job := range queue {
				if ctx.Err() != nil {
					continue
				}
				if err := do(ctx, job); err != nil {
					cancel(err)
				}
			}
		})
	}
	feed(ctx, jobs, queue)
	running.Wait()
	return context.Cause(ctx)
}

func feed[T any](ctx context.Context, jobs iter.Seq[T], queue chan<- T) {
	defer close(queue)
	for job := range jobs {
		select {
		case queue <- job:
		case <-ctx.Done():
			return
		}
	}
}

// report calls f at every interval until stop is called, which calls it for the last time.
func report(interval time.Duration, f func()) (stop func()) {
	done := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				f()
			case <-done:
				f()
				return
			}
		}
	})
	return func() {
		close(done)
		running.Wait()
	}
}
