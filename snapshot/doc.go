// Package snapshot takes and deletes CSI VolumeSnapshots on behalf of an owner.
//
// # What it does
//
// A Client creates a VolumeSnapshot once under a name that the caller derives
// from what it is for, observes it as one of six states, and deletes it by UID.
// Judge weighs an observation against deadlines; Choose finds the class by the
// volume's driver; ResolveClaim looks up the claim and its volume. Everything
// may be called again at any time, which is all that a crash needs.
//
// # Minimal use
//
//	snapshots := snapshot.New(mgr.GetClient(), snapshot.Options{Live: mgr.GetAPIReader()})
//	claim, err := snapshots.ResolveClaim(ctx, "default", "data")
//	class, err := snapshots.ChooseClass(ctx, claim.Driver, "")
//	seen, err := snapshots.Ensure(ctx, snapshot.Request{
//		Namespace: "default", Name: snapshot.Name("backup", string(obj.UID), slot),
//		Claim: "data", Class: class.Name, Owner: snapshot.Owner{UID: obj.UID},
//	})
//	err = snapshot.Judge(seen, snapshot.Deadlines{Taken: 10 * time.Minute, Ready: time.Hour}, time.Now())
//
// A class may be changed or added between two calls; a caller that has begun
// looks with Observe first and chooses a class only when the snapshot is Absent.
//
// # Guarantees
//
//   - Nothing is deleted by its name alone: an object must carry the owner's UID
//     and is deleted only in the version that was read.
//   - Ready is readyToUse=true and nothing less.
//   - A status.error never fails a snapshot; a deadline does, and says which one,
//     how long it was, and what the last error was.
//   - "No such object" and "no such API" are different answers (IsGone,
//     ErrNotInstalled), before the API is installed and after it went away. A
//     Client recovers by itself once the API is there.
//   - Every call to the API server has a deadline.
//   - Every failure of a known Kind has Terminal, Reason and RetryAfter.
//
// # RBAC
//
//	rules:
//	- apiGroups: [""]
//	  resources: [persistentvolumeclaims, persistentvolumes]
//	  verbs: [get, list, watch]          # ResolveClaim
//	- apiGroups: [snapshot.storage.k8s.io]
//	  resources: [volumesnapshotclasses]
//	  verbs: [get, list, watch]          # ChooseClass
//	- apiGroups: [snapshot.storage.k8s.io]
//	  resources: [volumesnapshots]
//	  verbs: [get, list, watch, create, delete]
//	- apiGroups: [snapshot.storage.k8s.io]
//	  resources: [volumesnapshotcontents]
//	  verbs: [get]                       # only with Options.Contents
//
// watch (and, for single objects, list) is what a cached client needs.
//
// # What it never does
//
// It never updates or adopts a VolumeSnapshot, never touches one that is not
// the owner's, never removes a finalizer, never waits inside a call, and holds
// no state.
package snapshot
