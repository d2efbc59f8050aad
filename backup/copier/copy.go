package copier

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"example.com/pvcbackup/backup/repo"
)

// ErrSameRepository means that both repositories are one.
var ErrSameRepository = errors.New("the two repositories are the same one")

// Options refines Copy. The zero value is right for most callers.
type Options struct {
	// Compression is the effort put into what is stored; the zero value is repo.CompressFastest.
	Compression repo.Compression
	// MemoryBudget bounds the buffers, in bytes; both indexes come on top. 0: 128 MiB, with which one pack is
	// uploaded at a time; with 16 MiB more each another one, up to four.
	MemoryBudget int64
	// DryRun finds out which snapshots would be copied, and changes nothing.
	DryRun bool
	// Progress is called when a pack was read or a snapshot is done, by one goroutine at a time; nil: not called.
	Progress func(Progress)
}

// Progress is how far a copy has come. TotalBytes, before compression, is of what has been found to be missing so far.
type Progress struct {
	Snapshots, TotalSnapshots int
	Bytes, TotalBytes         uint64
}

// Copied is a snapshot and its copy. To is zero in a dry run.
type Copied struct{ From, To repo.ID }

// Result is what a copy did.
type Result struct {
	Copied []Copied
	// Present are snapshots of which there was a copy already.
	Present []Copied
	// Stats counts what was stored.
	Stats repo.WriterStats
	// SameChunker says that files that did not change are cut alike in both repositories.
	SameChunker bool
	Duration    time.Duration
}

const defaultBudget = 128 << 20

// Copy makes to hold the snapshots of from that it does not hold already, the oldest first. It loads both indexes; list
// the snapshots before. It returns a result only with a nil error; what was copied until an error stays. Errors:
// ErrSameRepository, repo.ErrVersion when to cannot be written, and those of the repositories and their stores.
func Copy(ctx context.Context, from, to *repo.Repository, snapshots []repo.SnapshotInfo, o Options) (*Result, error) {
	began := time.Now()
	if from.ID() == to.ID() {
		return nil, ErrSameRepository
	}
	if to.Version() != 2 {
		return nil, fmt.Errorf("%w for writing: it is %d", repo.ErrVersion, to.Version())
	}
	if o.MemoryBudget <= 0 {
		o.MemoryBudget = defaultBudget
	}
	present, err := to.Snapshots(ctx)
	if err != nil {
		return nil, fmt.Errorf("not every snapshot of the destination can be read, so what is missing is unknown: %w", err)
	}
	j := &job{from: from, to: to, o: o, result: &Result{SameChunker: from.Polynomial() == to.Polynomial()}}
	missing := j.missing(snapshots, present)
	if o.DryRun {
		for _, s := range missing {
			j.result.Copied = append(j.result.Copied, Copied{From: s.ID})
		}
		j.result.Duration = time.Since(began)
		return j.result, nil
	}
	if err := j.run(ctx, missing); err != nil {
		return nil, err
	}
	j.result.Duration = time.Since(began)
	return j.result, nil
}

// missing returns the snapshots without a copy, by time.
func (j *job) missing(snapshots, present []repo.SnapshotInfo) (missing []repo.SnapshotInfo) {
	byOrigin := map[repo.ID][]repo.SnapshotInfo{}
	for _, s := range present {
		byOrigin[origin(&s)] = append(byOrigin[origin(&s)], s)
		if s.Original != nil { // the snapshot may have been copied from here
			byOrigin[s.ID] = append(byOrigin[s.ID], s)
		}
	}
	for _, s := range snapshots {
		same := func(other repo.SnapshotInfo) bool { return similar(&s.Snapshot, &other.Snapshot) }
		if i := slices.IndexFunc(byOrigin[origin(&s)], same); i >= 0 {
			j.result.Present = append(j.result.Present, Copied{From: s.ID, To: byOrigin[origin(&s)][i].ID})
		} else {
			missing = append(missing, s)
		}
	}
	slices.SortStableFunc(missing, func(a, b repo.SnapshotInfo) int { return a.Time.Compare(b.Time) })
	return missing
}

// origin is the snapshot that one is a copy of, or itself. It is how stock restic recognises copies.
func origin(s *repo.SnapshotInfo) repo.ID {
	if s.Original != nil && !s.Original.IsZero() {
		return *s.Original
	}
	return s.ID
}

// similar reports whether two snapshots with the same origin say the same: tags, for example, may have been changed
// since one was copied, and then there is another copy.
func similar(a, b *repo.Snapshot) bool {
	sorted := func(list []string) []string { return slices.Sorted(slices.Values(list)) }
	return a.Time.Equal(b.Time) && *a.Tree == *b.Tree && a.Hostname == b.Hostname && a.Username == b.Username &&
		a.UID == b.UID && a.GID == b.GID && slices.Equal(sorted(a.Paths), sorted(b.Paths)) &&
		slices.Equal(sorted(a.Excludes), sorted(b.Excludes)) && slices.Equal(sorted(a.Tags), sorted(b.Tags))
}
