package maintain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/blobstore"
)

// PruneOptions bound a prune. The zero value is right for most callers.
type PruneOptions struct {
	// MaxUnused is how much of the data kept may be unused, as a fraction: packs that hold more are rewritten, those
	// with the most first. Zero means 0.05; negative means none.
	MaxUnused float64
	// MaxRepack is how many bytes are rewritten at the most. Zero means no limit.
	MaxRepack int64
	// Grace is how old a pack that no index lists must be before it is deleted: a writer without locks may just be
	// about to list it. Zero means 24 h; negative means none.
	Grace time.Duration
	// Now is compared with the times that the store gives its objects. Zero means time.Now.
	Now time.Time
	// Progress is told how many bytes of how many were moved out of packs that go; nil tells nobody.
	Progress func(done, total int64)
}

func (o PruneOptions) withDefaults() PruneOptions {
	switch {
	case o.MaxUnused == 0:
		o.MaxUnused = 0.05
	case o.MaxUnused < 0:
		o.MaxUnused = 0
	}
	switch {
	case o.Grace == 0:
		o.Grace = 24 * time.Hour
	case o.Grace < 0:
		o.Grace = 0
	}
	if o.Now.IsZero() {
		o.Now = time.Now()
	}
	return o
}

// PrunePlan is what a prune would do. It is made by PlanPrune, and done by Execute.
type PrunePlan struct {
	// Unindexed are packs that no index lists, old enough to go. Young ones are counted in Spared.
	Unindexed []repo.FileInfo
	Spared    int
	// Unused are packs of which nothing is in use.
	Unused []repo.FileInfo
	// Repack are packs whose used blobs are moved to new packs.
	Repack []repo.FileInfo
	// UsedBytes and UnusedBytes are of sealed blobs in listed packs. FreedBytes is about what Execute takes out of the
	// store.
	UsedBytes, UnusedBytes, FreedBytes int64

	repository *repo.Repository
	progress   func(done, total int64)
	// dangling are snapshots of runs that have no snapshot file. What they refer to may be going, so that no later
	// attempt of the run may bring them back.
	dangling []repo.ID
	// keep says which blobs have to be moved out of which pack.
	keep map[repo.ID][]repo.PackedBlob
	// lost are indexed packs that are not in the store and hold nothing in use.
	lost []repo.ID
}

// ErrDoubt is why a prune stops before it deletes anything: what it knows does not fit together.
var ErrDoubt = errors.New("the repository is not consistent, so nothing is deleted: run check")

// doubt marks what a store answered as ErrDoubt, and leaves alone that it did not answer.
func doubt(err error) error {
	for _, silent := range []error{blobstore.ErrUnavailable, blobstore.ErrPermission, blobstore.ErrCanceled, context.Canceled, context.DeadlineExceeded, repo.ErrLockLost} {
		if errors.Is(err, silent) {
			return err
		}
	}
	return fmt.Errorf("%w: %w", ErrDoubt, err)
}

// PlanPrune finds out what is in use. Call it under the exclusive lock, and execute the plan under the same one.
func PlanPrune(ctx context.Context, r *repo.Repository, o PruneOptions) (*PrunePlan, error) {
	o = o.withDefaults()
	if r.Version() < 2 {
		return nil, fmt.Errorf("%w: version %d is not pruned; restic's migrate makes it version 2", repo.ErrVersion, r.Version())
	}
	snapshots, dangling, err := census(ctx, r)
	if err != nil {
		return nil, err
	}
	if err := r.LoadIndex(ctx); err != nil {
		return nil, doubt(err)
	}
	needed, err := used(ctx, r, snapshots)
	if err != nil {
		return nil, doubt(err)
	}
	stored, err := listPacks(ctx, r)
	if err != nil {
		return nil, err
	}
	plan := &PrunePlan{repository: r, dangling: dangling, keep: map[repo.ID][]repo.PackedBlob{}, progress: o.Progress}
	return (&planner{plan: plan, options: o, needed: needed, stored: stored}).make()
}

func listPacks(ctx context.Context, r *repo.Repository) (map[repo.ID]repo.FileInfo, error) {
	stored := map[repo.ID]repo.FileInfo{}
	for pack, err := range r.ListPacks(ctx) {
		if err != nil {
			return nil, fmt.Errorf("listing the packs: %w", err)
		}
		stored[pack.ID] = pack
	}
	return stored, nil
}

