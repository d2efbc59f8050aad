package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/pvcbackup/reconcilekit"
)

const finalizer = "shares.example.com/folder"

// reconciler makes and removes folders below root.
type reconciler struct {
	client.Client
	root     string
	finisher *reconcilekit.Finisher
}

// Reconcile reads, decides and acts in step, and leaves all bookkeeping to the finisher.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	share := &Share{}
	if err := r.Get(ctx, req.NamespacedName, share); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	before := share.DeepCopy()
	outcome, err := r.step(ctx, share)
	return r.finisher.Finish(ctx, before, share, outcome, err, reconcilekit.Policy{})
}

func (r *reconciler) step(ctx context.Context, share *Share) (reconcilekit.Outcome, error) {
	path := filepath.Join(r.root, string(share.UID))
	if !share.DeletionTimestamp.IsZero() {
		_, err := reconcilekit.Finalize(ctx, r, share, finalizer, func(context.Context) error { return os.RemoveAll(path) })
		return reconcilekit.Outcome{}, err
	}
	// Before anything is made that it is to undo.
	if _, err := reconcilekit.EnsureFinalizer(ctx, r, share, finalizer); err != nil {
		return reconcilekit.Outcome{}, err
	}
	if strings.Contains(share.Spec.Folder, "/") || share.Spec.Folder == ".." {
		err := fmt.Errorf("spec.folder is %q: write a name without slashes", share.Spec.Folder)
		return reconcilekit.Outcome{}, reconcilekit.Terminal("BadFolder", err) // only an edit helps
	}
	path = filepath.Join(path, share.Spec.Folder)
	if err := os.MkdirAll(path, 0o700); err != nil {
		return reconcilekit.Outcome{}, err // says nothing about itself, so it is tried again with growing pauses
	}
	share.Status.Path = path
	return reconcilekit.Outcome{Ready: metav1.Condition{Status: metav1.ConditionTrue, Reason: "FolderMade"}}, nil
}
