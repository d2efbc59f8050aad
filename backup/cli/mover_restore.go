package cli

import (
	"context"
	"errors"
	"fmt"

	"example.com/pvcbackup/backup/contract"
	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/backup/restorer"
	"example.com/pvcbackup/blobstore"
)

// overwrites are the policies by their names in the contract and on the command line.
var overwrites = map[string]restorer.Overwrite{
	"": restorer.RefuseNonEmpty, "IfChanged": restorer.IfChanged, "Always": restorer.Always, "Never": restorer.Never,
}

// restore restores what the request asks for.
func (m *mover) restore(ctx context.Context, store *blobstore.Store) error {
	target, request := m.Getenv(contract.EnvTarget), m.request.Restore
	overwrite, known := overwrites[request.Overwrite]
	if target == "" || !known {
		return because(contract.ReasonInvalidRequest, fmt.Errorf("%s is %q and the overwrite policy %q", contract.EnvTarget, target, request.Overwrite))
	}
	err := m.withLock(ctx, store, repo.LockOptions{ReadOnlyOK: true}, func(ctx context.Context, s *session) error {
		if s.lock.Missing() {
			m.note("the credentials may only read: restored without a lock")
		}
		return m.restoreFrom(ctx, s, target, overwrite)
	})
	if m.request.Restore.AllowAbsent && provenAbsent(err) {
		m.result.Outcome = contract.Empty
		m.note("the store is proven to hold no such backup, and that was allowed: %v", err)
		return nil
	}
	return err
}

// provenAbsent reports whether the store answered and there is nothing to restore. A store that does not answer, or that
// refuses to, proves nothing.
func provenAbsent(err error) bool {
	var reasoned *reasonError
	return errors.Is(err, repo.ErrAbsent) || errors.As(err, &reasoned) && reasoned.reason == contract.ReasonSnapshotNotFound
}

func (m *mover) restoreFrom(ctx context.Context, s *session, target string, overwrite restorer.Overwrite) error {
	request, identity := m.request.Restore, m.request.Identity
	if request.SnapshotID == "" && (!request.AnyHost && identity.Host == "" || !request.AnyPath && identity.Path == "") {
		return because(contract.ReasonInvalidRequest, errors.New("the request names neither host and path nor says that any will do"))
	}
	chosen, err := s.choose(ctx, selection{
		id: request.SnapshotID, host: identity.Host, path: identity.Path, tags: request.Tags, asOf: request.AsOf, offset: request.Offset,
	})
	if err != nil {
		return err
	}
	meter := m.meter("restoring")
	defer meter.stop()
	done, err := restorer.Restore(ctx, s.repository, chosen.ID, target, restorer.Options{
		Path: request.Path, Overwrite: overwrite, Progress: meter.restorer, MemoryBudget: m.memory.budget(),
	})
	if err != nil {
		return err
	}
	if !done.Verified {
		return because(contract.ReasonVerifyFailed, errors.New("what was restored was not verified"))
	}
	m.result = m.merge(restoreResult(done, chosen))
	return nil
}

// restoreResult says what was done.
func restoreResult(done *restorer.Result, from repo.SnapshotInfo) contract.Result {
	return contract.Result{
		Version: contract.Version, Operation: contract.OperationRestore, Outcome: contract.Succeeded, SnapshotID: from.ID.String(), SnapshotTime: from.Time,
		Files: int64(done.Files), Bytes: int64(done.Bytes), Notes: shortfalls(done),
	}
}

// shortfalls are sentences about what could not be restored as it was.
func shortfalls(done *restorer.Result) (notes []string) {
	for _, s := range []struct {
		restorer.Shortfall
		what string
	}{
		{done.Owners, "owners could not be set, which takes the right to (mover.privilege Baseline has it)"},
		{done.Modes, "setuid, setgid or sticky bits could not be set"},
		{done.Xattrs, "extended attributes could not be set"},
		{done.NotCreated, "devices or FIFOs could not be made"},
	} {
		if s.Count > 0 {
			notes = append(notes, fmt.Sprintf("%d %s, the first of them: %s", s.Count, s.what, s.First[0]))
		}
	}
	return notes
}
