package blockdev

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"sync/atomic"

	"example.com/pvcbackup/backup/repo"
)

// plan is what a run reads and what it takes over.
type plan struct {
	read   Read
	reason Reason
	detail string
	// content is what the chunks are expected to be; those in need are to be found out.
	content []repo.ID
	need    *chunkSet
	// sampled is how many bytes were read to compare, mismatch where they were not as expected, or -1.
	sampled, mismatch int64
}

// full reads everything.
func (b *backup) full(reason Reason, detail string) *plan {
	n := b.g.chunks()
	return &plan{
		read: ReadFull, reason: reason, detail: detail, content: make([]repo.ID, n), need: allChunks(n), mismatch: -1,
	}
}

// plan decides what is read. Only what ends the run is an error.
func (b *backup) plan(ctx context.Context) (*plan, error) {
	if b.o.Changes == nil {
		return b.full("", ""), nil
	}
	reason, detail := b.unfit(b.parent, b.g)
	if b.o.FullEvery > 0 && b.parent != nil && b.parent.info.SinceFull+1 >= b.o.FullEvery {
		return b.full(FullDue, fmt.Sprintf("one run of %d is to be one", b.o.FullEvery)), nil
	}
	base := ""
	if reason == "" {
		base = b.parent.info.Handle
	}
	changes, err := b.o.Changes(ctx, base)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return b.full(ChangesUnavailable, err.Error()), nil
	case changes == nil:
		if reason == "" {
			reason, detail = ChangesUnavailable, "there is no list of changes"
		}
		return b.full(reason, detail), nil
	case changes.Kind == Delta && reason != "":
		return b.full(reason, detail), nil
	case changes.Kind == Delta && changes.Base != "" && changes.Base != base:
		detail = fmt.Sprintf("the changes are relative to %.200q, and the parent holds %.200q", changes.Base, base)
		return b.full(WrongBase, detail), nil
	}
	need, err := changes.touched(b.g)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return b.full(ChangesInvalid, err.Error()), nil
	}
	p := &plan{read: ReadAllocated, reason: reason, detail: detail, need: need, mismatch: -1}
	if changes.Kind == Delta {
		p.read = ReadChanged
		b.takeOver(p)
	} else {
		b.expectZeros(p)
	}
	return b.sampled(ctx, p)
}

// takeOver expects the parent's chunks. What the volume grew by is needed, and with it a last chunk that was shorter.
func (b *backup) takeOver(p *plan) {
	p.content = make([]repo.ID, b.g.chunks())
	copy(p.content, b.parent.image.Content)
	if old := b.parent.info.Size; old < b.g.size {
		p.need.addRange(b.g.index(old), b.g.chunks()-1)
	}
}

func (b *backup) expectZeros(p *plan) {
	p.content = make([]repo.ID, b.g.chunks())
	for k := range p.content {
		p.content[k] = b.zeros.id(b.g.length(k))
	}
}

// sampled reads some of the chunks that are to be taken over. If one is not as expected, none is taken over.
func (b *backup) sampled(ctx context.Context, p *plan) (*plan, error) {
	set := sample(allChunks(b.g.chunks()).without(p.need), b.o.SampleShare)
	b.advise(false)
	var read, mismatch atomic.Int64
	mismatch.Store(-1)
	err := b.readChunks(ctx, set, func(_ context.Context, k int, data []byte) error {
		read.Add(int64(len(data)))
		if repo.ID(sha256.Sum256(data)) != p.content[k] {
			mismatch.Store(b.g.offset(k))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if at := mismatch.Load(); at >= 0 {
		detail := fmt.Sprintf("the chunk at byte %d is not as it should be without a change", at)
		if p.reason != "" {
			detail += "; " + p.detail
		}
		p = b.full(SampleMismatch, detail)
		p.mismatch = at
	}
	p.sampled = read.Load()
	return p, nil
}

// sample chooses a share of the chunks by chance, but at least minSample of them. A negative share chooses none.
func sample(of *chunkSet, share float64) *chunkSet {
	total := of.count()
	left := min(total, max(minSample, int(share*float64(total)+0.5)))
	chosen := newChunkSet(of.n)
	if share < 0 {
		return chosen
	}
	for k := range of.all() {
		// Each of the subsets of this size is as likely as any other.
		if rand.IntN(total) < left {
			chosen.addRange(k, k)
			left--
		}
		if total--; left == 0 {
			break
		}
	}
	return chosen
}
