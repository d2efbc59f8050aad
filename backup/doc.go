// Package backup makes one run: from a claim to a backup, one step at a time.
//
// # What it does
//
// A Runner takes a VolumeSnapshot of a claim, makes a claim from that, has a Mover read it, and tidies up. Each call of
// Step observes what there is and does the next thing that is due. Names follow from owner and slot, so a Step after a
// crash finds what the one before it made.
//
// # Minimal use
//
//	progress, err := runner.Step(ctx, run, now)
//	if progress.Result != nil { ... }       // the run has ended, well or not: write that down,
//	gone, err := runner.Cleanup(ctx, run, keep) // then tidy up until gone
//
// # Guarantees
//
// One slot has one VolumeSnapshot, one staged claim, and at most Run.Attempts.Max movers, one after the other. What
// belongs to somebody else is never touched. Nothing waits: an error that reconcilekit classifies says when to look again.
//
// # RBAC
//
// What the packages snapshot, snapshot/stage and the Mover need; nothing of its own.
//
// # What it never does
//
// It opens no store, reads no Secret, and decides nothing by a phase.
package backup
