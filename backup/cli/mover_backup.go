package cli

import (
	"context"
	"fmt"
	"time"

	"example.com/pvcbackup/backup/archiver"
	"example.com/pvcbackup/backup/contract"
	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/blobstore"
)

// backup makes the backup that the request asks for.
func (m *mover) backup(ctx context.Context, store *blobstore.Store) error {
	source := m.Getenv(contract.EnvSource)
	if source == "" {
		return because(contract.ReasonInvalidRequest, fmt.Errorf("%s is not set", contract.EnvSource))
	}
	return m.withLock(ctx, store, repo.LockOptions{Early: true}, func(ctx context.Context, s *session) error {
		request := m.request.Backup
		if request.Owner != "" {
			if err := s.repository.EnsureOwner(ctx, request.Owner); err != nil {
				return err
			}
		}
		meter := m.meter("reading")
		defer meter.stop()
		done, err := archiver.Backup(ctx, s.repository, source, archiver.Options{
			Host: m.request.Identity.Host, Path: m.request.Identity.Path, Tags: request.Tags, Time: request.Time,
			RunName: request.Run, ProgramVersion: "pvcbackup " + m.Version,
			Verify: archiver.Verify{SampleBlobs: request.SampleBlobs}, Progress: meter.archiver, CountTotals: true,
			MemoryBudget: m.memory.budget(),
		})
		if err != nil {
			return err
		}
		m.result = m.merge(backupResult(done, request.Time))
		return nil
	})
}

// backupResult says what was done.
func backupResult(done *archiver.Result, at time.Time) contract.Result {
	r := contract.Result{
		Version: contract.Version, Operation: contract.OperationBackup, Outcome: contract.Succeeded,
		SnapshotID: done.SnapshotID.String(), SnapshotTime: at,
		Files: int64(done.Files.Total()), Bytes: int64(done.Bytes.Total()), Added: int64(done.AddedPacked), Reused: done.ReusedRun,
	}
	switch {
	case done.Empty:
		r.Outcome = contract.Empty
	case done.Partial:
		r.Outcome, r.Paths, r.PathCount = contract.Partial, done.Unreadable.First, done.Unreadable.Count
	}
	note := func(n int, what string) {
		if n > 0 {
			r.Notes = append(r.Notes, fmt.Sprintf("%d %s", n, what))
		}
	}
	note(done.Changed.Count, "files were changed while they were read")
	note(done.Lossy.Count, "entries have attribute names that cannot be kept")
	note(done.Sockets, "sockets were left out")
	return r
}
