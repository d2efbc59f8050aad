// Package restorer writes a snapshot of a repository into a directory.
//
// # What it does
//
// It strips the wrapper directory (or, of what restic wrote, the path) so that the content of the source lands in the
// target, reads packs in long stretches with several workers, and restores holes, links, devices, attributes, owners,
// modes and times. What exists already is refused, kept if it is equal, or replaced, as asked.
//
// # Minimal use
//
//	result, err := restorer.Restore(ctx, repository, snapshotID, "/target", restorer.Options{})
//
// The caller holds a repository lock where the store allows one, and gives its Context as ctx.
//
// # Guarantees
//
//   - A nil error means that every entry of the snapshot is there, with the content that its hashes name (read again
//     after writing, unless SkipVerify), and with its type, size and mode, and that it was flushed to the filesystem.
//     What the process was not permitted to restore is counted in the result, and named: owners, special mode bits,
//     attributes, devices.
//   - Where the repository is damaged everything else is restored, the error names what is missing (DamageError), and of
//     a file that is damaged nothing that was written stays.
//   - Nothing outside the target is touched, whatever names and symlinks are in the snapshot or the target.
//   - A target that is not empty (lost+found does not count) is refused unless a policy for what exists is chosen.
//   - A restore that was interrupted can be started again with IfChanged: it keeps what is finished, and of the files
//     that it was writing it fetches only the chunks that are missing.
//   - A file whose owner could not be restored never gets a setuid or setgid bit.
//
// # What it never does
//
// It writes nothing to the repository, deletes nothing unless asked, follows no symlink below the target, restores no
// socket, and imports no Kubernetes package. It runs on Linux only.
package restorer
