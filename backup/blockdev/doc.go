// Package blockdev stores a block device, or the image of a volume, in a repository as one file of a snapshot, and
// writes it back to a device or a file.
//
// # What it does
//
// The volume is the file /data/volume.img of its snapshot, cut into chunks of a fixed size: 1 MiB, and 4 MiB above
// 256 GiB. The stock restic program can check, dump and restore it. Holes of an image are not read; a device has none.
// A list of changed ranges, from CSI SnapshotMetadata or any other source, makes a run read only the chunks that the
// ranges touch and take the others over from the parent snapshot. Whenever something does not fit together the whole
// volume is read, and the result and the snapshot's tags say why.
//
// # Minimal use
//
//	device, err := blockdev.Open("/dev/xvdb")
//	defer device.Close()
//	result, err := blockdev.Backup(ctx, repository, device, blockdev.Options{Host: "cluster", Path: "/ns/claim"})
//	restored, err := blockdev.RestoreToDevice(ctx, repository, result.SnapshotID, "/dev/xvdc", blockdev.RestoreOptions{})
//
// The caller holds a repository lock, and gives its Context as ctx.
//
// # Guarantees
//
//   - A snapshot is committed only as package archiver does it: everything it refers to is in the index, was found in
//     the store, and a sample was read back. A run with a name has one snapshot.
//   - A volume that cannot be read, or is shorter than it said, fails the run with an archiver.UnreadableError. There
//     are no partial snapshots.
//   - A volume of nothing but zeros yields a snapshot with archiver.TagEmpty, which never displaces a full one.
//   - A run with changed ranges stores what a full read would, as long as the ranges are true. It reads the chunks that
//     they touch, once each, and a small sample of the others. One that is not as expected makes it a full read.
//   - The parent is used only if its tags say the same chunk size, the same volume and the very state that the ranges
//     are relative to, if the volume did not shrink, and if all its chunks are in the index.
//   - A restore succeeds only when the whole target was flushed, read again (unless SkipVerify), and found to have the
//     content that the hashes of the snapshot name. A file gets its name only then.
//   - Buffers stay within MemoryBudget, up to volumes of 2 TiB. Beyond, the list of chunks comes on top: 70 MB per TiB.
//
// # What it never does
//
// It changes nothing on a volume that it backs up, writes to no device that is mounted or held by another program, or
// that looks used unless told to, takes no lock, imports no Kubernetes package, and asks no storage system for ranges:
// they are given to it. It runs on Linux only.
package blockdev
