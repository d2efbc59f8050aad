// Package repo reads and writes repositories in the restic format: version 2 for writing, versions 1 and 2 for reading.
//
// # What it does
//
// It keeps blobs, identified by the SHA-256 of their content, compressed and encrypted in packs; an index that says
// which pack holds which blob; snapshots that name a tree; keys, each a password's way to the one master key; and
// locks. Whatever it writes, the stock restic program can check and restore.
//
// # Minimal use
//
//	r, err := repo.Open(ctx, store, password, nil)
//	lock, err := r.Lock(ctx, repo.LockOptions{Host: podName})
//	defer lock.Unlock(ctx)
//	err = r.LoadIndex(ctx)
//	w := r.NewWriter(ctx, nil)
//	defer w.Abort()
//	tree, _, err := w.SaveBlob(ctx, repo.TreeBlob, []byte("{\"nodes\":[]}\n"))
//	err = w.Flush(ctx)
//	id, err := r.SaveSnapshot(ctx, &repo.Snapshot{Time: time.Now(), Tree: &tree, Paths: []string{"/data"}})
//	err = r.VerifyWritten(ctx, w.Written(), 10)
//
// # Guarantees
//
//   - A blob is listed in an index only after the store confirmed its pack, and is known to later writers only after
//     the store confirmed that index.
//   - What is read is compared with the hash that names it, and a damaged copy of a blob is passed over for a good one.
//   - A repository is created only where config, keys and snapshots are proven absent. An answer that proves nothing,
//     a denied request for example, is an error.
//   - Two commits of one run end in one snapshot.
//   - Decoders answer any input with a value or an error, and allocate no more than their documented limits.
//
// # Objects beyond the format
//
// owner names whose repository this is; runs/<name> holds the bytes of the snapshot file that a run commits. restic
// ignores both.
//
// # What it never does
//
// It imports no Kubernetes package, reads no file system, initialises nothing on doubt, removes no lock that is not
// proven dead, and writes no password or key in clear to a log or an error.
package repo
