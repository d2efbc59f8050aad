package blobstore

import (
	"context"
	"errors"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// Delete removes an object. A missing one is ErrNotFound where the store tells
// (file, mem, GCS, Azure); S3 answers a deletion of nothing with success, and
// asking first would double the requests, so there it is nil.
func (s *Store) Delete(ctx context.Context, key string) error {
	full, err := s.fullKey("delete", key)
	if err != nil {
		return err
	}
	remove := s.driver.Delete
	if remove == nil {
		remove = s.driver.Bucket.Delete
	}
	return s.do(ctx, "delete", key, func(ctx context.Context, a attempt) error {
		err := remove(ctx, full)
		if err != nil && a.retried() && s.classify(err) == KindNotFound {
			return nil // the earlier attempt removed it and its answer was lost
		}
		return err
	})
}

const deleters = 8

// DeleteAll removes every object whose key starts with prefix, a plain string
// (the empty one means the whole store), and returns how many it removed. It
// may be called again after an error.
func (s *Store) DeleteAll(ctx context.Context, prefix string) (int, error) {
	var removed atomic.Int64
	var batch []string
	flush := func() error {
		g, ctx := errgroup.WithContext(ctx)
		g.SetLimit(deleters)
		for _, key := range batch {
			g.Go(func() error {
				err := s.Delete(ctx, key)
				if errors.Is(err, ErrNotFound) {
					return nil
				}
				if err == nil {
					removed.Add(1)
				}
				return err
			})
		}
		batch = batch[:0]
		return g.Wait()
	}
	for o, err := range s.List(ctx, prefix) {
		if err == nil {
			batch = append(batch, o.Key)
			if len(batch) < pageSize {
				continue
			}
			err = flush()
		}
		if err != nil {
			return int(removed.Load()), err
		}
	}
	err := flush()
	return int(removed.Load()), err
}
