// Package restore makes one restore: from a repository into a claim.
//
// # What it does
//
// A Runner makes sure that the target claim is there (a new one, or one that exists and that nobody uses), and has a
// mover fill it. Each call of Step observes what there is and does the next thing that is due.
//
// # Minimal use
//
//	progress, err := runner.Step(ctx, run, now)
//	if progress.Result != nil { ... } // the restore has ended, well or not
//	gone, err := runner.Cleanup(ctx, run)
//
// # Guarantees
//
// A claim that a Pod uses is not written to. A claim is never deleted, changed or adopted: a claim to be created must be
// this run's own. A restore is a success only when the mover says that counts and hashes match.
//
// # RBAC
//
// What the Mover needs, and:
//
//	rules:
//	- apiGroups: [""]
//	  resources: [persistentvolumeclaims]
//	  verbs: [get, create]
//	- apiGroups: [storage.k8s.io]
//	  resources: [storageclasses]
//	  verbs: [get]
//	- apiGroups: [""]
//	  resources: [pods]
//	  verbs: [list]                        # who uses the target
//
// # What it never does
//
// It opens no store and reads no Secret. It never deletes a user's claim, also not when the restore failed.
package restore
