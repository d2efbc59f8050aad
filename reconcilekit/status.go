package reconcilekit

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// StatusOptions are the options of [NewStatusWriter]. The zero value is ready to use.
type StatusOptions struct {
	// Timeout is the deadline of one write; 10 seconds when zero.
	Timeout time.Duration
	// FieldOwner is the field manager of the writes; the client's default when empty.
	FieldOwner client.FieldOwner
}

// StatusWriter writes the status of objects.
type StatusWriter struct {
	client  client.StatusClient
	options StatusOptions
}

// NewStatusWriter returns a writer that uses c.
func NewStatusWriter(c client.StatusClient, options StatusOptions) *StatusWriter {
	if options.Timeout <= 0 {
		options.Timeout = 10 * time.Second
	}
	return &StatusWriter{client: c, options: options}
}

// Write sends the difference between the status of before and that of after,
// two states of one object, as one merge patch on the status subresource.
//
// The patch is locked to the resourceVersion of after, the state that was
// decided upon, and fails with a conflict when the object has changed since. No
// difference is no write. The write has a deadline of its own and happens even
// though ctx has ended. An object that is gone while being deleted, or that has
// lost its last finalizer, is success.
//
// On success after has the new resourceVersion; before is never changed, so a
// reconciler that writes twice takes a new copy of after in between.
func (w *StatusWriter) Write(ctx context.Context, before, after client.Object) error {
	deleting := !after.GetDeletionTimestamp().IsZero()
	if deleting && len(after.GetFinalizers()) == 0 {
		return nil
	}
	patch, err := statusPatch(before, after)
	if err != nil {
		return fmt.Errorf("comparing the status of %s: %w", describe(after), err)
	}
	if patch == nil {
		return nil
	}
	answer := after.DeepCopyObject().(client.Object)
	err = w.send(ctx, answer, client.RawPatch(types.MergePatchType, patch))
	switch {
	case err == nil:
		after.SetResourceVersion(answer.GetResourceVersion())
		return nil
	case deleting && (IsGone(err) || uidPreconditionFailed(err)):
		return nil
	default:
		return fmt.Errorf("writing the status of %s: %w", describe(after), err)
	}
}

func (w *StatusWriter) send(ctx context.Context, obj client.Object, patch client.Patch) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), w.options.Timeout)
	defer cancel()
	if w.options.FieldOwner == "" {
		return w.client.Status().Patch(ctx, obj, patch)
	}
	return w.client.Status().Patch(ctx, obj, patch, w.options.FieldOwner)
}

// statusPatch returns nil when there is nothing to write.
func statusPatch(before, after client.Object) ([]byte, error) {
	if after.GetResourceVersion() == "" {
		return nil, errNeverRead
	}
	if equality.Semantic.DeepEqual(before, after) {
		return nil, nil // what is nearly always so costs little
	}
	from, err := statusOf(before)
	if err != nil {
		return nil, err
	}
	to, err := statusOf(after)
	if err != nil {
		return nil, err
	}
	if equality.Semantic.DeepEqual(from, to) {
		return nil, nil
	}
	data, err := client.MergeFrom(from).Data(to)
	if err != nil {
		return nil, err
	}
	var patch map[string]any
	if err := json.Unmarshal(data, &patch); err != nil || len(patch) == 0 {
		return nil, err
	}
	patch["metadata"] = map[string]any{"resourceVersion": after.GetResourceVersion()}
	return json.Marshal(patch)
}

// statusOf returns obj reduced to its status.
func statusOf(obj client.Object) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return nil, err
	}
	reduced := map[string]any{"apiVersion": "v1", "kind": "Status"}
	if status, ok := content["status"]; ok {
		reduced["status"] = status
	}
	return &unstructured.Unstructured{Object: reduced}, nil
}
