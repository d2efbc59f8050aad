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
// What the packages snapshot, snapshot/stage and the mover need, and:
//
//	rules:
//	- apiGroups: ["<your group>"]
//	  resources: ["<your kind>"]
//	  verbs: [list, watch, patch]
//	- apiGroups: ["<your group>"]
//	  resources: ["<your kind>/status"]
//	  verbs: [patch]
//	- apiGroups: ["<your group>"]
//	  resources: ["<your kind>/finalizers"]
//	  verbs: [update]                      # where owner references are checked
//	- apiGroups: [""]
//	  resources: [secrets]
//	  verbs: [create]                      # generated keys; nothing is ever read
//	- apiGroups: [""]
//	  resources: [pods]
//	  verbs: [list]                        # whose uid and gid a restricted mover takes
//	- apiGroups: [events.k8s.io]
//	  resources: [events]
//	  verbs: [create, patch]               # only with Options.Recorder
//
// # What it never does
//
// It opens no store, reads no Secret, sleeps nowhere, and decides nothing by a phase.
package scheduled
