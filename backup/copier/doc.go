// Package copier copies snapshots from one repository to another.
//
// # What it does
//
// It walks the trees of the snapshots and stores, in the other repository, the blobs that it lacks; then it writes the
// snapshots there. Each copy remembers the snapshot that it is of in its field original, as those of stock restic do,
// and both programs recognise each other's copies.
//
// # Minimal use
//
//	snapshots, err := from.Snapshots(ctx)
//	result, err := copier.Copy(ctx, from, to, snapshots, copier.Options{})
//
// To keep deduplicating in the other repository what is cut there, create it with the same polynomial:
// repo.InitOptions{Polynomial: from.Polynomial()}.
//
// # Guarantees
//
//   - A snapshot is written only when everything it refers to is listed in the other repository's index, everything
//     that was stored was found there with its size, a sample was read back, and no pack that the index relies on is
//     missing from the store.
//   - Every blob is compared with its hash between reading and storing.
//   - Copying again copies nothing. A copy that was interrupted goes on where the last index was written.
//
// # What it never does
//
// It takes no lock: the caller holds one on each repository, and gives a context that ends with both. It writes nothing
// to the repository that it copies from, copies no keys, and imports no Kubernetes package.
package copier
