package repo

import "context"

// pool hands out a fixed number of things. What was given back goes first, so that no more are made than are ever in
// use at once.
type pool[T any] struct {
	free   chan T
	unmade chan struct{}
	make   func() T
}

func newPool[T any](size int, newThing func() T) *pool[T] {
	p := &pool[T]{free: make(chan T, size), unmade: make(chan struct{}, size), make: newThing}
	for range size {
		p.unmade <- struct{}{}
	}
	return p
}

// take waits for one. It gives up when one of the contexts ends.
func (p *pool[T]) take(ctx, other context.Context) (got T, err error) {
	select {
	case got = <-p.free:
		return got, nil
	default:
	}
	select {
	case got = <-p.free:
		return got, nil
	case <-p.unmade:
		return p.make(), nil
	case <-ctx.Done():
		return got, context.Cause(ctx)
	case <-other.Done():
		return got, context.Cause(other)
	}
}

func (p *pool[T]) give(thing T) { p.free <- thing }
