package maintain

import (
	"context"
	"fmt"
	"time"

	"example.com/pvcbackup/backup/archiver"
	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/schedule/keep"
)

// ForgetOptions say what is forgotten.
type ForgetOptions struct {
	// Rules say what is kept. Zero rules keep everything.
	Rules keep.Rules
	// Location is where days begin; nil means UTC.
	Location *time.Location
	// Match selects the snapshots of one series; nil means all of them. Others are left alone.
	Match func(*repo.Snapshot) bool
	// DryRun only reports.
	DryRun bool
}

// ForgetReport says what was, or would be, forgotten.
type ForgetReport struct {
	// Verdicts on the series, newest first. Items are named by the snapshot's full ID.
	Verdicts []keep.Verdict
	Kept     int
	Removed  int
}

// Forget removes the snapshots of a series that no rule keeps. Call it under the exclusive lock. Partial and empty
// snapshots never count as good ones. A snapshot that cannot be read is an error, and nothing is removed.
func Forget(ctx context.Context, r *repo.Repository, o ForgetOptions) (ForgetReport, error) {
	snapshots, err := r.Snapshots(ctx)
	if err != nil {
		return ForgetReport{}, fmt.Errorf("not every snapshot can be read, so none is forgotten: %w", err)
	}
	byID := map[string]repo.ID{}
	var items []keep.Item
	for _, s := range snapshots {
		if o.Match != nil && !o.Match(&s.Snapshot) {
			continue
		}
		byID[s.ID.String()] = s.ID
		items = append(items, keep.Item{ID: s.ID.String(), Time: s.Time, Good: archiver.Complete(s.Tags), Tags: s.Tags})
	}
	report := ForgetReport{Verdicts: keep.Apply(items, o.Rules, o.Location)}
	var remove []repo.ID
	for _, verdict := range report.Verdicts {
		if verdict.Keep {
			report.Kept++
		} else {
			remove = append(remove, byID[verdict.Item.ID])
		}
	}
	report.Removed = len(remove)
	if o.DryRun || len(remove) == 0 {
		return report, nil
	}
	return report, r.RemoveSnapshots(ctx, remove...)
}

// ForgetAll removes every snapshot that matches and returns how many there were, and how many others remain. It is for
// an owner that goes, not for retention. Call it under the exclusive lock.
func ForgetAll(ctx context.Context, r *repo.Repository, match func(*repo.Snapshot) bool) (removed, remaining int, err error) {
	snapshots, err := r.Snapshots(ctx)
	if err != nil {
		return 0, 0, fmt.Errorf("not every snapshot can be read, so none is forgotten: %w", err)
	}
	var remove []repo.ID
	for _, s := range snapshots {
		if match(&s.Snapshot) {
			remove = append(remove, s.ID)
		}
	}
	return len(remove), len(snapshots) - len(remove), r.RemoveSnapshots(ctx, remove...)
}
