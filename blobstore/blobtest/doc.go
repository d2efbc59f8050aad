// Package blobtest proves that a store keeps the promises of package blobstore, and breaks stores on purpose.
//
// # What it does
//
// [Run] runs the conformance suite, whose sub-tests are named by the promise that they
// check. [Faulty] wraps a store and makes chosen calls fail, hang, lie or lose
// their answer, for tests of what is built on stores. [StartS3] and [StartGCS]
// start real servers as processes. [Bench] measures.
//
// # Minimal use
//
//	func TestStore(t *testing.T) {
//		blobtest.Run(t, func(t testing.TB) blobtest.Store { return open(t) }, blobtest.Caps{})
//	}
//
// # Guarantees
//
//   - A store that breaks a promise fails the suite; its own tests do it to every promise.
//   - A server that is missing fails the test; nothing is skipped.
//
// # What it never does
//
// It never reaches beyond the loopback interface and the test's own folders.
package blobtest
