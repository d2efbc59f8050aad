package maintain

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"example.com/pvcbackup/backup/internal/treewalk"
	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/backup/repo/tree"
)

// CheckOptions say how much is checked.
type CheckOptions struct {
	// ReadData reads every pack and verifies every blob.
	ReadData bool
	// ReadFraction reads that share of the packs, chosen by chance, if ReadData is not set: 0.01 reads one in a hundred.
	ReadFraction float64
	// Progress is told how many of how many packs were read; nil tells nobody.
	Progress func(done, total int)
}

// Problem is one thing that is wrong.
type Problem struct {
	// Subject is what is wrong: "pack 1234abcd", "snapshot …", "tree …".
	Subject string
	Err     error
}

// String returns a sentence.
func (p Problem) String() string { return p.Subject + ": " + p.Err.Error() }

// CheckReport says what was found.
type CheckReport struct {
	Snapshots, Packs, Blobs int
	// PacksRead is how many packs were read whole.
	PacksRead int
	// Problems make data unreadable or doubtful. None: the repository is sound.
	Problems []Problem
	// Notes are harmless, such as packs that no index lists.
	Notes []string
}

// Err returns nil for a sound repository, else an error that names the first problems.
func (c *CheckReport) Err() error {
	if len(c.Problems) == 0 {
		return nil
	}
	errs := []error{fmt.Errorf("the repository has %d problems", len(c.Problems))}
	for _, p := range c.Problems[:min(len(c.Problems), 10)] {
		errs = append(errs, fmt.Errorf("%s: %w", p.Subject, p.Err))
	}
	return errors.Join(errs...)
}

// Check compares what the repository says with what is in the store. Call it under a lock. The error is about the check
// itself, such as a store that does not answer; what is wrong with the repository is in the report.
func Check(ctx context.Context, r *repo.Repository, o CheckOptions) (*CheckReport, error) {
	c := &checker{repository: r, report: &CheckReport{}, trees: map[repo.ID]bool{}}
	snapshots, err := r.Snapshots(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return nil, err
		}
		c.problem("snapshots", err)
	}
	c.report.Snapshots = len(snapshots)
	if ok, err := c.index(ctx); !ok || err != nil {
		return c.report, err
	}
	packs, err := c.packs(ctx)
	if err != nil {
		return nil, err
	}
	for _, snapshot := range snapshots {
		if err := c.snapshot(ctx, snapshot); err != nil {
			return nil, err
		}
	}
	if err := c.runs(ctx, snapshots); err != nil {
		return nil, err
	}
	return c.report, c.read(ctx, packs, o)
}

type checker struct {
	repository *repo.Repository
	report     *CheckReport
	trees      map[repo.ID]bool
}

func (c *checker) problem(subject string, err error) {
	c.report.Problems = append(c.report.Problems, Problem{Subject: subject, Err: err})
}

func (c *checker) note(format string, args ...any) {
	c.report.Notes = append(c.report.Notes, fmt.Sprintf(format, args...))
}

// index loads the index. If it cannot be read it reports every file that cannot, and false: with a part of the index
// everything else would look damaged.
func (c *checker) index(ctx context.Context) (ok bool, err error) {
	failed := c.repository.LoadIndex(ctx)
	if failed == nil {
		return true, nil
	}
	found := len(c.report.Problems)
	for file, err := range c.repository.ListFiles(ctx, repo.IndexFile) {
		if err != nil {
			return false, err
		}
		if _, err := c.repository.LoadIndexFile(ctx, file.ID); errors.Is(err, repo.ErrDamaged) {
			c.problem("index "+file.ID.String(), err)
		}
	}
	if len(c.report.Problems) > found {
		c.note("an index file is damaged, so nothing else was checked: repair index makes a new one from the packs")
		return false, nil
	}
	return false, fmt.Errorf("the index cannot be read: %w", failed)
}

// runs notes runs whose snapshot is not there, and reports those that are damaged.
func (c *checker) runs(ctx context.Context, snapshots []repo.SnapshotInfo) error {
	listed := map[repo.ID]bool{}
	for _, s := range snapshots {
		listed[s.ID] = true
	}
	dangling, err := danglingRuns(ctx, c.repository, listed)
	if len(dangling) > 0 {
		c.note("%d runs have no snapshot: prune removes them", len(dangling))
		if err := c.danglingRuns(ctx, dangling); err != nil {
			return err
		}
	}
	if errors.Is(err, ErrDoubt) || errors.Is(err, repo.ErrDamaged) {
		c.problem("snapshots", err)
		return nil
	}
	return err
}

