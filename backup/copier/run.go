package copier

import (
	"context"
	"errors"
	"fmt"
	"path"
	"sync"

	"golang.org/x/sync/errgroup"

	"example.com/pvcbackup/backup/internal/treewalk"
	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/backup/repo/tree"
)

const (
	// commitBytes is how much is stored before the snapshots that need it are written: with every one of them there
	// would be many small packs.
	commitBytes = 256 << 20
	// readerBytes is what reading one pack takes, at least, and readers how many are read at once.
	readerBytes = 16 << 20
	readers     = 2
	// uploadBytes is what one more upload at the same time takes, above the default budget.
	uploadBytes = 16 << 20
	// sampled is how many new packs are read back in part.
	sampled = 8
)

// job is one run.
type job struct {
	from, to *repo.Repository
	o        Options
	result   *Result
	writer   *repo.Writer
	trees    map[repo.ID]bool // that were walked
	stored   map[repo.ID]bool // data blobs since the last commit, which the index does not list yet
	done     repo.Written     // and verified
	at       int64            // packed bytes at the last commit

	mu       sync.Mutex
	progress Progress
}

func (j *job) run(ctx context.Context, snapshots []repo.SnapshotInfo) error {
	if len(snapshots) == 0 {
		return nil
	}
	for _, r := range []*repo.Repository{j.from, j.to} {
		if err := r.LoadIndex(ctx); err != nil {
			return err
		}
	}
	if err := j.believable(ctx); err != nil {
		return err
	}
	j.writer = j.to.NewWriter(ctx, &repo.WriterOptions{
		Compression: j.o.Compression, MemoryBudget: j.o.MemoryBudget - readers*readerBytes,
		Uploads: int(min(4, 1+max(0, j.o.MemoryBudget-defaultBudget)/uploadBytes)),
	})
	defer j.writer.Abort()
	j.trees, j.stored, j.progress.TotalSnapshots = map[repo.ID]bool{}, map[repo.ID]bool{}, len(snapshots)
	var ready []repo.SnapshotInfo
	for i, s := range snapshots {
		if err := j.data(ctx, &s); err != nil {
			return fmt.Errorf("snapshot %s: %w", s.ID.Short(), err)
		}
		ready = append(ready, s)
		if i+1 < len(snapshots) && j.writer.Stats().PackedBytes-j.at < commitBytes {
			continue
		}
		if err := j.commit(ctx, ready); err != nil {
			return err
		}
		ready = nil
	}
	j.result.Stats = j.writer.Stats()
	return nil
}

// believable looks for every pack that the index of the destination lists. What is in one that the store has lost would
// not be copied, and the copy be incomplete.
func (j *job) believable(ctx context.Context) error {
	stored := map[repo.ID]bool{}
	for pack, err := range j.to.ListPacks(ctx) {
		if err != nil {
			return err
		}
		stored[pack.ID] = true
	}
	for pack := range j.to.IndexPacks() {
		if stored[pack] {
			continue
		}
		if _, err := j.to.StatFile(ctx, repo.PackFile, pack); errors.Is(err, repo.ErrNotFound) {
			return &repo.DamagedError{File: repo.PackFile.Key(pack), Err: errLost}
		} else if err != nil {
			return err
		}
	}
	return nil
}

var errLost = errors.New("the index of the destination lists it and it is gone: run repair index there")

// data stores what a snapshot needs.
func (j *job) data(ctx context.Context, s *repo.SnapshotInfo) error {
	var needed []repo.BlobHandle
	visit := func(at treewalk.Place, encoded []byte, err error) ([]treewalk.Place, error) {
		if err != nil {
			return nil, fmt.Errorf("%.200q: %w", at.Path, err)
		}
		if _, _, err := j.writer.SaveBlob(ctx, repo.TreeBlob, encoded); err != nil {
			return nil, err
		}
		below, more, err := j.tree(at, encoded)
		needed = append(needed, more...)
		return below, err
	}
	if err := treewalk.Walk(ctx, j.from, []treewalk.Place{{Tree: *s.Tree, Path: "/"}}, j.trees, visit); err != nil {
		return err
	}
	if err := j.blobs(ctx, needed); err != nil {
		return err
	}
	j.report(func(p *Progress) { p.Snapshots++ })
	return nil
}

