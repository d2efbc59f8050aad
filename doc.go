// Package pvcbackup is the tour of the module: it holds no code.
//
// # Pieces
//
// Each package below is of use alone, and arrows between them point down only.
//
//   - schedule: cron with time zones, H, jitter and deadlines; Plan says what to run now, purely. schedule/keep says what
//     to keep.
//   - snapshot: CSI VolumeSnapshots. snapshot/stage makes claims from them.
//   - blobstore: objects in any store, chosen by URL, whole or not at all. Its drivers are passed in.
//   - reconcilekit: finalizers, conditions, status, error classes and metrics for any reconciler; reconcilekit/kittest
//     tests one.
//   - backup/repo, archiver, restorer, maintain: the repository engine, in the restic format. No Kubernetes.
//   - backup/contract: what an operator and its movers agree on. backup/cli is the mover, as a library.
//   - backup: one run. backup/jobmover runs it in a Job. backup/scheduled plans, runs and records, for any kind of
//     object. backup/restore makes one restore.
//   - operator: the reference operator, which only composes all this.
//
// Start with the README, or with examples/demo, which shows all of it at work.
package pvcbackup