type planner struct {
	plan    *PrunePlan
	options PruneOptions
	needed  map[repo.BlobHandle]bool
	stored  map[repo.ID]repo.FileInfo
}

type packUse struct {
	file         repo.FileInfo
	used         []repo.PackedBlob
	usedBytes    int64
	unusedBytes  int64
	mustRewrite  bool
	hasDataBlobs bool
}

func (p *planner) make() (*PrunePlan, error) {
	packs, err := p.judgePacks()
	if err != nil {
		return nil, err
	}
	if len(p.needed) > 0 {
		return nil, fmt.Errorf("%w: %d blobs in use are in no index", ErrDoubt, len(p.needed))
	}
	p.unindexed()
	p.choose(packs)
	return p.plan, nil
}

// judgePacks goes through the index. Each needed blob is claimed by the first pack that has it, starting with packs that
// are used most, so that further copies count as unused.
func (p *planner) judgePacks() ([]packUse, error) {
	type listed struct {
		id    repo.ID
		blobs []repo.PackedBlob
		used  int64
	}
	var index []listed
	for id, blobs := range p.plan.repository.IndexPacks() {
		entry := listed{id: id, blobs: blobs}
		for _, blob := range blobs {
			if p.needed[blob.BlobHandle] {
				entry.used += int64(blob.Length)
			}
		}
		index = append(index, entry)
	}
	slices.SortFunc(index, func(a, b listed) int {
		return cmp.Or(cmp.Compare(b.used, a.used), slices.Compare(a.id[:], b.id[:]))
	})
	var packs []packUse
	for _, entry := range index {
		use, err := p.judge(entry.id, entry.blobs)
		if err != nil {
			return nil, err
		}
		if use != nil {
			packs = append(packs, *use)
		}
	}
	return packs, nil
}

func (p *planner) judge(pack repo.ID, blobs []repo.PackedBlob) (*packUse, error) {
	file, there := p.stored[pack]
	delete(p.stored, pack)
	use := packUse{file: file}
	var trees bool
	for _, blob := range blobs {
		trees = trees || blob.Type == repo.TreeBlob
		use.hasDataBlobs = use.hasDataBlobs || blob.Type == repo.DataBlob
		use.mustRewrite = use.mustRewrite || blob.Type == repo.TreeBlob && blob.PlainLength == 0 && p.plan.repository.Version() >= 2
		if !there || !p.needed[blob.BlobHandle] {
			use.unusedBytes += int64(blob.Length)
			continue
		}
		delete(p.needed, blob.BlobHandle)
		use.used = append(use.used, blob)
		use.usedBytes += int64(blob.Length)
	}
	use.mustRewrite = use.mustRewrite || trees && use.hasDataBlobs
	if !there {
		// If it holds something in use that no other pack has, that stays in needed, which ends the prune.
		p.plan.lost = append(p.plan.lost, pack)
		return nil, nil
	}
	if want := repo.PackSize(blobs); file.Size != want && len(use.used) > 0 {
		return nil, fmt.Errorf("%w: pack %s has %d bytes and the index says %d", ErrDoubt, pack.Short(), file.Size, want)
	}
	return &use, nil
}

// unindexed takes what is left of the listing: packs that no index lists.
func (p *planner) unindexed() {
	for _, file := range p.stored {
		if file.ModTime.IsZero() || p.options.Now.Sub(file.ModTime) < p.options.Grace {
			p.plan.Spared++
			continue
		}
		p.plan.Unindexed = append(p.plan.Unindexed, file)
		p.plan.FreedBytes += file.Size
	}
	slices.SortFunc(p.plan.Unindexed, func(a, b repo.FileInfo) int { return slices.Compare(a.ID[:], b.ID[:]) })
}

// choose decides which partly used packs are rewritten.
func (p *planner) choose(packs []packUse) {
	plan := p.plan
	var candidates []packUse
	for _, use := range packs {
		plan.UsedBytes += use.usedBytes
		plan.UnusedBytes += use.unusedBytes
		switch {
		case len(use.used) == 0:
			plan.Unused = append(plan.Unused, use.file)
			plan.UnusedBytes -= use.unusedBytes
			plan.FreedBytes += use.file.Size
		case use.unusedBytes > 0 || use.mustRewrite:
			candidates = append(candidates, use)
		}
	}
	slices.SortFunc(candidates, compareCandidates)
	allowed := int64(p.options.MaxUnused * float64(plan.UsedBytes))
	var moved int64
	for _, use := range candidates {
		if !use.mustRewrite && plan.UnusedBytes <= allowed {
			break
		}
		if p.options.MaxRepack > 0 && moved+use.usedBytes > p.options.MaxRepack {
			continue
		}
		moved += use.usedBytes
		plan.Repack = append(plan.Repack, use.file)
		plan.keep[use.file.ID] = use.used
		plan.UnusedBytes -= use.unusedBytes
		plan.FreedBytes += use.unusedBytes
	}
}

