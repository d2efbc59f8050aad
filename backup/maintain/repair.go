package maintain

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/blobstore"
)

// Errors of PlanIndexRepair to compare with errors.Is. A PacksError says which packs.
var (
	// ErrPacksMissing: an index lists packs that the store does not have.
	ErrPacksMissing = errors.New("an index lists packs that are not in the store")
	// ErrPacksUnreadable: the headers of packs cannot be read.
	ErrPacksUnreadable = errors.New("the headers of packs cannot be read")
)

// PacksError names the packs that keep an index from being rebuilt.
type PacksError struct {
	// Err is ErrPacksMissing or ErrPacksUnreadable.
	Err    error
	Packs  []repo.ID
	Advice string
}

func (e *PacksError) Error() string {
	var names []string
	for _, id := range e.Packs[:min(len(e.Packs), 5)] {
		names = append(names, id.String())
	}
	if more := len(e.Packs) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return fmt.Sprintf("%v: %s; nothing was changed: %s", e.Err, strings.Join(names, ", "), e.Advice)
}

// Unwrap gives the kind.
func (e *PacksError) Unwrap() error { return e.Err }

// Reason is a condition reason.
func (e *PacksError) Reason() string { return "RepositoryDamaged" }

// Terminal reports that trying again is of no use.
func (e *PacksError) Terminal() bool { return true }

// RepairOptions say what may be given up when an index is rebuilt. The zero value gives up nothing.
type RepairOptions struct {
	// DropMissing leaves out packs that an index lists and the store does not have. What was in them is lost anyway, and
	// the next backup stores again what its source still has, instead of believing that it is there.
	DropMissing bool
	// SkipUnreadable goes on without the headers of packs that cannot be read. What an index says about such a pack
	// stays, if it fits its size; otherwise the pack is left out, and remains in the store.
	SkipUnreadable bool
	// Concurrency is how many headers are read at once. 0: 8.
	Concurrency int
	// Progress is told of how many packs of how many the header was read; nil tells nobody.
	Progress func(done, total int)
}

// IndexRepair is an index that was made from the headers of all packs. It is made by PlanIndexRepair and takes effect
// by Execute.
type IndexRepair struct {
	// Packs and Blobs are what the new index lists.
	Packs, Blobs int
	// Added are packs that no index listed, Changed those that one listed otherwise than their headers say, Repeated
	// those that several listed.
	Added, Changed, Repeated []repo.ID
	// Missing are packs that an index listed and the store does not have: they are left out.
	Missing []repo.ID
	// Unreadable are packs whose header cannot be read, and why.
	Unreadable []UnreadablePack
	// Damaged are index files that could not be read, Replaced how many index files go altogether.
	Damaged  []repo.ID
	Replaced int

	repository *repo.Repository
	packs      []repo.IndexedPack
	old        []repo.ID
}

// UnreadablePack is a pack whose header cannot be read.
type UnreadablePack struct {
	ID  repo.ID
	Err error
	// Kept says that the new index lists what an old one said. Otherwise it does not list the pack.
	Kept bool
}

// PlanIndexRepair reads the header of every pack and makes an index of them. Call it under the exclusive lock, and
// execute the plan under the same one. It needs no index that can be read, and changes nothing. Errors: PacksError for
// what RepairOptions do not give up, ErrDoubt when the store's answers do not agree, and the store's.
func PlanIndexRepair(ctx context.Context, r *repo.Repository, o RepairOptions) (*IndexRepair, error) {
	if r.Version() < 2 {
		return nil, fmt.Errorf("%w for repair: it is %d", repo.ErrVersion, r.Version())
	}
	stored, err := listPacksTwice(ctx, r)
	if err != nil {
		return nil, err
	}
	p := &repairer{plan: &IndexRepair{repository: r}, options: o, stored: stored}
	for _, step := range []func(context.Context) error{p.readIndexes, p.findMissing, p.readHeaders, p.keepListed} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	return p.finish()
}

// Execute writes the new index, reads it back, and only then removes the old one. A crash at any point leaves the old
// index, the new one, or both.
func (p *IndexRepair) Execute(ctx context.Context) error {
	rewrite, err := p.repository.ReplaceIndex(ctx, slices.Values(p.packs), p.old)
	if err != nil {
		return err
	}
	if err := rewrite.RemoveOld(ctx); err != nil {
		return err
	}
	return p.repository.LoadIndex(ctx)
}