// tree returns the trees below one, and the blobs of its files that are missing.
func (j *job) tree(at treewalk.Place, encoded []byte) (below []treewalk.Place, needed []repo.BlobHandle, err error) {
	for n, err := range tree.All(encoded) {
		if err != nil {
			return nil, nil, fmt.Errorf("%.200q: tree %s: %w", at.Path, at.Tree.Short(), err)
		}
		if n.Type == tree.Dir {
			below = append(below, treewalk.Place{Tree: n.Subtree, Path: path.Join(at.Path, n.Name)})
		}
		for _, id := range n.Content {
			h := repo.BlobHandle{Type: repo.DataBlob, ID: id}
			if j.stored[id] || j.to.Has(h) {
				continue
			}
			if !j.from.Has(h) {
				name := path.Join(at.Path, n.Name)
				return nil, nil, fmt.Errorf("%.200q: its blob %s: %w in the index", name, id, repo.ErrNotFound)
			}
			j.stored[id] = true
			needed = append(needed, h)
		}
	}
	return below, needed, nil
}

// blobs copies data, pack by pack.
func (j *job) blobs(ctx context.Context, needed []repo.BlobHandle) error {
	packs, total := map[repo.ID][]repo.BlobHandle{}, uint64(0)
	for _, h := range needed {
		place := j.from.Locations(h)[0]
		packs[place.Pack] = append(packs[place.Pack], h)
		total += uint64(place.Size())
	}
	j.report(func(p *Progress) { p.TotalBytes += total })
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(readers)
	for _, handles := range packs {
		group.Go(func() error {
			bytes := uint64(0)
			err := j.from.LoadBlobs(inner, handles, func(h repo.BlobHandle, plain []byte) error {
				bytes += uint64(len(plain))
				_, _, err := j.writer.SaveBlob(inner, h.Type, plain)
				return err
			})
			j.report(func(p *Progress) { p.Bytes += bytes })
			return err
		})
	}
	return group.Wait()
}

func (j *job) report(change func(*Progress)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	change(&j.progress)
	if j.o.Progress != nil {
		j.o.Progress(j.progress)
	}
}

// commit writes snapshots, once what they need is proven to be there.
func (j *job) commit(ctx context.Context, snapshots []repo.SnapshotInfo) error {
	if err := j.writer.Flush(ctx); err != nil {
		return err
	}
	written := j.writer.Written()
	fresh := repo.Written{Packs: written.Packs[len(j.done.Packs):], Indexes: written.Indexes[len(j.done.Indexes):]}
	if err := j.to.VerifyWritten(ctx, fresh, sampled); err != nil {
		return err
	}
	j.done, j.at, j.stored = written, j.writer.Stats().PackedBytes, map[repo.ID]bool{}
	for _, s := range snapshots {
		id, err := j.save(ctx, &s)
		if err != nil {
			return fmt.Errorf("the copy of snapshot %s: %w", s.ID.Short(), err)
		}
		j.result.Copied = append(j.result.Copied, Copied{From: s.ID, To: id})
	}
	return nil
}

// save writes one snapshot and reads it back. Its parent is not named: in the other repository it has another ID.
func (j *job) save(ctx context.Context, s *repo.SnapshotInfo) (repo.ID, error) {
	sn, first := s.Snapshot, origin(s)
	sn.Parent, sn.Original = nil, &first
	id, err := j.to.SaveSnapshot(ctx, &sn)
	if err != nil {
		return repo.ID{}, err
	}
	got, err := j.to.LoadSnapshot(ctx, id)
	if err != nil {
		return repo.ID{}, fmt.Errorf("read back: %w", err)
	}
	if !similar(got, &sn) {
		return repo.ID{}, repo.ErrUnverified
	}
	return id, nil
}
