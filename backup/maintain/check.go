package maintain

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

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
	if err := r.LoadIndex(ctx); err != nil {
		return nil, fmt.Errorf("the index cannot be read: %w", err)
	}
	packs, err := c.packs(ctx)
	if err != nil {
		return nil, err
	}
	for _, snapshot := range snapshots {
		c.snapshot(ctx, snapshot)
	}
	return c.report, errors.Join(c.read(ctx, packs, o), ctx.Err())
}

type checker struct {
	repository *repo.Repository
	report     *CheckReport
	trees      map[repo.ID]bool
}

func (c *checker) problem(subject string, err error) {
	c.report.Problems = append(c.report.Problems, Problem{Subject: subject, Err: err})
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
		c.report.Notes = append(c.report.Notes, fmt.Sprintf("%d packs are in no index: prune removes them", len(stored)))
	}
	return good, nil
}

func (c *checker) snapshot(ctx context.Context, s repo.SnapshotInfo) {
	if s.Tree == nil {
		c.problem("snapshot "+s.ID.String(), errors.New("it has no tree"))
		return
	}
	for pending := []repo.ID{*s.Tree}; len(pending) > 0 && ctx.Err() == nil; {
		next := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		if !c.trees[next] {
			c.trees[next] = true
			pending = append(pending, c.tree(ctx, next)...)
		}
	}
}

// tree checks one tree and returns the ones below it. The decoder checks names, order and types.
func (c *checker) tree(ctx context.Context, id repo.ID) (below []repo.ID) {
	subject := "tree " + id.String()
	encoded, err := c.repository.LoadBlob(ctx, repo.BlobHandle{Type: repo.TreeBlob, ID: id}, nil)
	if err != nil {
		c.problem(subject, err)
		return nil
	}
	for node, err := range tree.All(encoded) {
		if err != nil {
			c.problem(subject, err)
			return below
		}
		switch node.Type {
		case tree.Dir:
			below = append(below, node.Subtree)
		case tree.File:
			if err := c.content(node); err != nil {
				c.problem(fmt.Sprintf("%s, file %q", subject, node.Name), err)
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

// read reads packs whole: hash, header and every blob.
func (c *checker) read(ctx context.Context, packs []repo.IndexedPack, o CheckOptions) error {
	var chosen []repo.IndexedPack
	for _, pack := range packs {
		if o.ReadData || o.ReadFraction > 0 && rand.Float64() < o.ReadFraction {
			chosen = append(chosen, pack)
		}
	}
	for i, pack := range chosen {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := c.pack(ctx, pack); err != nil {
			c.problem("pack "+pack.ID.String(), err)
		}
		c.report.PacksRead++
		if o.Progress != nil {
			o.Progress(i+1, len(chosen))
		}
	}
	return nil
}

func (c *checker) pack(ctx context.Context, pack repo.IndexedPack) error {
	header, err := c.repository.PackHeader(ctx, pack.ID, repo.PackSize(pack.Blobs))
	if err != nil {
		return err
	}
	if !sameBlobs(header, pack.Blobs) {
		return errors.New("its header and the index list different blobs")
	}
	var errs []error
	err = c.repository.ReadPack(ctx, pack.ID, pack.Blobs, func(blob repo.PackedBlob, _ []byte, err error) error {
		if err != nil {
			errs = append(errs, fmt.Errorf("blob %s: %w", blob.ID, err))
		}
		return nil
	})
	return errors.Join(append(errs, err)...)
}

func sameBlobs(a, b []repo.PackedBlob) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}
