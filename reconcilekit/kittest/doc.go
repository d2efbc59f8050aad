// Package kittest tests reconcilers: it breaks their calls one by one, lags their reads, restarts them between any two calls, and checks what they leave behind.
//
// # What it does
//
// [Client] wraps any client, the fake one or that of a real API server, records
// every call and applies rules: fail the n-th call, lose its response, conflict
// once, lag reads by some writes. [Converge] reconciles until nothing is written
// any more. [CrashEverywhere] does so once for each call of a clean run and each
// way in which that call can go wrong, and requires the same final world.
// [CheckStatus] checks conditions. [APIServer] starts a real kube-apiserver and
// etcd. [Eventually] polls.
//
// # Minimal use
//
//	var api = kittest.NewAPIServer(kittest.APIServerOptions{CRDPaths: []string{"../config/crd"}})
//
//	func TestMain(m *testing.M) { os.Exit(api.Main(m)) }
//
//	func TestReconcile(t *testing.T) {
//		cluster := api.Start(t)
//		c := kittest.Client(cluster.Client, kittest.ConflictOnce("patch", "Thing"))
//		...
//		kittest.Converge(t, c, kittest.For(reconciler, key), kittest.ConvergeOptions{})
//	}
//
// # Guarantees
//
//   - What was performed with a lost response happened in the world, and the
//     caller's object shows nothing of it.
//   - A bad reconciler fails each of the checks; the package's own tests have one for each.
//   - A missing control plane fails the test and names the make target that builds it.
//
// # RBAC
//
// None: it runs in tests, as the administrator of a control plane of its own.
//
// # What it never does
//
// It never skips, never sleeps, never retries a failed check and never talks to
// a cluster that it did not start.
package kittest