// compareCandidates puts first what must be rewritten, then packs of trees, then those with the greatest unused share.
func compareCandidates(a, b packUse) int {
	switch {
	case a.mustRewrite != b.mustRewrite:
		return boolOrder(a.mustRewrite)
	case a.hasDataBlobs != b.hasDataBlobs:
		return boolOrder(b.hasDataBlobs)
	}
	// unused/(unused+used) of a against b, without fractions.
	left, right := a.unusedBytes*(b.unusedBytes+b.usedBytes), b.unusedBytes*(a.unusedBytes+a.usedBytes)
	if left != right {
		return boolOrder(left > right)
	}
	return slices.Compare(a.file.ID[:], b.file.ID[:])
}

func boolOrder(first bool) int {
	if first {
		return -1
	}
	return 1
}

// Execute does what the plan says, in the order in which a crash at any point loses nothing: unlisted packs go; used
// blobs are moved, listed and read back; a new index is written and the old one removed; then the packs that nothing
// lists any more are deleted. It returns how many bytes were freed.
func (p *PrunePlan) Execute(ctx context.Context) (freed int64, err error) {
	if err := p.repository.RemoveSnapshots(ctx, p.dangling...); err != nil {
		return 0, fmt.Errorf("removing runs without a snapshot: %w", err)
	}
	freed, err = p.remove(ctx, p.Unindexed)
	if err != nil {
		return freed, err
	}
	gone := slices.Concat(p.Unused, p.Repack)
	if len(gone) == 0 && len(p.lost) == 0 {
		return freed, nil
	}
	added, err := p.repack(ctx)
	if err != nil {
		return freed, err
	}
	if err := p.rewriteIndex(ctx, gone); err != nil {
		return freed - added, err
	}
	removed, err := p.remove(ctx, gone)
	return freed + removed - added, err
}

func (p *PrunePlan) remove(ctx context.Context, files []repo.FileInfo) (freed int64, err error) {
	for _, file := range files {
		if err := p.repository.RemoveFile(ctx, repo.PackFile, file.ID); err != nil {
			return freed, fmt.Errorf("deleting pack %s: %w", file.ID.Short(), err)
		}
		freed += file.Size
	}
	return freed, nil
}

// repack moves the used blobs of packs that are to go into new packs, and returns the size of those.
func (p *PrunePlan) repack(ctx context.Context) (added int64, err error) {
	if len(p.Repack) == 0 {
		return 0, nil
	}
	w := p.repository.NewWriter(ctx, &repo.WriterOptions{StoreKnown: true})
	defer w.Abort()
	var done, total int64
	for _, blobs := range p.keep {
		total += repo.PackSize(blobs)
	}
	for _, file := range p.Repack {
		err := p.repository.ReadPack(ctx, file.ID, p.keep[file.ID], func(blob repo.PackedBlob, plain []byte, err error) error {
			if err != nil {
				return err
			}
			_, _, err = w.SaveBlob(ctx, blob.Type, plain)
			return err
		})
		if err != nil {
			return 0, fmt.Errorf("moving what is in use out of pack %s: %w", file.ID.Short(), err)
		}
		if done += repo.PackSize(p.keep[file.ID]); p.progress != nil {
			p.progress(done, total)
		}
	}
	if err := w.Flush(ctx); err != nil {
		return 0, err
	}
	for _, pack := range w.Written().Packs {
		added += pack.Size
	}
	return added, p.repository.VerifyWritten(ctx, w.Written(), verifySample)
}

// verifySample is how many new packs are read back in part.
const verifySample = 8

func (p *PrunePlan) rewriteIndex(ctx context.Context, gone []repo.FileInfo) error {
	drop := map[repo.ID]bool{}
	for _, file := range gone {
		drop[file.ID] = true
	}
	for _, pack := range p.lost {
		drop[pack] = true
	}
	rewrite, err := p.repository.RewriteIndex(ctx, func(pack repo.ID) bool { return drop[pack] })
	if err != nil {
		return fmt.Errorf("writing the new index: %w", err)
	}
	return rewrite.RemoveOld(ctx)
}
