package repo

import (
	"fmt"

	"example.com/pvcbackup/blobstore"
)

// condition is an error to compare with errors.Is; it carries what a reconciler reports.
type condition struct {
	text, reason string
	terminal     bool
}

func (c *condition) Error() string { return c.text }

// Terminal reports whether trying again cannot help.
func (c *condition) Terminal() bool { return c.terminal }

// Reason is a condition reason.
func (c *condition) Reason() string { return c.reason }

// Errors to compare with errors.Is.
var (
	// ErrNotFound is blobstore.ErrNotFound: a blob that no index lists, a file or a run that is not there.
	ErrNotFound = blobstore.ErrNotFound
	// ErrAbsent means that there is proven to be no repository.
	ErrAbsent error = &condition{"there is no repository here", "RepositoryAbsent", true}
	// ErrAlreadyInitialised means that Init found a repository.
	ErrAlreadyInitialised error = &condition{"there is a repository here already", "RepositoryExists", true}
	// ErrHalfInitialised means that keys, snapshots or an ownership marker exist without a config.
	ErrHalfInitialised error = &condition{"the repository has no config, but other files of it exist: restore the config, or remove the files if nothing is to be kept", "RepositoryBroken", true}
	// ErrWrongPassword means that no key file opens with the password.
	ErrWrongPassword error = &condition{"no key of the repository opens with this password", "WrongPassword", true}
	// ErrKeyInUse means that a key cannot be removed, because it is needed to open the repository.
	ErrKeyInUse error = &condition{"the key is in use", "KeyInUse", true}
	// ErrForeignOwner means that the ownership marker names somebody else.
	ErrForeignOwner error = &condition{"the repository belongs to somebody else", "ForeignRepository", true}
	// ErrVersion means a repository version that cannot be read, or not be written.
	ErrVersion error = &condition{"the repository's version is not supported", "RepositoryVersion", true}
	// ErrDamaged means that stored bytes are not what was written. See DamagedError.
	ErrDamaged error = &condition{"stored data is damaged", "RepositoryDamaged", true}
	// ErrUnverified means that something a run wrote is not in the store as it was written.
	ErrUnverified error = &condition{"what was written cannot be found in the store as it was written", "WriteNotVerified", false}
	// ErrLocked means that another process holds the repository. See LockedError.
	ErrLocked error = &condition{"the repository is locked", "RepositoryLocked", false}
	// ErrLockLost is the cause of the end of a lock's context when the lock could not be kept.
	ErrLockLost error = &condition{"the lock on the repository was lost", "RepositoryLockLost", false}
	// ErrClockSkew means that this machine's clock and the store's differ too much for locks to work.
	ErrClockSkew error = &condition{"this machine's clock and the store's differ too much: synchronise them", "ClockSkew", false}
)

// DamagedError names the stored file whose content is not what was written. errors.Is(err, ErrDamaged) holds.
type DamagedError struct {
	File string // the object's key
	Err  error
}

func (e *DamagedError) Error() string { return fmt.Sprintf("%s is damaged: %v", e.File, e.Err) }

// Unwrap gives the cause.
func (e *DamagedError) Unwrap() []error { return []error{ErrDamaged, e.Err} }

func damaged(file, format string, args ...any) error {
	return &DamagedError{File: file, Err: fmt.Errorf(format, args...)}
}
