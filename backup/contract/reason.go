package contract

// Reasons of failed results. They become condition reasons.
const (
	// ReasonCannotRead: files could not be read with the mover's rights.
	ReasonCannotRead = "MoverCannotRead"
	// ReasonCannotWrite: the target could not be written with the mover's rights.
	ReasonCannotWrite = "MoverCannotWrite"
	// ReasonRepositoryMissing: a repository that was there before, or that must be there, is not.
	ReasonRepositoryMissing = "RepositoryMissing"
	// ReasonRepositoryBroken: the repository is half initialised or damaged.
	ReasonRepositoryBroken = "RepositoryBroken"
	// ReasonRepositoryForeign: the repository belongs to somebody else, or is not the one seen before.
	ReasonRepositoryForeign = "RepositoryForeign"
	// ReasonWrongPassword: no key of the repository opens with the password.
	ReasonWrongPassword = "WrongPassword"
	// ReasonStoreDenied: the store refused the credentials, or they may not do what is needed.
	ReasonStoreDenied = "StoreDenied"
	// ReasonKeyCannotDelete: the credentials may not delete. Only maintenance fails with it.
	ReasonKeyCannotDelete = "KeyCannotDelete"
	// ReasonStoreUnavailable: the store did not answer, or answered with errors, for too long.
	ReasonStoreUnavailable = "StoreUnavailable"
	// ReasonStoreInvalid: the URL is wrong or not allowed in a mover.
	ReasonStoreInvalid = "StoreInvalid"
	// ReasonLocked: the repository was locked for too long.
	ReasonLocked = "RepositoryLocked"
	// ReasonVerifyFailed: what was written could not be read back as it was written.
	ReasonVerifyFailed = "VerifyFailed"
	// ReasonSnapshotNotFound: no snapshot matches the selection; the store was read without error.
	ReasonSnapshotNotFound = "SnapshotNotFound"
	// ReasonTargetNotEmpty: the target holds files and no overwrite policy was chosen.
	ReasonTargetNotEmpty = "TargetNotEmpty"
	// ReasonNoSpace: the target is full.
	ReasonNoSpace = "NoSpaceLeft"
	// ReasonInvalidRequest: the mover does not understand the request.
	ReasonInvalidRequest = "InvalidRequest"
	// ReasonInterrupted: the mover was told to stop.
	ReasonInterrupted = "Interrupted"
	// ReasonInternal: anything else.
	ReasonInternal = "MoverFailed"
)

// Exit codes. Where restic has a code for the same thing, it is the same code.
const (
	ExitOK = 0
	// ExitFailed: the operation failed; the message says why.
	ExitFailed = 1
	// ExitUsage: the command line or the request is wrong.
	ExitUsage = 2
	// ExitPartial: a partial snapshot was recorded because some files could not be read.
	ExitPartial = 3
	// ExitNoRepository: there is no repository, proven.
	ExitNoRepository = 10
	// ExitLocked: the repository is locked.
	ExitLocked = 11
	// ExitWrongPassword: no key opens with the password.
	ExitWrongPassword = 12
	// ExitInterrupted: the operation was told to stop.
	ExitInterrupted = 130
)

// ExitCode returns the code that a program ends with for this result.
func (r Result) ExitCode() int {
	switch r.Outcome {
	case Succeeded, Empty:
		return ExitOK
	case Partial:
		return ExitPartial
	}
	codes := map[string]int{
		ReasonInvalidRequest: ExitUsage, ReasonStoreInvalid: ExitUsage, ReasonRepositoryMissing: ExitNoRepository,
		ReasonLocked: ExitLocked, ReasonWrongPassword: ExitWrongPassword, ReasonInterrupted: ExitInterrupted,
	}
	if code, ok := codes[r.Reason]; ok {
		return code
	}
	return ExitFailed
}
