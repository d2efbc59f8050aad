package repo

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"example.com/pvcbackup/backup/repo/id"
)

// Runs returns the snapshot of every run that has a name here, whether its snapshot file is there or not: a commit may
// have been interrupted, or another program may have removed the snapshot.
func (r *Repository) Runs(ctx context.Context) (map[string]ID, error) {
	names, err := r.runNames(ctx)
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	runs := map[string]ID{}
	err = forEach(ctx, r.connections, names, func(ctx context.Context, name string) error {
		stored, err := r.store.GetBytes(ctx, runPrefix+name, maxSnapshot)
		if errors.Is(err, ErrNotFound) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read %s%s: %w", runPrefix, name, err)
		}
		mu.Lock()
		defer mu.Unlock()
		runs[name] = id.Hash(stored)
		return nil
	})
	return runs, err
}

func (r *Repository) runNames(ctx context.Context) ([]string, error) {
	var names []string
	for o, err := range r.store.List(ctx, runPrefix) {
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", runPrefix, err)
		}
		if name := strings.TrimPrefix(o.Key, runPrefix); validName(name) && o.Size <= maxSnapshot {
			names = append(names, name)
		}
	}
	return names, nil
}
