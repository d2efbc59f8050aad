package maintain_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"example.com/pvcbackup/backup/archiver"
	"example.com/pvcbackup/backup/maintain"
	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/backup/repo/repotest"
	"example.com/pvcbackup/schedule/keep"
)

// aWeek returns a repository with a backup of each of seven days.
func aWeek(ctx context.Context) (*repo.Repository, error) {
	folder, err := os.MkdirTemp("", "example-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	r, err := repo.Init(ctx, repotest.NewMemory(), "a password", &repo.InitOptions{KeyOptions: repo.KeyOptions{Scrypt: repotest.Cheap}})
	if err != nil {
		return nil, err
	}
	for day := range 7 {
		text := fmt.Appendf(nil, "day %d", day)
		o := archiver.Options{Host: "cluster", Path: "/ns/claim", Time: time.Date(2026, 1, 1+day, 3, 0, 0, 0, time.UTC)}
		err := os.WriteFile(filepath.Join(folder, "diary"), text, 0o600)
		if err == nil {
			_, err = archiver.Backup(ctx, r, folder, o)
		}
		if err != nil {
			return nil, err
		}
	}
	return r, nil
}

// tidyUp forgets what no rule keeps, and deletes what nothing refers to any more, all under one exclusive lock.
func tidyUp(ctx context.Context, r *repo.Repository, rules keep.Rules) (forgotten maintain.ForgetReport, err error) {
	lock, err := r.Lock(ctx, repo.LockOptions{Host: "pod-1/uid-1", Exclusive: true})
	if err != nil {
		return forgotten, err
	}
	defer func() { err = errors.Join(err, lock.Unlock(ctx)) }()
	if forgotten, err = maintain.Forget(lock.Context(), r, maintain.ForgetOptions{Rules: rules}); err != nil {
		return forgotten, err
	}
	plan, err := maintain.PlanPrune(lock.Context(), r, maintain.PruneOptions{})
	if err != nil {
		return forgotten, err
	}
	_, err = plan.Execute(lock.Context())
	return forgotten, err
}

// Retention, and a check of what is left.
func Example() {
	ctx := context.Background()
	r, err := aWeek(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	forgotten, err := tidyUp(ctx, r, keep.Rules{Daily: 3})
	fmt.Println("kept", forgotten.Kept, "removed", forgotten.Removed, err)
	report, err := maintain.Check(ctx, r, maintain.CheckOptions{ReadData: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(report.Snapshots, "snapshots, sound:", report.Err() == nil)
	// Output:
	// kept 3 removed 4 <nil>
	// 3 snapshots, sound: true
}
