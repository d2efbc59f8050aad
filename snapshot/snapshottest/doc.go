// Package snapshottest plays the CSI side of a cluster in tests that have an
// API server and nothing else.
//
// # What it does
//
// A Driver is a stand-in for the snapshot controller, a CSI driver with its
// provisioner and snapshotter, the binding of volumes, and the protection of
// claims in use. It stores no data: it moves the objects through the states that
// the real programs move them through, by a Script: late, with errors that pass
// or stay, taken and never ready, or slow to go.
//
// # Minimal use
//
//	driver := snapshottest.New(c, snapshottest.Options{})
//	require.NoError(t, driver.Install(ctx))
//	go driver.Run(ctx)
//	driver.Play(snapshottest.Script{NeverReady: true})
//
// # Guarantees
//
// Run ends with its context and leaves no goroutine. Step, with a clock of the
// test's own, plays without any waiting. Play and PlayFor may be called at any
// time, and what is under way then follows the new script.
//
// # RBAC
//
// It is for tests and wants everything on claims, volumes, storage classes,
// snapshots, their contents and classes, and list on pods.
//
// # What it never does
//
// It touches only what is of its own driver name. It proves nothing about real
// storage: that takes the real programs.
package snapshottest
