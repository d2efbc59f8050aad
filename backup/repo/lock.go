package repo

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"example.com/pvcbackup/blobstore"
)

// The times of restic's lock protocol.
const (
	staleAge      = 30 * time.Minute            // an older lock's process is gone, or cannot write
	refreshEvery  = 5 * time.Minute             // a lock is written anew this often
	refreshableAt = staleAge - 3*refreshEvery/2 // beyond this age others may be about to remove it
	settle        = 200 * time.Millisecond      // between writing a lock and looking for others
	lockTick      = time.Minute                 // between looks at the age of one's own lock
	lockDeadline  = time.Minute                 // for one refresh or unlock
	maxRetryWait  = time.Minute                 // between attempts to get a lock
	maxClockSkew  = 5 * time.Minute             // between the store's clock and this one
)

// unreadableWaits are the pauses before a lock that cannot be read is tried again.
var unreadableWaits = [...]time.Duration{5 * time.Second, 10 * time.Second, 20 * time.Second}

// LockOptions says which lock to take.
type LockOptions struct {
	// Exclusive locks are for deleting and checking; the others may be held by many.
	Exclusive bool
	// Host is required, and must be unique for the process: a Pod's name and UID.
	Host string
	// Username is free text.
	Username string
	// Wait is how long to wait for others. 0: not at all. A lock whose process died without a trace is only removed
	// after being watched for 5 minutes, so shorter waits never get past one.
	Wait time.Duration
	// DeadHosts, if not nil, reports whether the process with this host name is known to have ended. Its locks are
	// removed.
	DeadHosts func(host string) bool
	// Early returns the lock as soon as it is written, where nobody can have come in between, and looks for others in the
	// background: 200 ms in which work may begin. Until then the repository can be read, and what would write to it or
	// delete from it waits. If another lock is found then, what waits fails with a LockedError, the lock's context ends
	// with it, and Wait does not apply. Ask Confirmed before relying on what was read.
	Early bool
	// ReadOnlyOK goes on without a lock where the store does not allow one to be written; Lock.Missing tells. Only for
	// reading.
	ReadOnlyOK bool
}

// Lock is a held lock. It is refreshed until Unlock.
type Lock struct {
	repo    *Repository
	o       LockOptions
	ctx     context.Context
	cancel  context.CancelCauseFunc
	missing bool
	done    chan struct{} // closed when nothing refreshes the lock any more
	once    sync.Once
	result  error

	confirmed   chan struct{} // closed when others have been looked for
	unconfirmed error         // why the lock does not count, after that

	// Used by the refreshing goroutine, and by Unlock after done.
	id   ID
	at   time.Time   // of the last successful refresh
	left map[ID]bool // own locks that could not be deleted
}

// Lock takes a lock, following restic's protocol. Errors: LockedError when others hold it until Wait is over,
// ErrClockSkew, and the store's. A lock that cannot be read counts as held.
func (r *Repository) Lock(ctx context.Context, o LockOptions) (*Lock, error) {
	if o.Host == "" {
		return nil, errors.New("a lock needs a host name that is unique for the process")
	}
	r.store.reopen()
	suspects := map[ID]time.Time{}
	deadline := r.clock.Now().Add(o.Wait)
	for pause := time.Second; ; pause = min(2*pause, maxRetryWait) {
		l, err := r.tryLock(ctx, &o, suspects)
		left := deadline.Sub(r.clock.Now())
		if err == nil || !errors.Is(err, ErrLocked) || left <= 0 {
			return l, err
		}
		// By chance, so that two that gave way to each other do not meet again.
		wait := pause/2 + rand.N(pause/2)
		if err := sleep(ctx, r.clock, min(wait, left)); err != nil {
			return nil, err
		}
	}
}

// tryLock looks, writes, and looks again. suspects holds when an old lock was first seen.
func (r *Repository) tryLock(ctx context.Context, o *LockOptions, suspects map[ID]time.Time) (*Lock, error) {
	began := r.clock.Now()
	if err := r.checkLocks(ctx, o, ID{}, suspects); err != nil {
		return nil, err
	}
	at := r.clock.Now()
	own, err := r.writeLock(ctx, o)
	if errors.Is(err, blobstore.ErrPermission) && o.ReadOnlyOK {
		l := r.newLock(ctx, o)
		l.missing = true
		close(l.confirmed)
		close(l.done)
		return l, nil
	}
	if err != nil {
		return nil, fmt.Errorf("lock the repository: %w", err)
	}
	l := r.newLock(ctx, o)
	l.id, l.at = own, at
	// Whoever wrote a lock after the first look looks again later than the settling time after that look, and so finds
	// this one if it was there by then. Otherwise somebody may hold a lock, and delete what is about to be read.
	if took := r.clock.Now().Sub(began); o.Early && 0 <= took && took < settle {
		r.store.pending.Store(l)
		go func() {
			if l.confirm(l.ctx, suspects) != nil {
				close(l.done)
				return
			}
			r.store.pending.CompareAndSwap(l, nil)
			l.keep()
		}()
		return l, nil
	}
	if err := l.confirm(ctx, suspects); err != nil {
		return nil, err
	}
	go l.keep()
	return l, nil
}

