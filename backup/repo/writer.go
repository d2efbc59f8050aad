package repo

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"example.com/pvcbackup/backup/repo/id"
	"example.com/pvcbackup/backup/repo/internal/crypto"
)

// maxIndexAge is how long packs wait for the index file that lists them: what a run stored before it died is not lost
// beyond that.
const maxIndexAge = 10 * time.Minute

// errAborted is what a writer returns after Abort.
var errAborted = errors.New("the writer was aborted")

// WriterStats counts what a writer did.
type WriterStats struct {
	DataBlobs, TreeBlobs int64 // stored, not counting those that were known
	KnownBlobs           int64 // saved, but stored already
	Bytes                int64 // of stored blobs, before compression
	PackedBytes          int64 // of packs, with headers
	Packs, Indexes       int64 // confirmed by the store
	Requests             int64 // writes sent to the store
}

// Written lists what a writer has stored, for VerifyWritten.
type Written struct {
	Packs, Indexes []FileInfo
}

// Writer stores blobs. It is made by NewWriter and ends with Flush, or Abort.
//
// A blob is listed in an index once the store confirmed its pack. The first error ends the writer: SaveBlob and Flush
// return it from then on.
type Writer struct {
	repo   *Repository
	o      WriterOptions
	plan   plan
	ctx    context.Context
	cancel context.CancelCauseFunc

	buffers [TreeBlob + 1]*pool[[]byte] // for packs
	workers *pool[*scratch]
	uploads chan struct{} // a token per running upload
	large   chan struct{} // a token for the one pack of a larger blob
	slots   [TreeBlob + 1][]*slot
	running sync.WaitGroup

	mu       sync.Mutex
	inFlight map[BlobHandle]struct{} // being stored, not yet in a stored index
	pending  []IndexedPack           // stored packs that no index lists yet
	blobs    int                     // in pending
	since    time.Time               // when the first of pending was stored
	stats    WriterStats
	written  Written
}

// NewWriter prepares to store blobs. ctx bounds everything the writer does. Load the index before: what it does not
// know is stored again. Several writers may be at work at once.
func (r *Repository) NewWriter(ctx context.Context, o *WriterOptions) *Writer {
	if o == nil {
		o = &WriterOptions{}
	}
	w := &Writer{repo: r, o: *o, inFlight: map[BlobHandle]struct{}{}}
	if w.o.PackSize == 0 {
		w.o.PackSize = packSizeFor(r.store.Store)
	}
	w.plan = makePlan(&w.o, cpus())
	w.ctx, w.cancel = context.WithCancelCause(ctx)
	w.buffers[DataBlob] = newPool(w.plan.buffers(), func() []byte { return make([]byte, 0, w.plan.packSize) })
	// There is far less of trees than of data: these grow when they have to.
	w.buffers[TreeBlob] = newPool(treePacks, func() []byte { return make([]byte, 0, firstTrees) })
	w.workers = newPool(w.plan.workers, func() *scratch { return newScratch(r.codec, o.Compression) })
	w.uploads = make(chan struct{}, w.plan.uploads)
	w.large = make(chan struct{}, 1)
	w.slots[DataBlob] = []*slot{{}, {}}
	w.slots[TreeBlob] = []*slot{{}}
	if r.config.Version != 2 {
		w.cancel(fmt.Errorf("%w for writing: it is %d", ErrVersion, r.config.Version))
	}
	return w
}

// fail records the first error and stops all that is under way. It returns the first error.
func (w *Writer) fail(err error) error {
	w.cancel(err)
	return context.Cause(w.ctx)
}

