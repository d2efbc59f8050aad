// Package commit begins and ends a backup run: it finds the snapshot to compare with, and writes the new one once all
// that it relies on was found in the store.
//
// # Minimal use
//
//	before, err := commit.FindParent(ctx, repository, commit.Choice{Host: host, Path: path, Time: now, Usable: complete})
//	// … store blobs with a repo.Writer, note them in trees and sample, flush the writer …
//	err = commit.Verify(ctx, repository, root, writer.Written(), trees, sample)
//	id, other, err := commit.Snapshot(ctx, repository, runName, snapshot)
//
// # Guarantees
//
//   - Verify returns nil only when every pack and index that was written is in the store with its size, every tree of
//     the snapshot that nobody has fetched was read back, all that the trees refer to is in the index, and a random
//     sample of the data was read back.
//   - A run with a name has one snapshot, however often it is committed.
//
// # What it never does
//
// It reads no source, takes no lock and stores no blob.
package commit
