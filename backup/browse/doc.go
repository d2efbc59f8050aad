// Package browse looks into the snapshots of a repository without restoring them: it lists, dumps, compares and counts.
//
// # What it does
//
// Walk visits what a snapshot holds. DumpFile writes the content of one file, DumpTar a folder with everything in it as
// a tar stream. Diff finds out what changed between two folders, and reads only what did. Stats says how much data
// snapshots hold, and how much of the store they need.
//
// # Minimal use
//
//	snapshots, err := r.Snapshots(ctx)
//	err = r.LoadIndex(ctx)
//	folder, err := restorer.Base(ctx, r, &snapshots[0].Snapshot, "/some/folder")
//	err = browse.Walk(ctx, r, "/some/folder", folder, func(at string, n *tree.Node) error { … })
//	_, err = browse.DumpTar(ctx, r, folder, os.Stdout)
//
// The index must be loaded, after the snapshots were listed. The caller holds a lock where the store allows one.
//
// # Guarantees
//
// What is written was compared with the hashes that name it. A nil error means that all of it was written; after any
// other a tar stream has no end mark, so that no reader takes it for whole. Content is fetched ahead, with neighbours
// in one request, and what is held in memory does not grow with the size of what is dumped. A folder whose path has
// more than 16 KiB is refused.
//
// # What it never does
//
// It writes nothing to the repository or to a file system, and imports no Kubernetes package.
package browse
