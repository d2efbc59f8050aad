// Package archiver stores a directory in a repository, as a snapshot.
//
// # What it does
//
// It walks the directory with several walkers, reads what changed since the parent snapshot, cuts it into chunks,
// stores those that the repository lacks, and commits a snapshot whose tree has one wrapper directory: the source
// itself, so that its own owner, mode and attributes survive. Holes are not read. The repository can be restored by
// this project's restorer and by the stock restic program.
//
// # Minimal use
//
//	result, err := archiver.Backup(ctx, repository, "/source", archiver.Options{Host: "cluster", Path: "/ns/claim"})
//
// The caller holds a repository lock, and gives its Context as ctx.
//
// # Guarantees
//
//   - A snapshot is committed only when everything it refers to is in the index, every pack and index that the run
//     wrote was found in the store with its size, and its trees and a random sample of its blobs were read back.
//   - By default a file or directory that cannot be read fails the run with an UnreadableError, and there is no
//     snapshot. With KeepPartial there is one, tagged so that it is never taken for a complete one.
//   - An empty source yields a snapshot that is tagged so that it never displaces a full one.
//   - A run with a name has one snapshot, however often it is started.
//   - What is stored of a file is what was read of it, and a file that changed meanwhile is counted.
//   - Two looks at an unchanged directory yield the same tree.
//
// # What it never does
//
// It changes nothing in the source (not even access times, where it may), follows no symlink, stores no socket,
// initialises no repository, takes no lock, and imports no Kubernetes package. It runs on Linux only.
package archiver
