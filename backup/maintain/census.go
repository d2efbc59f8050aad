package maintain

import (
	"context"
	"errors"
	"fmt"

	"example.com/pvcbackup/backup/repo"
)

// census returns all snapshots, and the snapshots of runs that have no snapshot file: a commit was interrupted, or
// another program removed the file. Stores have been seen to list less than they hold without saying so, which would
// make a snapshot's data look unused, so the list is asked for twice and compared with the runs.
func census(ctx context.Context, r *repo.Repository) (snapshots []repo.SnapshotInfo, dangling []repo.ID, err error) {
	snapshots, err = r.Snapshots(ctx)
	if err != nil {
		return nil, nil, doubt(fmt.Errorf("not every snapshot can be read: %w", err))
	}
	listed := map[repo.ID]bool{}
	for _, s := range snapshots {
		listed[s.ID] = true
	}
	again := 0
	for file, err := range r.ListFiles(ctx, repo.SnapshotFile) {
		if err != nil {
			return nil, nil, fmt.Errorf("listing the snapshots once more: %w", err)
		}
		again++
		if !listed[file.ID] {
			return nil, nil, fmt.Errorf("%w: the store listed snapshot %s only the second time", ErrDoubt, file.ID.Short())
		}
	}
	if again != len(snapshots) {
		return nil, nil, fmt.Errorf("%w: the store listed %d snapshots, and then %d", ErrDoubt, len(snapshots), again)
	}
	dangling, err = danglingRuns(ctx, r, listed)
	return snapshots, dangling, err
}

func danglingRuns(ctx context.Context, r *repo.Repository, listed map[repo.ID]bool) (dangling []repo.ID, err error) {
	runs, err := r.Runs(ctx)
	if err != nil {
		return nil, err
	}
	for name, snapshot := range runs {
		if listed[snapshot] {
			continue
		}
		switch _, err := r.LoadSnapshot(ctx, snapshot); {
		case errors.Is(err, repo.ErrNotFound):
			dangling = append(dangling, snapshot)
		case err != nil:
			return nil, err
		default:
			return nil, fmt.Errorf("%w: snapshot %s of run %s is there, and the store does not list it", ErrDoubt, snapshot.Short(), name)
		}
	}
	return dangling, nil
}
