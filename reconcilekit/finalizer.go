package reconcilekit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Patcher is the part of client.Client that finalizers need.
type Patcher interface {
	Patch(ctx context.Context, obj client.Object, patch client.Patch, opts ...client.PatchOption) error
}

// ErrDeleting is returned by [EnsureFinalizer] for an object that is being
// deleted. Its class is [ClassConflict]: reading the object again shows the deletion.
var ErrDeleting error = &classified{
	class: ClassConflict, reason: ReasonBeingDeleted,
	err: errors.New("the object is being deleted and takes no new finalizer"),
}

// EnsureFinalizer puts the finalizer name on obj and reports whether it had to
// be added. Call it before anything is done that the finalizer is to undo.
//
// It fails with [ErrDeleting] when obj is being deleted, also when only the API
// server knows of it, and with a conflict when obj is out of date, so that it
// never undoes somebody else's change. On success obj has the new finalizers
// and resourceVersion; nothing that obj may share with a cache is written to.
func EnsureFinalizer(ctx context.Context, c Patcher, obj client.Object, name string) (added bool, err error) {
	if slices.Contains(obj.GetFinalizers(), name) {
		return false, nil
	}
	if !obj.GetDeletionTimestamp().IsZero() {
		return false, fmt.Errorf("adding the finalizer %q to %s: %w", name, describe(obj), ErrDeleting)
	}
	wanted := append(slices.Clone(obj.GetFinalizers()), name)
	err = patchFinalizers(ctx, c, obj, wanted)
	switch {
	case err == nil:
		return true, nil
	case refusedBecauseDeleting(err):
		return false, fmt.Errorf("adding the finalizer %q to %s: %w", name, describe(obj), ErrDeleting)
	default:
		return false, fmt.Errorf("adding the finalizer %q to %s: %w", name, describe(obj), err)
	}
}

// DropFinalizer removes the finalizer name from obj, after which an object that
// is being deleted may be gone: write no status to it any more.
//
// An object that is already gone, or replaced by another of its name, is
// success. It fails with a conflict when obj is out of date. On success obj has
// the remaining finalizers and its new resourceVersion; nothing that obj may
// share with a cache is written to.
func DropFinalizer(ctx context.Context, c Patcher, obj client.Object, name string) error {
	if !slices.Contains(obj.GetFinalizers(), name) {
		return nil
	}
	rest := slices.DeleteFunc(slices.Clone(obj.GetFinalizers()), func(f string) bool { return f == name })
	err := patchFinalizers(ctx, c, obj, rest)
	deleting := !obj.GetDeletionTimestamp().IsZero()
	switch {
	case err == nil:
		return nil
	case IsGone(err), deleting && uidPreconditionFailed(err):
		obj.SetFinalizers(rest)
		return nil
	default:
		return fmt.Errorf("removing the finalizer %q from %s: %w", name, describe(obj), err)
	}
}

// Finalize runs cleanup for an object that is being deleted and still has the
// finalizer name, and removes the finalizer once cleanup returns nil. It
// reports whether the finalizer is off; cleanup is called again until it is, so
// it has to take what is already cleaned up for success.
//
// An object that is not being deleted, or whose finalizer is off, is left alone:
// (false, nil) and (true, nil).
func Finalize(ctx context.Context, c Patcher, obj client.Object, name string, cleanup func(context.Context) error) (done bool, err error) {
	if obj.GetDeletionTimestamp().IsZero() {
		return false, nil
	}
	if !slices.Contains(obj.GetFinalizers(), name) {
		return true, nil
	}
	if err := cleanup(ctx); err != nil {
		return false, err
	}
	if err := DropFinalizer(ctx, c, obj, name); err != nil {
		return false, err
	}
	return true, nil
}

var errNeverRead = errors.New("it has no resourceVersion; read it from the API server first")

// patchFinalizers sends the whole list under the lock of the resourceVersion:
// without it a merge patch would drop finalizers that were added meanwhile.
func patchFinalizers(ctx context.Context, c Patcher, obj client.Object, finalizers []string) error {
	if obj.GetResourceVersion() == "" {
		return errNeverRead
	}
	metadata := map[string]any{"resourceVersion": obj.GetResourceVersion(), "finalizers": nil}
	if len(finalizers) > 0 {
		metadata["finalizers"] = finalizers
	}
	data, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return err
	}
	answer := obj.DeepCopyObject().(client.Object)
	if err := c.Patch(ctx, answer, client.RawPatch(types.MergePatchType, data)); err != nil {
		return err
	}
	obj.SetFinalizers(slices.Clone(answer.GetFinalizers()))
	obj.SetResourceVersion(answer.GetResourceVersion())
	return nil
}

func describe(obj client.Object) string {
	if obj.GetNamespace() == "" {
		return fmt.Sprintf("%q", obj.GetName())
	}
	return fmt.Sprintf("%q", obj.GetNamespace()+"/"+obj.GetName())
}
