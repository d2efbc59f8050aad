// Package movertest tests Movers, and what uses them.
//
// # What it does
//
// Run holds an implementation of backup.Mover against the promises of that interface. Script is a Mover whose attempts
// do what a test says, and whose calls can fail before or after they had their effect. The development kubelet, which
// runs real mover Pods without a node, is in the package devkubelet beside it.
//
// # Minimal use
//
//	func TestConformance(t *testing.T) {
//		movertest.Run(t, func(t *testing.T) movertest.World { … })
//	}
//
//	mover := movertest.NewScript()
//	mover.Plan = func(backup.Task, int) *contract.Result { return &contract.Result{Outcome: contract.Succeeded} }
//
// # Guarantees
//
// A Script keeps the promises that Run tests, faults included: what failed before its effect had none.
//
// # What it never does
//
// It is for tests: Script moves no data.
package movertest
