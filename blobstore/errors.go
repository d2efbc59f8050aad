package blobstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sort"
	"strings"

	"gocloud.dev/gcerrors"
)

// Kind is the class of an [Error]. The zero value means that nothing is known
// about the cause; such errors count as transient.
type Kind uint8

// The kinds of errors. Each has an error of the same name for errors.Is.
const (
	KindUnknown     Kind = iota
	KindNotFound         // the store answered: it has no such object
	KindExists           // OnlyIfAbsent, and the object is there
	KindPermission       // credentials missing, wrong, or not allowed to do this
	KindUnavailable      // network, overload, silence: may work later
	KindCorrupt          // content differs from its digest or size, or the object is shorter than asked
	KindInvalid          // a key, URL or argument that can never work
	KindTooLarge         // larger than the caller's limit
	KindNoBucket         // the bucket, container or folder itself does not exist
	KindClockSkew        // the store refuses requests because the clocks differ
	KindUnsupported      // the store does not implement what was asked
	KindFull             // quota or disk is used up
	KindSource           // the reader given to Put failed
	KindCanceled         // the caller's context was cancelled
)

// Errors for errors.Is. They are matched by the kind of an [Error].
var (
	ErrNotFound    = errors.New("object not found")
	ErrExists      = errors.New("object exists already")
	ErrPermission  = errors.New("permission denied by the store")
	ErrUnavailable = errors.New("store unavailable")
	ErrCorrupt     = errors.New("content is not what it should be")
	ErrInvalid     = errors.New("invalid argument")
	ErrTooLarge    = errors.New("object larger than allowed")
	ErrNoBucket    = errors.New("bucket does not exist")
	ErrClockSkew   = errors.New("clock differs too much from the store's")
	ErrUnsupported = errors.New("not supported by the store")
	ErrFull        = errors.New("store is full")
	ErrSource      = errors.New("reading the content failed")
	ErrCanceled    = errors.New("cancelled")
)

type kindInfo struct {
	err      error
	reason   string
	terminal bool
}

func (k Kind) info() kindInfo {
	switch k {
	case KindNotFound:
		return kindInfo{ErrNotFound, "ObjectNotFound", false}
	case KindExists:
		return kindInfo{ErrExists, "ObjectExists", false}
	case KindPermission:
		return kindInfo{ErrPermission, "StorePermissionDenied", true}
	case KindCorrupt:
		return kindInfo{ErrCorrupt, "StoreContentCorrupt", false}
	case KindInvalid:
		return kindInfo{ErrInvalid, "StoreRequestInvalid", true}
	case KindTooLarge:
		return kindInfo{ErrTooLarge, "ObjectTooLarge", false}
	case KindNoBucket:
		return kindInfo{ErrNoBucket, "BucketNotFound", true}
	case KindClockSkew:
		return kindInfo{ErrClockSkew, "StoreClockSkew", false}
	case KindUnsupported:
		return kindInfo{ErrUnsupported, "StoreUnsupported", true}
	case KindFull:
		return kindInfo{ErrFull, "StoreFull", false}
	case KindSource:
		return kindInfo{ErrSource, "ContentUnreadable", false}
	case KindCanceled:
		return kindInfo{ErrCanceled, "Canceled", false}
	default:
		return kindInfo{ErrUnavailable, "StoreUnavailable", false}
	}
}

// String returns the kind as words in lower case.
func (k Kind) String() string { return k.info().err.Error() }

// transient says whether the same request may work a moment later.
func (k Kind) transient() bool { return k == KindUnknown || k == KindUnavailable }

// Error is what every method of [Store] returns. Its text is free of
// credentials; Unwrap leads to the driver's error, whose text may not be.
type Error struct {
	Op   string // "put", "get", "stat", "list", "delete", "open"
	Key  string // key or prefix, relative to the store; empty when it is about the bucket
	Kind Kind
	Err  error // the cause; may be nil
}

