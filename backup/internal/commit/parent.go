package commit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"example.com/pvcbackup/backup/repo"
)

// Choice says which snapshot a run is to be compared with.
type Choice struct {
	// ID names it; zero chooses by the rest.
	ID repo.ID
	// None is for a run that is compared with nothing.
	None bool
	// Host and Path are whose snapshot it is. It must not be newer than Time, and have tags that are Usable.
	Host, Path string
	Time       time.Time
	Usable     func(tags []string) bool
}

// FindParent returns the snapshot that is meant, or nil when there is none, and loads the index. It lists the snapshots
// first: otherwise a new one might need an index that was not loaded.
func FindParent(ctx context.Context, r *repo.Repository, c Choice) (*repo.SnapshotInfo, error) {
	var chosen *repo.SnapshotInfo
	switch {
	case c.None:
	case !c.ID.IsZero():
		sn, err := r.LoadSnapshot(ctx, c.ID)
		if err != nil {
			return nil, fmt.Errorf("parent %s: %w", c.ID.Short(), err)
		}
		chosen = &repo.SnapshotInfo{ID: c.ID, Snapshot: *sn}
	default:
		snapshots, err := r.Snapshots(ctx)
		if err != nil && !errors.Is(err, repo.ErrDamaged) { // a damaged one is not a parent, and no reason to stop
			return nil, fmt.Errorf("list snapshots: %w", err)
		}
		chosen = c.latest(snapshots)
	}
	if err := r.LoadIndex(ctx); err != nil {
		return nil, fmt.Errorf("load the index: %w", err)
	}
	return chosen, nil
}

// latest returns the newest of those that may be chosen, or nil.
func (c Choice) latest(snapshots []repo.SnapshotInfo) *repo.SnapshotInfo {
	for _, sn := range slices.Backward(snapshots) {
		if sn.Hostname == c.Host && slices.Equal(sn.Paths, []string{c.Path}) && !sn.Time.After(c.Time) && c.Usable(sn.Tags) {
			return &sn
		}
	}
	return nil
}
