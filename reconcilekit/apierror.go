package reconcilekit

import (
	"errors"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// notServedWait is how long to wait for an API that is not installed: discovery
// is not free, and installing one takes somebody minutes.
const notServedWait = time.Minute

// Reasons of errors of the API server, as returned by [Reason].
const (
	ReasonNotServed            = "APINotServed"
	ReasonNamespaceTerminating = "NamespaceTerminating"
	ReasonBeingDeleted         = "BeingDeleted"
)

// IsGone reports whether err proves that the object asked for does not exist.
//
// It is stricter than a bare check for NotFound: it is false when the API
// itself is not served at the moment, and false for a join that holds any other
// error. Use it after get, patch and delete; a NotFound from create is about
// the namespace, never about the object.
func IsGone(err error) bool {
	if err == nil {
		return false
	}
	gone := true
	leaves(err, isStatus, func(leaf error) {
		gone = gone && isStatus(leaf) && apierrors.IsNotFound(leaf) && !notServedStatus(leaf)
	})
	return gone
}

// IsNotServed reports whether err says that the API of an object is not
// installed, or not served at the moment. Nothing is known then about the
// object. In a join, one such error is enough.
func IsNotServed(err error) bool {
	if err == nil {
		return false
	}
	found := false
	leaves(err, isStatus, func(leaf error) {
		found = found || notServedStatus(leaf) || meta.IsNoMatchError(leaf)
	})
	return found
}

// IsNamespaceTerminating reports whether err is the API server's refusal to
// create something in a namespace that is being deleted.
func IsNamespaceTerminating(err error) bool {
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// isStatus tells whether err itself is an answer of the API server.
func isStatus(err error) bool {
	_, ok := err.(apierrors.APIStatus)
	return ok
}

// notServedStatus tells an answer "no such path" from "no such object": both
// are 404, only the first comes without a Status of the API server's own.
func notServedStatus(err error) bool {
	return apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// judgeAPI judges err when it is itself an answer of the API server or of its
// discovery.
func judgeAPI(err error) (verdict, bool) {
	if isStatus(err) {
		return judgeStatus(err), true
	}
	switch err.(type) {
	case *meta.NoKindMatchError, *meta.NoResourceMatchError:
		return verdict{class: ClassWaiting, reason: ReasonNotServed, after: notServedWait}, true
	}
	return verdict{}, false
}

func judgeStatus(err error) verdict {
	reason := string(apierrors.ReasonForError(err))
	switch {
	case notServedStatus(err):
		return verdict{class: ClassWaiting, reason: ReasonNotServed, after: notServedWait}
	case apierrors.IsConflict(err):
		return verdict{class: ClassConflict, reason: reason}
	case refusedBecauseDeleting(err):
		return verdict{class: ClassConflict, reason: ReasonBeingDeleted}
	case IsNamespaceTerminating(err):
		return verdict{class: ClassTerminal, reason: ReasonNamespaceTerminating}
	case apierrors.IsInvalid(err):
		return verdict{class: ClassTerminal, reason: reason, invalid: true}
	case apierrors.IsTooManyRequests(err):
		return verdict{class: ClassWaiting, reason: "TooManyRequests", after: suggestedDelay(err)}
	case cannotSucceed(err):
		return verdict{class: ClassTerminal, reason: reason}
	default:
		return verdict{class: ClassTransient, reason: reason}
	}
}

// refusedBecauseDeleting recognises the 422 for adding a finalizer to an object
// that is being deleted: what was read is out of date, nothing is invalid.
func refusedBecauseDeleting(err error) bool {
	if !apierrors.IsInvalid(err) {
		return false
	}
	cause, ok := firstCause(err, "metadata.finalizers")
	return ok && strings.Contains(cause.Message, "being deleted")
}

func firstCause(err error, field string) (metav1.StatusCause, bool) {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return metav1.StatusCause{}, false
	}
	for _, c := range status.Status().Details.Causes {
		if c.Field == field {
			return c, true
		}
	}
	return metav1.StatusCause{}, false
}

// cannotSucceed lists the answers that the same request will always get. 403 is
// not among them: quotas and roles change without any event.
func cannotSucceed(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	switch status.Status().Code {
	case http.StatusBadRequest, http.StatusMethodNotAllowed, http.StatusNotAcceptable,
		http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType:
		return true
	default:
		return false
	}
}

func suggestedDelay(err error) time.Duration {
	seconds, ok := apierrors.SuggestsClientDelay(err)
	if !ok || seconds <= 0 {
		seconds = 1
	}
	return time.Duration(seconds) * time.Second
}

// uidPreconditionFailed recognises the 409 for an object that was replaced by,
// or removed before, another of its name.
func uidPreconditionFailed(err error) bool {
	if !apierrors.IsConflict(err) {
		return false
	}
	text := err.Error()
	return strings.Contains(text, "StorageError: invalid object") || strings.Contains(text, "UID in precondition")
}