// Error returns a sentence with operation, key, kind and redacted cause.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Op)
	if e.Key != "" {
		fmt.Fprintf(&b, " %q", e.Key)
	}
	b.WriteString(": ")
	b.WriteString(e.Kind.String())
	if e.Err != nil {
		b.WriteString(": ")
		b.WriteString(redactText(e.Err.Error()))
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is matches the error of the kind, such as [ErrNotFound].
func (e *Error) Is(target error) bool { return target == e.Kind.info().err }

// Reason returns a CamelCase word for conditions, such as "BucketNotFound".
func (e *Error) Reason() string { return e.Kind.info().reason }

// Terminal says that trying again without changing something cannot help.
func (e *Error) Terminal() bool { return e.Kind.info().terminal }

// SchemeError says that a URL names a storage that this program has no driver for.
type SchemeError struct {
	Scheme    string   // of the URL
	Import    string   // package that brings the driver; empty when nobody has one
	Available []string // schemes that would work, sorted
}

// Error names the import to add and the schemes that are there.
func (e *SchemeError) Error() string {
	have := "none"
	if len(e.Available) > 0 {
		have = strings.Join(e.Available, ", ")
	}
	if e.Import == "" {
		return fmt.Sprintf("no driver knows the scheme %q; available: %s", e.Scheme, have)
	}
	return fmt.Sprintf("no driver for the scheme %q: add %s.Openers() to Options.Openers; available: %s", e.Scheme, e.Import, have)
}

// Is matches [ErrInvalid].
func (e *SchemeError) Is(target error) bool { return target == ErrInvalid }

// Reason returns "StoreSchemeUnknown".
func (e *SchemeError) Reason() string { return "StoreSchemeUnknown" }

// Terminal is always true: only another URL or another program helps.
func (e *SchemeError) Terminal() bool { return true }

func schemeError(scheme string, openers map[string]Opener) *SchemeError {
	const drivers = "example.com/pvcbackup/blobstore/drivers/"
	known := map[string]string{"s3": "s3", "gs": "gcs", "azblob": "azure", "file": "file", "mem": "mem"}
	e := &SchemeError{Scheme: scheme}
	if name, ok := known[scheme]; ok {
		e.Import = drivers + name
	}
	for s := range openers {
		e.Available = append(e.Available, s)
	}
	sort.Strings(e.Available)
	return e
}

// Invalid returns an *Error of [KindInvalid]; for drivers.
func Invalid(op, format string, args ...any) error {
	return &Error{Op: op, Kind: KindInvalid, Err: fmt.Errorf(format, args...)}
}

// classify finds the kind of a driver's error.
func (s *Store) classify(err error) Kind {
	var own *Error
	if errors.As(err, &own) {
		return own.Kind
	}
	if s.driver.Classify != nil {
		if k := s.driver.Classify(err); k != KindUnknown {
			return k
		}
	}
	var network net.Error
	if errors.As(err, &network) {
		return KindUnavailable // azureblob calls an unknown host NotFound
	}
	switch gcerrors.Code(err) {
	case gcerrors.NotFound:
		return KindNotFound
	case gcerrors.AlreadyExists, gcerrors.FailedPrecondition:
		return KindExists
	case gcerrors.PermissionDenied:
		return KindPermission
	case gcerrors.InvalidArgument:
		return KindInvalid
	case gcerrors.Unimplemented:
		return KindUnsupported
	case gcerrors.ResourceExhausted, gcerrors.DeadlineExceeded, gcerrors.Internal:
		return KindUnavailable
	}
	return KindUnknown
}

// wrap turns what a driver returned into an *Error. The end of the caller's
// context outranks whatever the driver made of it.
func (s *Store) wrap(ctx context.Context, op, key string, err error) *Error {
	var own *Error
	if errors.As(err, &own) {
		out := *own
		out.Op, out.Key = op, key
		if ctx.Err() == nil || own.Kind == KindSource {
			return &out
		}
	}
	if end := ctx.Err(); end != nil {
		return ended(op, key, end, err)
	}
	k := s.classify(err)
	switch {
	case k == KindUnknown:
		k = KindUnavailable
	case k == KindNotFound && (op == "list" || op == "put"):
		k = KindNoBucket
	case k == KindExists && op != "put":
		k = KindPermission // a lease, hold or retention rule stands against it
	}
	return &Error{Op: op, Key: key, Kind: k, Err: err}
}

// ended describes an operation that the caller's context ended: a passed
// deadline means that the store took too long, a cancellation is the caller's wish.
func ended(op, key string, end, last error) *Error {
	k := KindUnavailable
	if errors.Is(end, context.Canceled) {
		k = KindCanceled
	}
	if last != nil && !errors.Is(last, end) {
		end = fmt.Errorf("%w; last error: %w", end, last)
	}
	return &Error{Op: op, Key: key, Kind: k, Err: end}
}
