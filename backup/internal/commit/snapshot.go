package commit

import (
	"context"
	"fmt"

	"example.com/pvcbackup/backup/repo"
)

// Snapshot writes sn, once for each run name, and reads it back. An empty name commits every time. When another attempt
// at the run was first, other is its snapshot and id that one's; else other is nil.
func Snapshot(ctx context.Context, r *repo.Repository, runName string,
	sn *repo.Snapshot) (id repo.ID, other *repo.Snapshot, err error) {
	if runName == "" {
		if id, err = r.SaveSnapshot(ctx, sn); err != nil {
			return repo.ID{}, nil, fmt.Errorf("commit the snapshot: %w", err)
		}
		return id, nil, compare(ctx, r, id, sn)
	}
	id, won, err := r.CommitRun(ctx, runName, sn)
	if err != nil {
		return repo.ID{}, nil, fmt.Errorf("commit the snapshot of run %s: %w", runName, err)
	}
	if won {
		return id, nil, compare(ctx, r, id, sn)
	}
	if other, err = r.LoadSnapshot(ctx, id); err != nil {
		return repo.ID{}, nil, fmt.Errorf("read the snapshot that another attempt committed: %w", err)
	}
	return id, other, nil
}

// compare reads the snapshot file back.
func compare(ctx context.Context, r *repo.Repository, id repo.ID, sn *repo.Snapshot) error {
	got, err := r.LoadSnapshot(ctx, id)
	if err != nil {
		return fmt.Errorf("read the committed snapshot back: %w", err)
	}
	if *got.Tree != *sn.Tree || !got.Time.Equal(sn.Time) || got.Hostname != sn.Hostname {
		return fmt.Errorf("snapshot %s: %w", id.Short(), repo.ErrUnverified)
	}
	return nil
}
