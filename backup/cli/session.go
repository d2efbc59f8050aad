package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"example.com/pvcbackup/backup/contract"
	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/blobstore"
)

// store opens the store of the repository.
func (t *tool) store(ctx context.Context) (*blobstore.Store, error) {
	if t.repo == "" {
		return nil, usage(fmt.Errorf("no repository: give --repo or set %s", contract.EnvRepository))
	}
	return blobstore.Open(ctx, t.repo, &blobstore.Options{Openers: t.Openers})
}

// password returns the password, without the newline that files end with.
func (t *tool) password() (string, error) {
	password, err := secret(t.passwordFile, t.Getenv(contract.EnvPassword))
	if err != nil {
		return "", err
	}
	if password == "" {
		return "", usage(fmt.Errorf("no password: give --password-file or set %s", contract.EnvPassword))
	}
	return password, nil
}

// session is an open repository, with a lock if there is one.
type session struct {
	store      *blobstore.Store
	repository *repo.Repository
	lock       *repo.Lock
	// leftLock is why the lock could not be removed afterwards, if so.
	leftLock error
}

// open opens the repository for a person.
func (t *tool) open(ctx context.Context) (*session, error) {
	password, err := t.password()
	if err != nil {
		return nil, err
	}
	store, err := t.store(ctx)
	if err != nil {
		return nil, err
	}
	r, err := repo.Open(ctx, store, password, &repo.OpenOptions{Clock: t.clock, OnIndex: t.memory.grown})
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return &session{store: store, repository: r}, nil
}

// access is what a command does with a repository, and so which lock it takes.
type access int

const (
	// reading takes a shared lock where the store allows one to be written.
	reading access = iota
	// writing takes a shared lock.
	writing
	// storing takes a shared lock too, and begins before it is confirmed, because whatever writes waits for that.
	storing
	// checking takes the exclusive lock, and does without when told to.
	checking
	// exclusive is for deleting.
	exclusive
)

// readFlags adds the flags of commands that only read.
func (t *tool) readFlags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&t.noLock, "no-lock", false, "take no lock: only if nothing is deleted from the repository meanwhile")
}

// with opens the repository, takes a lock, and calls fn with a context that ends with the lock.
func (t *tool) with(ctx context.Context, a access, fn func(context.Context, *session) error) error {
	s, err := t.open(ctx)
	if err != nil {
		return err
	}
	defer s.store.Close()
	return t.hold(ctx, s, a, fn)
}

// hold is with, for a repository that is open.
func (t *tool) hold(ctx context.Context, s *session, a access, fn func(context.Context, *session) error) error {
	if t.noLock && (a == reading || a == checking) {
		return fn(ctx, s)
	}
	err := s.locked(ctx, t.lockOptions(a), func(ctx context.Context, s *session) error {
		if s.lock.Missing() {
			t.warn("the credentials may only read, so there is no lock")
		}
		return fn(ctx, s)
	})
	if s.leftLock != nil {
		t.warn("%v", s.leftLock)
	}
	return err
}

func (t *tool) lockOptions(a access) repo.LockOptions {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return repo.LockOptions{
		Exclusive: a == checking || a == exclusive, Host: fmt.Sprintf("%s/%d", host, os.Getpid()), Wait: t.lockWait,
		ReadOnlyOK: a == reading || a == checking, Early: a == storing || a == checking,
	}
}

// choose returns the snapshot that is meant. One that is named is found even if others cannot be read; the latest is
// not known then.
func (s *session) choose(ctx context.Context, choice selection) (repo.SnapshotInfo, error) {
	snapshots, err := s.repository.Snapshots(ctx)
	if err != nil && (choice.id == "" || len(snapshots) == 0) {
		return repo.SnapshotInfo{}, fmt.Errorf("not every snapshot can be read, so name the one to restore by its ID: %w", err)
	}
	return choice.choose(snapshots)
}

// locked calls fn under a lock. What was done stays done if the lock cannot be removed: it goes stale by itself. fn may
// begin before an early lock is confirmed; if another one is found then, nothing was written, and fn is called again once
// that one is gone.
func (s *session) locked(ctx context.Context, o repo.LockOptions, fn func(context.Context, *session) error) error {
	lock, err := s.repository.Lock(ctx, o)
	if err != nil {
		return err
	}
	s.lock = lock
	err = fn(lock.Context(), s)
	if lost := context.Cause(lock.Context()); err != nil && errors.Is(lost, repo.ErrLockLost) {
		err = fmt.Errorf("%w: %w", lost, err)
	}
	met := o.Early && errors.Is(lock.Confirmed(ctx), repo.ErrLocked)
	s.leftLock = lock.Unlock(context.WithoutCancel(ctx))
	if met {
		o.Early = false
		return s.locked(ctx, o, fn)
	}
	return err
}

// confirmed waits until an early lock counts. What was read under it may be relied on then.
func (s *session) confirmed(ctx context.Context) error {
	if s.lock == nil {
		return nil
	}
	return s.lock.Confirmed(ctx)
}

// mine tells snapshots of one series by host and path; empty ones match any.
func mine(host, path string) func(*repo.Snapshot) bool {
	return func(s *repo.Snapshot) bool {
		return (host == "" || s.Hostname == host) && (path == "" || len(s.Paths) == 1 && s.Paths[0] == path)
	}
}

// seconds is a duration in seconds, to the millisecond.
func seconds(start, end time.Time) float64 { return float64(end.Sub(start).Milliseconds()) / 1000 }
