// Package stage makes claims for runs: from a VolumeSnapshot to read a backup
// off, or empty to restore into.
//
// # What it does
//
// A Client creates a claim once under a name that the caller derives from what
// it is for, compares what the server stored with what was sent, observes the
// claim as one of seven states, sees that its volume goes with it, deletes it
// by UID, and sweeps what earlier runs left.
//
// # Minimal use
//
//	staging := stage.New(mgr.GetClient(), stage.Options{Live: mgr.GetAPIReader()})
//	seen, err := staging.Ensure(ctx, stage.Request{
//		Namespace: "default", Name: snapshot.Name("stage", string(obj.UID), slot),
//		Owner: snapshot.Owner{UID: obj.UID}, Snapshot: taken, Source: claim,
//	})
//	err = stage.Judge(seen, 10*time.Minute, time.Now()) // nil: create the Pod
//	_, err = staging.Sweep(ctx, "default", snapshot.Owner{UID: obj.UID}, nil)
//
// # Guarantees
//
//   - A claim whose data source the server dropped is deleted again and never
//     handed out: an empty volume does not pass for a copy.
//   - WaitingForConsumer is an answer, not a wait.
//   - A claim is never smaller than the snapshot needs or the source has.
//   - A staged claim's volume is set to be deleted with it, only if it is bound
//     to that very claim, and only in the version that was read.
//   - Only claims that carry the owner's UID and the label of a staged claim are
//     deleted, by UID, in the version that was read.
//
// # RBAC
//
//	rules:
//	- apiGroups: [""]
//	  resources: [persistentvolumeclaims]
//	  verbs: [get, list, watch, create, delete]
//	- apiGroups: [""]
//	  resources: [persistentvolumes]
//	  verbs: [get, patch]
//	- apiGroups: [storage.k8s.io]
//	  resources: [storageclasses]
//	  verbs: [get, list, watch]
//	- apiGroups: [snapshot.storage.k8s.io]
//	  resources: [volumesnapshots]
//	  verbs: [get, list, watch, delete]  # Sweep
//
// # What it never does
//
// It never deletes a claim made for a user, never updates or adopts a claim,
// never waits for Bound, never removes a finalizer, and starts no Pod.
package stage
