package stage

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"example.com/pvcbackup/snapshot"
	"example.com/pvcbackup/snapshot/internal/kube"
)

// Ensure creates the claim from a snapshot once, or finds the one of that name
// and verifies it; it never updates the claim. What the server stored is
// compared with what was sent: a claim without its data source is deleted again
// and is ErrSourceDropped. A claim that is not this owner's, or of another
// source, is ErrForeign.
//
// It does not wait for Bound: under WaitForFirstConsumer that comes after the
// first Pod. Once the claim is bound, its volume's reclaim policy is set to
// Delete, so that no volume stays behind.
func (c *Client) Ensure(ctx context.Context, r Request) (Observation, error) {
	if err := r.validate(); err != nil {
		return Observation{}, err
	}
	want := r.build()
	return c.ensure(ctx, want, func(got *corev1.PersistentVolumeClaim) error {
		return c.verifySource(ctx, want, got)
	})
}

// EnsureEmpty creates an empty claim once, or finds the one of that name and
// verifies it, by the same rules.
func (c *Client) EnsureEmpty(ctx context.Context, r EmptyRequest) (Observation, error) {
	if err := r.validate(); err != nil {
		return Observation{}, err
	}
	return c.ensure(ctx, r.build(), func(got *corev1.PersistentVolumeClaim) error {
		if got.Spec.DataSourceRef != nil || got.Spec.DataSource != nil {
			return foreign(got, "it has a data source, so it is no empty claim of ours")
		}
		return nil
	})
}

func (c *Client) ensure(ctx context.Context, want *corev1.PersistentVolumeClaim,
	verify func(got *corev1.PersistentVolumeClaim) error) (Observation, error) {
	subject := subjectOf(want.Namespace, want.Name)
	sent := want.DeepCopy()
	got, _, err := kube.Ensure(ctx, c.calls, sent, &corev1.PersistentVolumeClaim{})
	if err != nil {
		return Observation{}, snapshot.APIError("create", subject, err)
	}
	if err := verifyOurs(want, got); err != nil {
		return Observation{}, err
	}
	if err := verify(got); err != nil {
		return Observation{}, err
	}
	if err := c.reclaim(ctx, got); err != nil {
		return Observation{}, err
	}
	return c.observation(ctx, got)
}

func verifyOurs(want, got *corev1.PersistentVolumeClaim) error {
	owner := snapshot.Owner{UID: uidOf(want)}
	if err := owner.Refuse(subjectOf(got.Namespace, got.Name), got); err != nil {
		return err
	}
	if w, g := want.Labels[PurposeLabel], got.Labels[PurposeLabel]; w != g {
		return foreign(got, fmt.Sprintf("label %s is %q and not %q", PurposeLabel, g, w))
	}
	if w, g := modeOf(want), modeOf(got); w != g {
		return foreign(got, fmt.Sprintf("spec.volumeMode is %q and not %q", g, w))
	}
	return nil
}

// verifySource compares the data source with what the server kept of it. A
// claim of ours that has none, and is not being deleted, is removed: nothing
// must ever mount it.
func (c *Client) verifySource(ctx context.Context, want, got *corev1.PersistentVolumeClaim) error {
	if apiequality.Semantic.DeepEqual(want.Spec.DataSourceRef, got.Spec.DataSourceRef) {
		return nil
	}
	if ref := got.Spec.DataSourceRef; ref != nil {
		return foreign(got, fmt.Sprintf("spec.dataSourceRef is %s %q and not %s %q",
			ref.Kind, ref.Name, want.Spec.DataSourceRef.Kind, want.Spec.DataSourceRef.Name))
	}
	dropped := &snapshot.Error{Kind: ErrSourceDropped, Subject: subjectOf(got.Namespace, got.Name), Problem: fmt.Sprintf(
		"the API server removed spec.dataSourceRef (%s %q), so the volume would be empty; the claim was deleted again; "+
			"use a snapshot of the claim's own namespace, or turn on what the reference needs",
		want.Spec.DataSourceRef.Kind, want.Spec.DataSourceRef.Name)}
	if got.DeletionTimestamp != nil {
		return dropped
	}
	if err := c.calls.DeleteUID(ctx, got, got.UID); err != nil && !snapshot.IsGone(err) {
		return errors.Join(dropped, snapshot.APIError("delete", dropped.Subject, err))
	}
	return dropped
}