// listPacksTwice guards against listings that are short, and do not say so.
func listPacksTwice(ctx context.Context, r *repo.Repository) (map[repo.ID]repo.FileInfo, error) {
	stored, err := listPacks(ctx, r)
	if err != nil {
		return nil, err
	}
	again, err := listPacks(ctx, r)
	if err != nil {
		return nil, err
	}
	for id, pack := range again {
		if first, listed := stored[id]; !listed || first.Size != pack.Size {
			return nil, fmt.Errorf("%w: the store listed pack %s otherwise the second time", ErrDoubt, id.Short())
		}
	}
	if len(again) != len(stored) {
		return nil, fmt.Errorf("%w: the store listed %d packs, and then %d", ErrDoubt, len(stored), len(again))
	}
	return stored, nil
}

// repairer makes an IndexRepair.
type repairer struct {
	plan    *IndexRepair
	options RepairOptions
	stored  map[repo.ID]repo.FileInfo
	// listed is what the old index files say.
	listed map[repo.ID]listing

	mu   sync.Mutex
	done int
}

// listing is what index files say about a pack: how often, whether always the same, and a hash of it.
type listing struct {
	times  int
	differ bool
	digest [sha256.Size]byte
}

// digest is of a pack's blobs in the order of their offsets.
func digest(blobs []repo.PackedBlob) [sha256.Size]byte {
	h := sha256.New()
	for _, b := range byOffset(blobs) {
		fmt.Fprintln(h, b.Type, b.ID, b.Offset, b.Length, b.PlainLength)
	}
	return [sha256.Size]byte(h.Sum(nil))
}

func byOffset(blobs []repo.PackedBlob) []repo.PackedBlob {
	return slices.SortedFunc(slices.Values(blobs), func(a, b repo.PackedBlob) int {
		return cmp.Or(cmp.Compare(a.Offset, b.Offset), compareIDs(a.ID, b.ID))
	})
}

func compareIDs(a, b repo.ID) int { return bytes.Compare(a[:], b[:]) }

// readIndexes reads the old index files, as far as they can be read.
func (p *repairer) readIndexes(ctx context.Context) error {
	p.listed = map[repo.ID]listing{}
	for file, err := range p.plan.repository.ListFiles(ctx, repo.IndexFile) {
		if err != nil {
			return err
		}
		p.plan.old = append(p.plan.old, file.ID)
	}
	p.plan.Replaced = len(p.plan.old)
	return p.eachListed(ctx, func(pack repo.IndexedPack) {
		sum, l := digest(pack.Blobs), p.listed[pack.ID]
		l.differ = l.differ || l.times > 0 && l.digest != sum
		l.times, l.digest = l.times+1, sum
		p.listed[pack.ID] = l
	})
}

// eachListed calls fn with what the old index files say, and notes those that are damaged.
func (p *repairer) eachListed(ctx context.Context, fn func(repo.IndexedPack)) error {
	p.plan.Damaged = nil
	for _, id := range p.plan.old {
		packs, err := p.plan.repository.LoadIndexFile(ctx, id)
		if errors.Is(err, repo.ErrDamaged) {
			p.plan.Damaged = append(p.plan.Damaged, id)
			continue
		}
		if err != nil {
			return fmt.Errorf("read index %s: %w", id.Short(), err)
		}
		for _, pack := range packs {
			fn(pack)
		}
	}
	return nil
}

// findMissing asks for every listed pack that the store did not list.
func (p *repairer) findMissing(ctx context.Context) error {
	for id := range p.listed {
		if _, there := p.stored[id]; there {
			continue
		}
		switch file, err := p.plan.repository.StatFile(ctx, repo.PackFile, id); {
		case err == nil:
			p.stored[id] = file
		case errors.Is(err, repo.ErrNotFound):
			p.plan.Missing = append(p.plan.Missing, id)
		default:
			return err
		}
	}
	slices.SortFunc(p.plan.Missing, compareIDs)
	if len(p.plan.Missing) > 0 && !p.options.DropMissing {
		return &PacksError{Err: ErrPacksMissing, Packs: p.plan.Missing,
			Advice: "bring them back, or have them dropped (--drop-missing-packs): " +
				"what was in them is lost then, and check says which snapshots need it"}
	}
	return nil
}

const headersAtOnce = 8

func (p *repairer) readHeaders(ctx context.Context) error {
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(cmp.Or(max(0, p.options.Concurrency), headersAtOnce))
	for _, file := range p.stored {
		group.Go(func() error {
			if inner.Err() != nil {
				return context.Cause(inner)
			}
			blobs, err := readHeader(inner, p.plan.repository, file)
			if err != nil && !isDamage(err) {
				return err
			}
			p.mu.Lock()
			defer p.mu.Unlock()
			p.judge(file, blobs, err)
			if p.done++; p.options.Progress != nil {
				p.options.Progress(p.done, len(p.stored))
			}
			return nil
		})
	}
	return group.Wait()
}

