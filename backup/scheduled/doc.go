// Package scheduled turns a schedule in an object's spec into runs, and their outcome into its status, for any kind.
//
// # What it does
//
// An object that embeds Spec and Status, and has the few methods of Object, is backed up by a Loop: it plans the next
// run, makes it step by step, records what came of it, keeps the repository in order, and cleans up when the object is
// deleted. The reference operator's PVCBackup is one such kind.
//
// # Minimal use
//
//	loop, err := scheduled.New(scheduled.Options{...})
//	result, err := loop.Reconcile(ctx, object) // from the embedder's own reconciler
//
// # Guarantees
//
// Reconciling a settled object writes nothing. Every run is decided on before anything is created for it. A success is
// recorded only for a result that says so. lastBackup never moves back, and moves only for a complete backup. A slot
// that fails never stops later ones; what failed is tried again by the next slot, an edit of the spec, or the trigger,
// and by nothing else. A generated key is created only when the store is proven to hold no repository, and never again.
//
// # RBAC
//
// What the packages backup, snapshot, snapshot/stage and backup/jobmover need, and:
//
//	secrets: create                 (generated keys; nothing is ever read)
//	pods: list                      (whose uid and gid a restricted mover takes)
//	<the kind>, <the kind>/status, <the kind>/finalizers: get, list, watch, update, patch
//
// # What it never does
//
// It opens no store, reads no Secret, sleeps nowhere, and decides nothing by a phase.
package scheduled