func (r *Repository) newLock(ctx context.Context, o *LockOptions) *Lock {
	l := &Lock{repo: r, o: *o, done: make(chan struct{}), confirmed: make(chan struct{}), left: map[ID]bool{}}
	l.ctx, l.cancel = context.WithCancelCause(ctx)
	return l
}

// confirm waits and looks for others. If there is one, or that cannot be found out, it removes the lock and ends its
// context.
func (l *Lock) confirm(ctx context.Context, suspects map[ID]time.Time) error {
	err := sleep(ctx, l.repo.clock, settle)
	if err == nil {
		err = l.repo.checkLocks(ctx, &l.o, l.id, suspects)
	}
	if err != nil {
		if undo := l.repo.removeLock(ctx, l.id); undo != nil {
			l.left[l.id] = true
			err = fmt.Errorf("%w; the lock %s could not be removed: %w", err, l.id.Short(), undo)
		}
		l.cancel(err)
	}
	l.unconfirmed = err
	close(l.confirmed)
	return err
}

// Confirmed waits until others have been looked for, and returns nil if the lock counts. It has nothing to wait for
// unless the lock was asked for with Early.
func (l *Lock) Confirmed(ctx context.Context) error {
	select {
	case <-l.confirmed:
		return l.unconfirmed
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// removeLock is done even when ctx has ended.
func (r *Repository) removeLock(ctx context.Context, own ID) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lockDeadline)
	defer cancel()
	return r.RemoveFile(ctx, LockFile, own)
}

// checkLocks returns a LockedError when another lock is in the way. Locks that are proven dead are removed. own, if not
// zero, is this process's lock.
func (r *Repository) checkLocks(ctx context.Context, o *LockOptions, own ID, suspects map[ID]time.Time) error {
	locks, err := r.readableLocks(ctx)
	if err != nil {
		return err
	}
	now, listed := r.clock.Now(), own.IsZero()
	var held error
	for _, l := range locks {
		if l.ID == own {
			listed = true
			if skew := now.Sub(l.stored).Abs(); !l.stored.IsZero() && skew > maxClockSkew {
				return fmt.Errorf("%w: by %s", ErrClockSkew, skew.Round(time.Second))
			}
			continue
		}
		conflict := o.Exclusive || l.Exclusive
		if r.dead(o, l, now, suspects) {
			err := r.RemoveFile(ctx, LockFile, l.ID)
			if err == nil {
				continue
			}
			if conflict {
				return fmt.Errorf("%w; it is proven dead but could not be removed: %w", &LockedError{l, now.Sub(l.Time)}, err)
			}
		}
		if conflict && held == nil {
			held = &LockedError{l, now.Sub(l.Time)}
		}
	}
	if held != nil || listed {
		return held
	}
	return r.lockThere(ctx, own)
}

// lockThere asks for a lock that was just written and that the store did not list: others would not see it either.
func (r *Repository) lockThere(ctx context.Context, own ID) error {
	found, err := exists(ctx, r.store, LockFile.Key(own))
	if err == nil && !found {
		err = fmt.Errorf("%w: the store confirmed lock %s and does not have it", ErrUnverified, own.Short())
	}
	return err
}

// dead reports whether a lock's process is proven to have ended: its host is known to be dead, or the lock is old and
// the same file was there two looks ago. A process that is alive would have replaced the file in between.
func (r *Repository) dead(o *LockOptions, l LockInfo, now time.Time, suspects map[ID]time.Time) bool {
	if o.DeadHosts != nil && o.DeadHosts(l.Host) {
		return true
	}
	if now.Sub(l.Time) <= staleAge {
		return false
	}
	first, seen := suspects[l.ID]
	if !seen {
		suspects[l.ID] = now
	}
	return seen && now.Sub(first) >= refreshEvery
}

