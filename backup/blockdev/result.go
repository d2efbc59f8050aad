package blockdev

import (
	"time"

	"example.com/pvcbackup/backup/archiver"
	"example.com/pvcbackup/backup/repo"
)

// Result is what a run did. Sizes are in bytes.
type Result struct {
	SnapshotID repo.ID
	// Parent is the snapshot that was compared with; zero for none.
	Parent repo.ID
	// Tree is the root: the directory data, and in it the file volume.img.
	Tree repo.ID
	// Size is the volume's, ChunkSize what it is cut into.
	Size, ChunkSize int64
	// Read is what was read, Reason why it was not less, and Detail the same for people.
	Read   Read
	Reason Reason
	Detail string
	// BytesRead were read because they may have changed; BytesSampled to compare them with what is stored.
	BytesRead, BytesSampled int64
	// Bytes compares with the parent, chunk by chunk. Without one everything is new.
	Bytes archiver.Counts
	// Mismatch is where the first chunk begins that was not as the changes have it; -1 for none.
	Mismatch int64
	// SinceFull counts the runs since the last full read; 0 for a full read.
	SinceFull int
	// Added is what was stored, before compression; AddedPacked is what that takes in the store.
	Added, AddedPacked uint64
	// SourceChanged says that the image was written to meanwhile.
	SourceChanged bool
	// Empty says that there are only zeros.
	Empty bool
	// Duration is that of the whole call.
	Duration time.Duration
	// ReusedRun says that the snapshot is of an earlier call for this run, and that this one did nothing, or lost to it.
	ReusedRun bool
}

// RestoreResult is what a restore did. Sizes are in bytes.
type RestoreResult struct {
	SnapshotID repo.ID
	// Size is the volume's, TargetSize the target's. What a device has beyond the volume is left alone.
	Size, TargetSize int64
	// Written is data; Zeroed was made to read as zeros; Holes are zeros that were there already.
	Written, Zeroed, Holes int64
	// Verified says that everything was read again and compared.
	Verified bool
	Duration time.Duration
}

// reused tells of an earlier commit what its snapshot tells.
func reused(id repo.ID, sn *repo.Snapshot) *Result {
	info, _ := InfoOf(sn.Tags)
	result := &Result{
		SnapshotID: id, Tree: *sn.Tree, Size: info.Size, ChunkSize: info.ChunkSize, Read: info.Read, Reason: info.Reason,
		SinceFull: info.SinceFull, Empty: !archiver.Complete(sn.Tags), Mismatch: -1, ReusedRun: true,
	}
	if sn.Parent != nil {
		result.Parent = *sn.Parent
	}
	if s := sn.Summary; s != nil {
		result.Bytes = archiver.Counts{New: s.TotalBytesProcessed} // the format keeps no more than the sum
		result.Added, result.AddedPacked = s.DataAdded, s.DataAddedPacked
	}
	return result
}