// SaveBlob stores a blob unless it is stored or being stored already, which known reports. It may be called by many
// goroutines, waits while the writer's memory is in use, and does not keep plain. That it returned does not mean that
// the blob is in the store: Flush does.
func (w *Writer) SaveBlob(ctx context.Context, t BlobType, plain []byte) (ID, bool, error) {
	if t > TreeBlob || len(plain) > maxBlob {
		return ID{}, false, fmt.Errorf("%v of %d bytes cannot be stored", t, len(plain))
	}
	if w.ctx.Err() != nil {
		return ID{}, false, context.Cause(w.ctx)
	}
	h := BlobHandle{t, id.Hash(plain)}
	if !w.claim(h) {
		return h.ID, true, nil
	}
	// Others may rely on the claim from here on, so whatever goes wrong ends the writer.
	if err := w.store(ctx, h, plain); err != nil {
		return ID{}, false, w.fail(err)
	}
	return h.ID, false, nil
}

// claim reports whether the blob has to be stored, which is then the caller's duty.
func (w *Writer) claim(h BlobHandle) bool {
	indexed := !w.o.StoreKnown && w.repo.Has(h)
	w.mu.Lock()
	defer w.mu.Unlock()
	if !indexed {
		_, indexed = w.inFlight[h]
	}
	// Once more: the index may have got it, and inFlight lost it, since the first look.
	if !indexed && !w.o.StoreKnown {
		indexed = w.repo.Has(h)
	}
	if indexed {
		w.stats.KnownBlobs++
		return false
	}
	w.inFlight[h] = struct{}{}
	return true
}

func (w *Writer) store(ctx context.Context, h BlobHandle, plain []byte) error {
	worker, err := w.workers.take(ctx, w.ctx)
	if err != nil {
		return err
	}
	defer func() {
		worker.trim()
		w.workers.give(worker)
	}()
	stored, plainLength, err := worker.encode(h.Type, plain, w.o.Compression, !w.o.NoVerify)
	if err != nil {
		return err
	}
	if len(stored)+crypto.Overhead+packOverhead(1) > w.plan.packSize {
		return w.storeLarge(ctx, h, stored, plainLength, len(plain))
	}
	s := w.lockSlot(h.Type)
	defer s.mu.Unlock()
	if s.pack != nil && !s.pack.fits(1, len(stored)+crypto.Overhead, w.plan.packSize) {
		w.upload(s.pack, w.release(h.Type))
		s.pack = nil
	}
	if s.pack == nil {
		buf, err := w.buffers[h.Type].take(ctx, w.ctx)
		if err != nil {
			return err
		}
		s.pack = newOpenPack(w.repo.cipher, buf)
	}
	s.pack.add(h, stored, plainLength, len(plain))
	return nil
}

// storeLarge gives a blob a pack of its own, outside the fixed buffers, and one at a time.
func (w *Writer) storeLarge(ctx context.Context, h BlobHandle, stored []byte, plainLength uint32, size int) error {
	select {
	case w.large <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-w.ctx.Done():
		return context.Cause(w.ctx)
	}
	p := newOpenPack(w.repo.cipher, make([]byte, 0, len(stored)+crypto.Overhead+packOverhead(1)))
	p.add(h, stored, plainLength, size)
	w.upload(p, func(*openPack) { <-w.large })
	return nil
}

// release gives the buffer of a pack back.
func (w *Writer) release(t BlobType) func(*openPack) {
	return func(p *openPack) { w.buffers[t].give(p.buf) }
}

// lockSlot locks one of the slots of a type: by chance, so that the sizes of neighbouring blobs cannot be read off the
// store, but a free one if there is one.
func (w *Writer) lockSlot(t BlobType) *slot {
	slots := w.slots[t]
	first := rand.IntN(len(slots))
	for i := range slots {
		if s := slots[(first+i)%len(slots)]; s.mu.TryLock() {
			return s
		}
	}
	slots[first].mu.Lock()
	return slots[first]
}

// upload sends a pack in the background and then calls release.
func (w *Writer) upload(p *openPack, release func(*openPack)) {
	w.running.Go(func() {
		defer release(p)
		select {
		case w.uploads <- struct{}{}:
		case <-w.ctx.Done():
			return
		}
		defer func() { <-w.uploads }()
		if err := w.uploadNow(p); err != nil {
			_ = w.fail(err)
		}
	})
}