// isDamage tells what is in the store from what the store answers.
func isDamage(err error) bool {
	return errors.Is(err, repo.ErrDamaged) || errors.Is(err, blobstore.ErrCorrupt)
}

// headerPauses are the waits before a header is read again, as giving it up loses all that is in the pack. They are
// short because a store that is down is the business of the store's own retries.
var headerPauses = [...]time.Duration{10 * time.Millisecond, 50 * time.Millisecond}

func readHeader(ctx context.Context, r *repo.Repository, file repo.FileInfo) ([]repo.PackedBlob, error) {
	for attempt := 0; ; attempt++ {
		blobs, err := r.PackHeader(ctx, file.ID, file.Size)
		if err == nil || attempt == len(headerPauses) {
			return blobs, err
		}
		select {
		case <-time.After(headerPauses[attempt]):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// judge decides what the new index says about a pack. It needs mu.
func (p *repairer) judge(file repo.FileInfo, blobs []repo.PackedBlob, failed error) {
	if failed != nil {
		p.plan.Unreadable = append(p.plan.Unreadable, UnreadablePack{ID: file.ID, Err: failed})
		return
	}
	switch old, listed := p.listed[file.ID]; {
	case !listed:
		p.plan.Added = append(p.plan.Added, file.ID)
	case old.differ || old.digest != digest(blobs):
		p.plan.Changed = append(p.plan.Changed, file.ID)
	case old.times > 1:
		p.plan.Repeated = append(p.plan.Repeated, file.ID)
	}
	p.plan.packs = append(p.plan.packs, repo.IndexedPack{ID: file.ID, Blobs: blobs})
}

// keepListed gives packs whose header cannot be read what the old index files say of them, all taken together, where
// that explains the whole pack.
func (p *repairer) keepListed(ctx context.Context) error {
	if len(p.plan.Unreadable) == 0 {
		return nil
	}
	said := map[repo.ID]map[repo.PackedBlob]bool{}
	for _, pack := range p.plan.Unreadable {
		said[pack.ID] = map[repo.PackedBlob]bool{}
	}
	err := p.eachListed(ctx, func(pack repo.IndexedPack) {
		if blobs := said[pack.ID]; blobs != nil {
			for _, b := range pack.Blobs {
				blobs[b] = true
			}
		}
	})
	if err != nil {
		return err
	}
	for i, pack := range p.plan.Unreadable {
		blobs := byOffset(slices.Collect(maps.Keys(said[pack.ID])))
		if !explains(blobs, p.stored[pack.ID].Size) {
			continue
		}
		p.plan.Unreadable[i].Kept = true
		p.plan.packs = append(p.plan.packs, repo.IndexedPack{ID: pack.ID, Blobs: blobs})
	}
	return nil
}

// explains reports whether the blobs fill a pack of this size without gaps and without overlaps.
func explains(blobs []repo.PackedBlob, size int64) bool {
	end := uint64(0)
	for _, b := range blobs {
		if uint64(b.Offset) != end {
			return false
		}
		end += uint64(b.Length)
	}
	return len(blobs) > 0 && repo.PackSize(blobs) == size
}

// finish refuses what may not be given up, and puts everything in order.
func (p *repairer) finish() (*IndexRepair, error) {
	plan := p.plan
	slices.SortFunc(plan.packs, func(a, b repo.IndexedPack) int { return compareIDs(a.ID, b.ID) })
	slices.SortFunc(plan.Unreadable, func(a, b UnreadablePack) int { return compareIDs(a.ID, b.ID) })
	for _, ids := range [][]repo.ID{plan.Added, plan.Changed, plan.Repeated} {
		slices.SortFunc(ids, compareIDs)
	}
	plan.Packs = len(plan.packs)
	for _, pack := range plan.packs {
		plan.Blobs += len(pack.Blobs)
	}
	if len(plan.Unreadable) == 0 || p.options.SkipUnreadable {
		return plan, nil
	}
	refused := &PacksError{Err: ErrPacksUnreadable,
		Advice: "try again, and if that does not help go on without their headers (--skip-unreadable-packs)"}
	for _, pack := range plan.Unreadable {
		refused.Packs = append(refused.Packs, pack.ID)
	}
	return nil, fmt.Errorf("%w: %w", refused, plan.Unreadable[0].Err)
}
