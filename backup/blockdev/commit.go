package blockdev

import (
	"context"
	"io/fs"
	"time"

	"example.com/pvcbackup/backup/archiver"
	"example.com/pvcbackup/backup/internal/commit"
	"example.com/pvcbackup/backup/repo"
)

const dirMode = fs.ModeDir | 0o700

// commit writes the snapshot.
func (b *backup) commit(ctx context.Context, result *Result) (*Result, error) {
	id, other, err := commit.Snapshot(ctx, b.repo, b.o.RunName, b.snapshot(result))
	if err != nil {
		return nil, err
	}
	if other != nil {
		return reused(id, other), nil
	}
	result.SnapshotID = id
	return result, nil
}

func (b *backup) snapshot(result *Result) *repo.Snapshot {
	info := Info{
		ChunkSize: b.g.chunk, Size: b.g.size, Read: result.Read, Reason: result.Reason,
		Handle: b.o.Handle, Volume: b.o.Volume, SinceFull: result.SinceFull,
	}
	tags := append([]string(nil), b.o.Tags...)
	tags = append(tags, archiver.ChunkerTag(archiver.Fixed))
	tags = append(tags, info.tags()...)
	if result.Empty {
		tags = append(tags, archiver.TagEmpty)
	}
	sn := &repo.Snapshot{
		Time: b.o.Time.UTC(), Tree: &result.Tree, Paths: []string{b.o.Path}, Hostname: b.o.Host, Tags: tags,
		ProgramVersion: b.o.ProgramVersion,
		Summary: &repo.SnapshotSummary{
			BackupStart: b.o.Time.UTC(), BackupEnd: time.Now().UTC(),
			DataBlobs: b.stats.DataBlobs, TreeBlobs: b.stats.TreeBlobs,
			DataAdded: result.Added, DataAddedPacked: result.AddedPacked,
			TotalFilesProcessed: 1, TotalBytesProcessed: uint64(b.g.size),
		},
	}
	switch {
	case result.Parent.IsZero():
		sn.Summary.FilesNew, sn.Summary.DirsNew = 1, 1
	case b.unchanged(result):
		sn.Summary.FilesUnmodified, sn.Summary.DirsUnmodified = 1, 1
	default:
		sn.Summary.FilesChanged, sn.Summary.DirsChanged = 1, 1
	}
	if !result.Parent.IsZero() {
		sn.Parent = &result.Parent
	}
	return sn
}
