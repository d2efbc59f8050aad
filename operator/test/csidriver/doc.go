// Command csidriver is a small CSI driver with snapshots and clones, for tests, demonstrations and development.
//
// # What it does
//
// It serves the CSI identity, controller and node services on a unix socket: volumes, snapshots of volumes, volumes
// restored from snapshots, and clones. What a volume is made of is the work of a Backend. There is one:
//
//   - copy: a volume is a plain directory, a snapshot or a clone a faithful copy of it (contents, holes, modes, times,
//     symbolic and hard links, extended attributes, special files; owners where the driver's user may set them).
//     It needs no privileges, no mounts and no particular file system.
//
// # Minimal use
//
//	csidriver --root /tmp/volumes --socket /tmp/csi.sock
//
// Each volume's context holds its directory's absolute path under "directory", and so does, in time, the claim's
// PersistentVolume in spec.csi.volumeAttributes: what runs pods on the same machine may use it without calling the
// driver. NodePublishVolume, for what does call it, makes a symbolic link at the target path.
//
// # Guarantees
//
//   - A volume or a snapshot exists whole or not at all: it is made aside and takes its place by a rename.
//   - Calls are idempotent by name, also after the driver was killed: all state is on disk, below the root directory.
//   - A copy under way is finished even if its caller has gone, so that the repeated call finds it.
//   - Two drivers never serve one root directory: the second refuses to start.
//
// # Failing on purpose
//
// A file control.json in the root directory is read anew at each call:
//
//	{"methods": {"CreateSnapshot": {"delay": "2s", "code": "RESOURCE_EXHAUSTED", "message": "pool full", "lose": false}},
//	 "neverReady": false}
//
// A method waits for its delay, then fails with its code; with lose it does its work first, so that only the answer is
// lost. With neverReady, snapshots are reported as not ready to use. Without the file nothing fails.
//
// # What it never does
//
//   - The copy backend is not point-in-time while a writer runs: files are copied one after another.
//   - It does not limit a volume to its capacity, which is only recorded and reported, and a symbolic link cannot
//     make a volume read-only.
//   - It does not serve block volumes, does not run outside of Linux, and is not for production.
//   - It does not force data to disk: what it keeps survives the driver's end, not the machine's.
package main
