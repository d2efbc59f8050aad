package kube

import (
	"errors"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var (
	// ErrNamespaceGone marks the answer to a create in a namespace that is
	// missing or being deleted.
	ErrNamespaceGone = errors.New("the namespace is missing or being deleted")
	// ErrUnsettled marks an object that a create found present and the
	// following read did not.
	ErrUnsettled = errors.New("the object exists for a create and not for a read")
)

// NotServed reports whether err says that the server has no such API. A client
// whose REST mapping is warm sees that as a 404 that differs from "no such
// object" in its cause alone, so a bare IsNotFound would take an uninstalled
// API for a finished deletion.
func NotServed(err error) bool {
	if err == nil {
		return false
	}
	if meta.IsNoMatchError(err) {
		return true
	}
	return apierrors.IsNotFound(err) && apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse)
}

// Gone reports whether err proves that the object does not exist.
func Gone(err error) bool {
	return apierrors.IsNotFound(err) && !NotServed(err) && !errors.Is(err, ErrNamespaceGone)
}

// namespaceGone judges the error of a create. Its 404 is never about the
// object itself.
func namespaceGone(err error) bool {
	if NotServed(err) {
		return false
	}
	return apierrors.IsNotFound(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}
