package repo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"
)

// lockJSON is the content of a file below locks/.
type lockJSON struct {
	Time      time.Time `json:"time"`
	Exclusive bool      `json:"exclusive"`
	Hostname  string    `json:"hostname"`
	Username  string    `json:"username"`
	PID       int       `json:"pid"`
	UID       uint32    `json:"uid,omitempty"`
	GID       uint32    `json:"gid,omitempty"`
}

func parseLock(text []byte) (LockInfo, error) {
	var l lockJSON
	if err := json.Unmarshal(text, &l); err != nil {
		return LockInfo{}, err
	}
	return LockInfo{Time: l.Time, Exclusive: l.Exclusive, Host: l.Hostname, Username: l.Username, PID: l.PID}, nil
}

// LockInfo describes a lock in the store.
type LockInfo struct {
	ID        ID
	Time      time.Time // when it was written or last refreshed, by its holder's clock
	Exclusive bool
	Host      string
	Username  string
	PID       int
	stored    time.Time // when the store received it
}

func (l LockInfo) kind() string {
	if l.Exclusive {
		return "an exclusive"
	}
	return "a shared"
}

// LockedError says who holds the repository. errors.Is(err, ErrLocked) holds.
type LockedError struct {
	LockInfo
	Age time.Duration // since Time
}

func (e *LockedError) Error() string {
	hint := "wait until it is done"
	if e.Age > staleAge {
		hint = "it has not been refreshed for so long that its process has probably ended: if that is certain, run restic unlock"
	}
	return fmt.Sprintf("%v: process %d on host %q holds %s lock (%s), last refreshed %s ago; %s",
		ErrLocked, e.PID, e.Host, e.kind(), e.ID.Short(), e.Age.Round(time.Second), hint)
}

// Unwrap gives ErrLocked.
func (e *LockedError) Unwrap() error { return ErrLocked }

// RetryAfter is a good time to try again.
func (e *LockedError) RetryAfter() time.Duration { return time.Minute }

// Locks reads all locks. Empty objects and locks that disappear meanwhile are passed over; a damaged one is an error.
func (r *Repository) Locks(ctx context.Context) ([]LockInfo, error) {
	files, err := collectFiles(ctx, r.store, LockFile)
	if err != nil {
		return nil, err
	}
	var locks []LockInfo
	for _, f := range files {
		if f.Size == 0 {
			continue // some stores leave empty objects behind
		}
		text, err := r.LoadUnpacked(ctx, LockFile, f.ID)
		if errors.Is(err, ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		l, err := parseLock(text)
		if err != nil {
			return nil, damaged(LockFile.Key(f.ID), "%w", err)
		}
		l.ID, l.stored = f.ID, f.ModTime
		locks = append(locks, l)
	}
	return locks, nil
}

// writeLock writes a lock of this process.
func (r *Repository) writeLock(ctx context.Context, o *LockOptions) (ID, error) {
	text, err := json.Marshal(lockJSON{
		Time: r.clock.Now(), Exclusive: o.Exclusive, Hostname: o.Host, Username: o.Username,
		PID: os.Getpid(), UID: uint32(max(0, os.Getuid())), GID: uint32(max(0, os.Getgid())),
	})
	if err != nil {
		return ID{}, err
	}
	f, err := r.saveUnpacked(ctx, LockFile, text)
	return f.ID, err
}
