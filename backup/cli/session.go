package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

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
	password := t.Getenv(contract.EnvPassword)
	if t.passwordFile != "" {
		text, err := os.ReadFile(t.passwordFile)
		if err != nil {
			return "", fmt.Errorf("reading the password: %w", err)
		}
		password = string(text)
	}
	password = strings.TrimRight(password, "\r\n")
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
	r, err := repo.Open(ctx, store, password, nil)
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return &session{store: store, repository: r}, nil
}

// with opens the repository, takes a lock, and calls fn with a context that ends with the lock.
func (t *tool) with(ctx context.Context, exclusive bool, fn func(context.Context, *session) error) error {
	s, err := t.open(ctx)
	if err != nil {
		return err
	}
	defer s.store.Close()
	err = s.locked(ctx, t.lockOptions(exclusive), fn)
	if s.leftLock != nil {
		t.warn("%v", s.leftLock)
	}
	return err
}

func (t *tool) lockOptions(exclusive bool) repo.LockOptions {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return repo.LockOptions{Exclusive: exclusive, Host: fmt.Sprintf("%s/%d", host, os.Getpid()), Wait: t.lockWait, ReadOnlyOK: t.noLock}
}

// locked calls fn under a lock. What was done stays done if the lock cannot be removed: it goes stale by itself.
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
	s.leftLock = lock.Unlock(context.WithoutCancel(ctx))
	return err
}

// mine tells snapshots of one series by host and path; empty ones match any.
func mine(host, path string) func(*repo.Snapshot) bool {
	return func(s *repo.Snapshot) bool {
		return (host == "" || s.Hostname == host) && (path == "" || len(s.Paths) == 1 && s.Paths[0] == path)
	}
}

// seconds is a duration in seconds, to the millisecond.
func seconds(start, end time.Time) float64 { return float64(end.Sub(start).Milliseconds()) / 1000 }
