package snapshot

import (
	"errors"
	"time"

	"example.com/pvcbackup/snapshot/internal/kube"
)

// Kind is a class of failure. The Err values of this package and of
// snapshot/stage are Kinds; errors.Is(err, ErrForeign) finds them.
type Kind struct {
	reason   string
	terminal bool
	after    time.Duration
	text     string
}

// NewKind returns a Kind. reason is a CamelCase condition reason, terminal says
// that trying again changes nothing, after is when to look again (zero: the
// caller's own back-off), text finishes the sentence "the call failed because".
func NewKind(reason string, terminal bool, after time.Duration, text string) *Kind {
	return &Kind{reason: reason, terminal: terminal, after: after, text: text}
}

// Error implements error.
func (k *Kind) Error() string { return k.text }

// Terminal reports whether trying again changes nothing.
func (k *Kind) Terminal() bool { return k.terminal }

// Reason is the condition reason, in CamelCase.
func (k *Kind) Reason() string { return k.reason }

// RetryAfter is when to look again; zero leaves it to the caller's back-off.
func (k *Kind) RetryAfter() time.Duration { return k.after }

const (
	lookAgain = 30 * time.Second
	lookSoon  = time.Second
	lookLater = time.Minute
)

var (
	// ErrInvalid is a request that no server could fulfil. Terminal.
	ErrInvalid = NewKind("InvalidRequest", true, 0, "the request is invalid")
	// ErrForeign is an object of the wanted name that is not ours. It is never
	// adopted, changed or deleted. Terminal.
	ErrForeign = NewKind("ForeignObject", true, 0, "the object belongs to somebody else")
	// ErrChanged is an object of ours whose spec was changed after its creation;
	// the API server allows that for a VolumeSnapshot's class. Terminal.
	ErrChanged = NewKind("ObjectChanged", true, 0, "the object was changed after its creation")
	// ErrNotInstalled is an API that the server does not serve: never installed,
	// or away at this moment. It is not an answer about any object, so a
	// deletion that ends in it is not done. Look again in a minute.
	ErrNotInstalled = NewKind("SnapshotAPINotInstalled", false, lookLater, "the API is not served by this cluster")
	// ErrNamespaceGone is a create in a namespace that is missing or being
	// deleted. Terminal.
	ErrNamespaceGone = NewKind("NamespaceTerminating", true, 0, "the namespace is missing or being deleted")
	// ErrUnsettled is an object that a create found present and the next read
	// did not: a cache behind, or a deletion in between. Look again in a second.
	ErrUnsettled = NewKind("ObjectUnsettled", false, lookSoon, "the object is appearing or disappearing")

	// ErrClaimMissing is a claim that does not exist (yet). Look again in 30 s.
	ErrClaimMissing = NewKind("ClaimMissing", false, lookAgain, "the claim does not exist")
	// ErrClaimUnbound is a claim without a volume (yet). Look again in 30 s.
	ErrClaimUnbound = NewKind("ClaimUnbound", false, lookAgain, "the claim is not bound to a volume")
	// ErrClaimLost is a claim whose volume is gone. Terminal.
	ErrClaimLost = NewKind("ClaimLost", true, 0, "the claim has lost its volume")
	// ErrClaimNotCSI is a claim whose volume is no CSI volume: it has no
	// VolumeSnapshots. Terminal.
	ErrClaimNotCSI = NewKind("ClaimNotCSI", true, 0, "the claim's volume is not a CSI volume")
	// ErrClaimDeleting is a claim that is being deleted. Terminal.
	ErrClaimDeleting = NewKind("ClaimDeleting", true, 0, "the claim is being deleted")

	// ErrClassMissing is no VolumeSnapshotClass for the driver, or none of the
	// name asked for. Terminal.
	ErrClassMissing = NewKind("SnapshotClassMissing", true, 0, "there is no such VolumeSnapshotClass")
	// ErrClassAmbiguous is more than one VolumeSnapshotClass to choose from.
	// Terminal.
	ErrClassAmbiguous = NewKind("SnapshotClassAmbiguous", true, 0, "there is more than one VolumeSnapshotClass")
	// ErrClassMismatch is a VolumeSnapshotClass of another driver. Terminal.
	ErrClassMismatch = NewKind("SnapshotClassMismatch", true, 0, "the VolumeSnapshotClass is of another driver")
)

// Error is a failure of a known Kind, about one object. errors.Is finds its
// Kind and its cause.
type Error struct {
	// Kind is the class of the failure; never nil.
	*Kind
	// Subject is the object, as "VolumeSnapshot namespace/name".
	Subject string
	// Problem says what is wrong and what to do. Empty: the Kind's text.
	Problem string
	// Err is the cause; may be nil.
	Err error
}

// Error implements error.
func (e *Error) Error() string {
	text := e.Problem
	if text == "" {
		text = e.text
	}
	if e.Subject != "" {
		text = e.Subject + ": " + text
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns the Kind and the cause.
func (e *Error) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Err}
}

// IsGone reports whether err proves that the object does not exist. Unlike
// apierrors.IsNotFound it is false when the API itself is not served.
func IsGone(err error) bool { return kube.Gone(err) }

// IsNotServed reports whether err says that the server has no such API.
func IsNotServed(err error) bool { return kube.NotServed(err) }

// APIError gives an API server's answer about subject its Kind: ErrNotInstalled,
// ErrNamespaceGone or ErrUnsettled. Any other error is returned wrapped, with
// subject and op named; nil stays nil.
func APIError(op, subject string, err error) error {
	if err == nil {
		return nil
	}
	for _, known := range []struct {
		is   bool
		kind *Kind
	}{
		{kube.NotServed(err), ErrNotInstalled},
		{errors.Is(err, kube.ErrNamespaceGone), ErrNamespaceGone},
		{errors.Is(err, kube.ErrUnsettled), ErrUnsettled},
	} {
		if known.is {
			return &Error{Kind: known.kind, Subject: subject, Problem: op + " failed because " + known.kind.text, Err: err}
		}
	}
	return &callError{op: op, subject: subject, err: err}
}

type callError struct {
	op, subject string
	err         error
}

func (e *callError) Error() string { return e.op + " " + e.subject + ": " + e.err.Error() }
func (e *callError) Unwrap() error { return e.err }