// readableLocks tries several times: a lock that cannot be read may belong to anybody.
func (r *Repository) readableLocks(ctx context.Context) ([]LockInfo, error) {
	for attempt := 0; ; attempt++ {
		locks, err := r.Locks(ctx)
		if err == nil || ctx.Err() != nil {
			return locks, err
		}
		if attempt == len(unreadableWaits) || !errors.Is(err, ErrDamaged) {
			return nil, fmt.Errorf("read the locks of the repository: %w", err)
		}
		if err := sleep(ctx, r.clock, unreadableWaits[attempt]); err != nil {
			return nil, err
		}
	}
}

// Context ends when the lock's ends: by Unlock, with the context given to Lock, or, with the cause ErrLockLost, when it
// could not be kept. Whatever needs the lock runs under it.
func (l *Lock) Context() context.Context { return l.ctx }

// Missing reports that the store did not allow a lock to be written, and that there is none.
func (l *Lock) Missing() bool { return l.missing }

// Unlock ends the lock's context and deletes the lock, within a minute, even when ctx has ended. It may be called more
// than once. A lock that was not confirmed yet never is, and what waits for it fails.
func (l *Lock) Unlock(ctx context.Context) error {
	l.once.Do(func() {
		l.cancel(context.Canceled)
		<-l.done
		if l.missing {
			return
		}
		if l.unconfirmed == nil {
			l.left[l.id] = true
		}
		for id := range l.left {
			if err := l.repo.removeLock(ctx, id); err != nil {
				l.result = errors.Join(l.result, fmt.Errorf("unlock the repository: %w", err))
			}
		}
	})
	return l.result
}

// keep refreshes the lock until its context ends. It looks at the clock more often than it refreshes: a machine may
// sleep in between.
func (l *Lock) keep() {
	defer close(l.done)
	for sleep(l.ctx, l.repo.clock, lockTick) == nil {
		age := l.repo.clock.Now().Sub(l.at)
		var err error
		switch {
		case age >= refreshableAt:
			err = l.rescue()
			if err != nil {
				err = fmt.Errorf("%w: it is %s old: %w", ErrLockLost, age.Round(time.Second), err)
			}
		case age >= refreshEvery:
			err = l.refresh()
		}
		if errors.Is(err, ErrLockLost) {
			l.cancel(err)
			return
		}
	}
}

// refresh replaces the lock by a new one; there is always one. A failure is tried again at the next tick.
func (l *Lock) refresh() error {
	ctx, cancel := context.WithTimeout(l.ctx, lockDeadline)
	defer cancel()
	at := l.repo.clock.Now()
	next, err := l.repo.writeLock(ctx, &l.o)
	if err != nil {
		return err
	}
	return l.adopt(ctx, next, at)
}

// adopt makes next the lock and deletes the one before. If that one is gone, somebody took this process for dead, and
// may hold a lock now that must not be beside this one.
func (l *Lock) adopt(ctx context.Context, next ID, at time.Time) error {
	old := l.id
	l.id, l.at = next, at
	err := l.repo.store.Delete(ctx, LockFile.Key(old))
	if err == nil {
		return nil
	}
	if !errors.Is(err, ErrNotFound) {
		l.left[old] = true
		return err
	}
	locks, err := l.repo.Locks(ctx)
	if err != nil {
		return err
	}
	for _, other := range locks {
		if other.ID != next && !l.left[other.ID] && (other.Exclusive || l.o.Exclusive) {
			return fmt.Errorf("%w: somebody removed it, and host %q holds one now", ErrLockLost, other.Host)
		}
	}
	return nil
}

// rescue refreshes a lock that is so old that others may take it for dead: only if it is still there, before and after.
func (l *Lock) rescue() error {
	ctx, cancel := context.WithTimeout(l.ctx, lockDeadline)
	defer cancel()
	if err := l.stillThere(ctx); err != nil {
		return err
	}
	at := l.repo.clock.Now()
	next, err := l.repo.writeLock(ctx, &l.o)
	if err != nil {
		return err
	}
	if err = sleep(ctx, l.repo.clock, settle); err == nil {
		err = l.stillThere(ctx)
	}
	if err != nil {
		l.left[next] = true
		return err
	}
	return l.adopt(ctx, next, at)
}

func (l *Lock) stillThere(ctx context.Context) error {
	found, err := exists(ctx, l.repo.store, LockFile.Key(l.id))
	if err == nil && !found {
		err = fmt.Errorf("lock %s was removed", l.id.Short())
	}
	return err
}