func (w *Writer) uploadNow(p *openPack) error {
	name := p.finish()
	w.mu.Lock()
	w.stats.Requests++
	w.mu.Unlock()
	if err := putFile(w.ctx, w.repo.store, PackFile.Key(name), p.buf, name); err != nil {
		return err
	}
	return w.confirm(FileInfo{ID: name, Size: int64(len(p.buf))}, p)
}

// confirm notes a stored pack, and writes an index file when one is due.
func (w *Writer) confirm(f FileInfo, p *openPack) error {
	now := w.repo.clock.Now()
	w.mu.Lock()
	w.written.Packs = append(w.written.Packs, f)
	w.stats.Packs++
	w.stats.PackedBytes += f.Size
	w.stats.Bytes += p.plain
	for _, b := range p.blobs {
		if b.Type == TreeBlob {
			w.stats.TreeBlobs++
		} else {
			w.stats.DataBlobs++
		}
	}
	if len(w.pending) == 0 {
		w.since = now
	}
	w.pending = append(w.pending, IndexedPack{f.ID, p.blobs})
	w.blobs += len(p.blobs)
	var due []IndexedPack
	if w.blobs >= maxIndexBlobs || now.Sub(w.since) >= maxIndexAge {
		due = w.takePending()
	}
	w.mu.Unlock()
	return w.writeIndex(due)
}

// takePending needs w.mu.
func (w *Writer) takePending() []IndexedPack {
	due := w.pending
	w.pending, w.blobs = nil, 0
	return due
}

func (w *Writer) writeIndex(packs []IndexedPack) error {
	if len(packs) == 0 {
		return nil
	}
	w.mu.Lock()
	w.stats.Requests++
	w.mu.Unlock()
	f, err := w.repo.saveIndexFile(w.ctx, packs)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.written.Indexes = append(w.written.Indexes, f)
	w.stats.Indexes++
	if w.o.StoreKnown {
		return nil // the index had them all along: only inFlight knows what was moved
	}
	for _, p := range packs {
		for _, b := range p.Blobs {
			delete(w.inFlight, b.BlobHandle)
		}
	}
	return nil
}

// Flush stores everything that was saved, and the index that lists it, and returns the writer's first error. The writer
// can be used again after a success. No SaveBlob may be under way.
func (w *Writer) Flush(ctx context.Context) error {
	if ctx.Err() != nil {
		return w.fail(context.Cause(ctx))
	}
	stop := context.AfterFunc(ctx, func() { w.cancel(context.Cause(ctx)) })
	defer stop()
	w.closePacks()
	w.running.Wait()
	if w.ctx.Err() != nil {
		return context.Cause(w.ctx)
	}
	w.mu.Lock()
	due := w.takePending()
	w.mu.Unlock()
	if err := w.writeIndex(due); err != nil {
		return w.fail(err)
	}
	return nil
}

// closePacks uploads the open packs, those of one type as one if they fit.
func (w *Writer) closePacks() {
	for t, slots := range w.slots {
		release := w.release(BlobType(t))
		var last *openPack
		for _, s := range slots {
			s.mu.Lock()
			p := s.pack
			s.pack = nil
			s.mu.Unlock()
			switch {
			case p == nil:
			case last != nil && last.fits(len(p.blobs), len(p.buf), w.plan.packSize):
				last.absorb(p)
				release(p)
			default:
				if last != nil {
					w.upload(last, release)
				}
				last = p
			}
		}
		if last != nil {
			w.upload(last, release)
		}
	}
}

// Abort stops the writer and waits until nothing of it is under way. What it stored remains as unused data. After a
// successful Flush it only ends the writer; it may be called more than once.
func (w *Writer) Abort() {
	w.cancel(errAborted)
	w.running.Wait()
}

// Stats returns what was done so far.
func (w *Writer) Stats() WriterStats {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.stats
}

// Written returns what the store confirmed so far.
func (w *Writer) Written() Written {
	w.mu.Lock()
	defer w.mu.Unlock()
	return Written{Packs: slices.Clone(w.written.Packs), Indexes: slices.Clone(w.written.Indexes)}
}
