package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"example.com/pvcbackup/backup/contract"
	"example.com/pvcbackup/backup/maintain"
	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/blobstore"
)

func (t *tool) moverCommand() *cobra.Command {
	return &cobra.Command{
		Use: "mover", Short: "Do what the request in the environment asks; for Pods", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			result := t.move(cmd.Context())
			if err := t.report(result); err != nil {
				return err
			}
			t.code = result.ExitCode()
			if t.code != contract.ExitOK {
				fmt.Fprintf(t.Stderr, "%s: %s\n", result.Reason, result.Message)
			}
			return nil
		},
	}
}

// report writes the result where the operator reads it. A result that cannot be written is a failure.
func (t *tool) report(result contract.Result) error {
	file := t.Getenv(contract.EnvResultFile)
	if file == "" {
		file = contract.DefaultResultFile
	}
	if err := os.WriteFile(file, result.Encode(), 0o600); err != nil {
		return fmt.Errorf("writing the result: %w", err)
	}
	return nil
}

func (t *tool) move(ctx context.Context) contract.Result {
	start := t.Now()
	request, err := contract.DecodeRequest(t.Getenv(contract.EnvRequest))
	if err != nil {
		return failure("", because(contract.ReasonInvalidRequest, err))
	}
	m := &mover{tool: t, request: request, result: contract.Result{Operation: request.Operation, Outcome: contract.Succeeded}}
	err = m.run(ctx)
	if err != nil {
		if ctx.Err() != nil {
			err = &reasonError{reason: contract.ReasonInterrupted, retry: true, err: fmt.Errorf("the mover was told to stop: %w", err)}
		}
		failed := failure(request.Operation, err)
		failed.RepositoryID, failed.KeyFingerprint, failed.Initialized = m.result.RepositoryID, m.result.KeyFingerprint, m.result.Initialized
		failed.Kept, failed.Removed, failed.Freed, failed.Notes = m.result.Kept, m.result.Removed, m.result.Freed, m.result.Notes
		m.result = failed
	}
	m.result.Seconds = seconds(start, t.Now())
	return m.result
}

// Move does what the request in the environment asks, without reporting it: for movers that are no Pods.
func Move(ctx context.Context, o Options) contract.Result { return newTool(o).move(ctx) }

// mover is one operation on behalf of an operator.
type mover struct {
	*tool
	request contract.Request
	result  contract.Result
}

func (m *mover) run(ctx context.Context) error {
	store, err := m.openStore(ctx)
	if err != nil {
		return err
	}
	defer store.Close()
	switch m.request.Operation {
	case contract.OperationLookup:
		return m.lookup(ctx, store)
	case contract.OperationBackup:
		return m.backup(ctx, store)
	case contract.OperationRestore:
		return m.restore(ctx, store)
	case contract.OperationMaintain:
		return m.maintain(ctx, store)
	default:
		return m.delete(ctx, store)
	}
}

// merge adds what is known of the repository to what an operation did.
func (m *mover) merge(done contract.Result) contract.Result {
	done.RepositoryID, done.KeyFingerprint, done.Initialized = m.result.RepositoryID, m.result.KeyFingerprint, m.result.Initialized
	done.Notes = append(m.result.Notes, done.Notes...)
	return done
}

// note adds a sentence to the result.
func (m *mover) note(format string, args ...any) {
	m.result.Notes = append(m.result.Notes, fmt.Sprintf(format, args...))
}

// lookup finds out whether there is a repository. Anything but a proven answer is an error.
func (m *mover) lookup(ctx context.Context, store *blobstore.Store) error {
	state, err := repo.Probe(ctx, store)
	if err != nil {
		return err
	}
	m.result.Repository = map[repo.State]contract.RepositoryState{
		repo.StateRepository:      contract.RepositoryPresent,
		repo.StateHalfInitialised: contract.RepositoryBroken,
		repo.StateAbsent:          contract.RepositoryAbsent,
	}[state]
	return nil
}

// open opens the repository that the request means, and no other.
func (m *mover) open(ctx context.Context, store *blobstore.Store) (*repo.Repository, error) {
	password, err := m.password()
	if err != nil {
		return nil, err
	}
	r, err := repo.Open(ctx, store, password, &repo.OpenOptions{Clock: m.clock, OnIndex: m.memory.grown})
	if m.mayInitialize() && (errors.Is(err, repo.ErrAbsent) || errors.Is(err, repo.ErrHalfInitialised)) {
		r, err = m.initialize(ctx, store, password)
	}
	if errors.Is(err, repo.ErrAbsent) && m.request.RepositoryID != "" {
		return nil, because(contract.ReasonRepositoryMissing, fmt.Errorf(
			"the repository %.8s is gone from the store: restore the bucket; nothing new is begun in its place", m.request.RepositoryID))
	}
	if err != nil {
		return nil, err
	}
	m.result.RepositoryID, m.result.KeyFingerprint = r.ID(), r.KeyID().Short()
	if want := m.request.RepositoryID; want != "" && want != r.ID() {
		m.result.RepositoryID, m.result.KeyFingerprint = "", ""
		return nil, because(contract.ReasonRepositoryForeign, fmt.Errorf(
			"the store holds the repository %.8s where %.8s was before: restore the bucket, or choose another storage.prefix", r.ID(), want))
	}
	return r, nil
}

func (m *mover) mayInitialize() bool {
	return m.request.RepositoryID == "" && m.request.Backup != nil && m.request.Backup.Initialize
}

// initialize creates the repository. What a creation left behind that was interrupted long ago is removed first, as long
// as it holds nothing.
func (m *mover) initialize(ctx context.Context, store *blobstore.Store, password string) (*repo.Repository, error) {
	r, err := m.create(ctx, store, password)
	if errors.Is(err, repo.ErrHalfInitialised) {
		rest := maintain.RemoveRest(ctx, store, m.Now())
		if errors.Is(rest, maintain.ErrInUse) {
			return nil, err
		}
		if rest != nil {
			return nil, rest
		}
		return m.create(ctx, store, password)
	}
	return r, err
}

func (m *mover) create(ctx context.Context, store *blobstore.Store, password string) (*repo.Repository, error) {
	r, err := repo.Init(ctx, store, password, &repo.InitOptions{
		OpenOptions: repo.OpenOptions{Clock: m.clock, OnIndex: m.memory.grown},
		Owner:       m.request.Backup.Owner,
		KeyOptions:  repo.KeyOptions{Username: "pvcbackup", Hostname: m.request.Identity.Host, Scrypt: m.scrypt},
	})
	m.result.Initialized = err == nil
	return r, err
}

// withLock opens the repository and calls fn under a lock.
func (m *mover) withLock(ctx context.Context, store *blobstore.Store, o repo.LockOptions, fn func(context.Context, *session) error) error {
	r, err := m.open(ctx, store)
	if err != nil {
		return err
	}
	locks := m.request.Locks
	o.Host = locks.HostName(m.Getenv(contract.EnvPodName), m.Getenv(contract.EnvPodUID))
	o.DeadHosts = locks.Dead
	o.Wait = cmp.Or(m.moverWait, moverLockWait)
	s := &session{store: store, repository: r}
	err = s.locked(ctx, o, fn)
	if s.leftLock != nil {
		m.note("the lock could not be removed, and goes stale by itself: %v", s.leftLock)
	}
	return err
}

// moverLockWait is how long a mover waits for others. It is longer than the five minutes that it takes to tell that a
// lock has died without a trace.
const moverLockWait = 12 * time.Minute