// danglingRuns tells runs that are damaged from those whose snapshot was removed, or not written yet.
func (c *checker) danglingRuns(ctx context.Context, dangling []repo.ID) error {
	runs, err := c.repository.Runs(ctx)
	if err != nil {
		return err
	}
	for name, snapshot := range runs {
		if !slices.Contains(dangling, snapshot) {
			continue
		}
		switch err := c.repository.CheckRun(ctx, name); {
		case errors.Is(err, repo.ErrDamaged):
			c.problem("run "+name, fmt.Errorf("%w; prune removes it", err))
		case err != nil && !errors.Is(err, repo.ErrNotFound):
			return err
		}
	}
	return nil
}

// packs checks that every pack that the index lists is in the store with the size that follows, and returns those.
func (c *checker) packs(ctx context.Context) ([]repo.IndexedPack, error) {
	stored, err := listPacks(ctx, c.repository)
	if err != nil {
		return nil, err
	}
	var good []repo.IndexedPack
	for id, blobs := range c.repository.IndexPacks() {
		c.report.Packs++
		c.report.Blobs += len(blobs)
		file, there := stored[id]
		delete(stored, id)
		switch want := repo.PackSize(blobs); {
		case !there:
			c.problem("pack "+id.String(), errors.New("the index lists it but the store does not have it"))
		case file.Size != want:
			c.problem("pack "+id.String(), fmt.Errorf("it has %d bytes in the store and the index says %d", file.Size, want))
		default:
			good = append(good, repo.IndexedPack{ID: id, Blobs: blobs})
		}
	}
	if len(stored) > 0 {
		c.note("%d packs are in no index: prune removes them once they are old enough", len(stored))
	}
	return good, nil
}

// snapshot checks what can be reached from a snapshot and was not checked before.
func (c *checker) snapshot(ctx context.Context, s repo.SnapshotInfo) error {
	if s.Tree == nil {
		c.problem("snapshot "+s.ID.String(), errors.New("it has no tree"))
		return nil
	}
	visit := func(at treewalk.Place, encoded []byte, err error) ([]treewalk.Place, error) {
		subject := fmt.Sprintf("tree %s (%.200q in snapshot %s)", at.Tree.Short(), at.Path, s.ID.Short())
		if err == nil {
			return c.tree(subject, at, encoded), nil
		}
		if ctx.Err() != nil || !errors.Is(err, repo.ErrDamaged) && !errors.Is(err, repo.ErrNotFound) {
			return nil, err
		}
		c.problem(subject, err)
		return nil, nil
	}
	return treewalk.Walk(ctx, c.repository, []treewalk.Place{{Tree: *s.Tree, Path: "/"}}, c.trees, visit)
}

// tree checks one tree and returns the ones below it. The decoder checks names, order and types.
func (c *checker) tree(subject string, at treewalk.Place, encoded []byte) (below []treewalk.Place) {
	for node, err := range tree.All(encoded) {
		if err != nil {
			c.problem(subject, err)
			return below
		}
		switch node.Type {
		case tree.Dir:
			below = append(below, treewalk.Place{Tree: node.Subtree, Path: path.Join(at.Path, node.Name)})
		case tree.File:
			if err := c.content(node); err != nil {
				c.problem(fmt.Sprintf("%s, file %.200q", subject, node.Name), err)
			}
		}
	}
	return below
}

// content checks that every blob of a file is listed, and that their sizes add up to the file's.
func (c *checker) content(node *tree.Node) error {
	var size uint64
	for _, blob := range node.Content {
		plain, ok := c.repository.BlobSize(repo.BlobHandle{Type: repo.DataBlob, ID: blob})
		if !ok {
			return fmt.Errorf("no index lists its blob %s", blob)
		}
		size += uint64(plain)
	}
	if size != node.Size {
		return fmt.Errorf("its blobs have %d bytes and the file %d", size, node.Size)
	}
	return nil
}

// readers is how many packs are read at once. Each is held in memory.
const readers = 3

// read reads packs whole: hash, header and every blob.
func (c *checker) read(ctx context.Context, packs []repo.IndexedPack, o CheckOptions) error {
	var chosen []repo.IndexedPack
	for _, pack := range packs {
		if o.ReadData || o.ReadFraction > 0 && rand.Float64() < o.ReadFraction {
			chosen = append(chosen, pack)
		}
	}
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(readers)
	for _, pack := range chosen {
		group.Go(func() error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			damage, err := c.repository.CheckPack(ctx, pack)
			mu.Lock()
			defer mu.Unlock()
			if damage != nil {
				c.problem("pack "+pack.ID.String(), damage)
			}
			c.report.PacksRead++
			if o.Progress != nil {
				o.Progress(c.report.PacksRead, len(chosen))
			}
			return err
		})
	}
	return group.Wait()
}
