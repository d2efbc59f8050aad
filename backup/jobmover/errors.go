package jobmover

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"example.com/pvcbackup/reconcilekit"
)

// Errors that Start and Poll wrap.
var (
	// ErrForeign: an object has the name of an attempt's Job and is not the owner's.
	ErrForeign = errors.New("the job belongs to somebody else")
	// ErrNamespaceTerminating: the namespace is being deleted or gone; nothing can be created in it.
	ErrNamespaceTerminating = errors.New("the namespace is being deleted")
	// ErrInvalidTask: no valid Job can be made of the task.
	ErrInvalidTask = errors.New("the task is not valid")
	// ErrForbidden: the API server refused to create the Job.
	ErrForbidden = errors.New("the job was refused")
)

// Error is an error of this package with a condition reason.
type Error struct {
	reason   string
	terminal bool
	text     string
	is       error
	err      error
}

// Error returns the sentence.
func (e *Error) Error() string {
	if e.err != nil {
		return e.text + ": " + e.err.Error()
	}
	return e.text
}

// Unwrap gives errors.Is and errors.As the error of this package and the one that caused it.
func (e *Error) Unwrap() []error {
	if e.err == nil {
		return []error{e.is}
	}
	return []error{e.is, e.err}
}

// Reason returns the CamelCase condition reason.
func (e *Error) Reason() string { return e.reason }

// Terminal reports whether trying the same again is useless.
func (e *Error) Terminal() bool { return e.terminal }

func invalidTask(format string, args ...any) error {
	return &Error{reason: "InvalidTask", terminal: true, text: fmt.Sprintf(format, args...), is: ErrInvalidTask}
}

func foreign(kind, namespace, name string) error {
	return &Error{reason: "ForeignJob", terminal: true, is: ErrForeign, text: fmt.Sprintf(
		"%s %s/%s exists and does not belong to this object: delete or rename it", kind, namespace, name)}
}

// createError says what a refused create means.
func createError(err error, namespace, name string) error {
	switch {
	// A 404 of a create is about the namespace: the object itself cannot be missing.
	case reconcilekit.IsNamespaceTerminating(err), reconcilekit.IsGone(err):
		return &Error{reason: "NamespaceTerminating", terminal: true, is: ErrNamespaceTerminating, err: err,
			text: fmt.Sprintf("namespace %s is being deleted or gone: no mover can run in it", namespace)}
	case apierrors.IsInvalid(err):
		return &Error{reason: "InvalidTask", terminal: true, is: ErrInvalidTask, err: err,
			text: fmt.Sprintf("the API server does not accept job %s/%s: correct the mover's settings", namespace, name)}
	case apierrors.IsForbidden(err):
		return &Error{reason: "MoverForbidden", is: ErrForbidden, err: err,
			text: fmt.Sprintf("job %s/%s was refused: check the operator's role and the namespace's quota", namespace, name)}
	}
	return fmt.Errorf("create job %s/%s: %w", namespace, name, err)
}
