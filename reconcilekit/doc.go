// Package reconcilekit ends a reconcile the same correct way every time: finalizers, error classes, status, results, events, metrics and deadlines for any client.Object with conditions.
//
// # What it does
//
// A reconciler decides; this package does the bookkeeping that is easy to get
// wrong. [EnsureFinalizer] and [DropFinalizer] are locked patches. [Waiting],
// [Terminal] and [Transient] say what an error means, and [Classify] finds out
// what anybody's error means, through wraps and joins. [Settle] turns that into
// conditions and a result, [StatusWriter] writes them in one patch, [Finisher]
// does both and adds events and metrics. [Caller] and [BoundedClient] give every
// call that leaves the process a deadline.
//
// # Minimal use
//
//	func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
//		obj := &v1.Thing{}
//		if err := r.Get(ctx, req.NamespacedName, obj); err != nil {
//			return ctrl.Result{}, client.IgnoreNotFound(err)
//		}
//		before := obj.DeepCopy()
//		outcome, err := r.step(ctx, obj)
//		return r.Finisher.Finish(ctx, before, obj, outcome, err, reconcilekit.Policy{})
//	}
//
// # Guarantees
//
//   - A finalizer or status patch never undoes somebody else's write: all of
//     them carry the resourceVersion that was read.
//   - The same failure leaves the same conditions, so that a settled object is
//     not written again and back-off is not reset by one's own writes.
//   - In a join of errors the class that retries soonest wins: no terminal
//     error hides one that should be tried again.
//   - "Not found" is never taken for "not served" ([IsGone]).
//   - Status is written even though the context of the reconcile has ended.
//   - Condition messages and events carry no URL credentials.
//
// # RBAC
//
//	rules:
//	- apiGroups: ["<your group>"]
//	  resources: ["<your kind>"]
//	  verbs: [patch]                       # finalizers
//	- apiGroups: ["<your group>"]
//	  resources: ["<your kind>/status"]
//	  verbs: [patch]
//	- apiGroups: [events.k8s.io]
//	  resources: [events]
//	  verbs: [create, patch]               # only with an Events
//
// # What it never does
//
// It never reads, creates or deletes an object, never retries by itself, never
// changes an object that another owner shares (a cache's, for example) and
// registers no metric that was not asked for.
package reconcilekit
