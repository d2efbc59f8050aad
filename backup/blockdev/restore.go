package blockdev

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"
	"sync/atomic"
	"time"

	"example.com/pvcbackup/backup/internal/chunker"
	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/backup/repo/tree"
	"example.com/pvcbackup/backup/restorer"
)

// batchBytes is how much data a worker fetches in one go.
const batchBytes = 32 * mib

// restore is one run.
type restore struct {
	repo   *repo.Repository
	o      RestoreOptions
	image  *tree.Node
	zeros  map[repo.ID]bool // the chunks that are known to be without content
	target *target
	done   atomic.Uint64 // written, and then once more read
}

// RestoreToDevice writes the volume of a snapshot to the block device at path, which is large enough, neither mounted
// nor held by another program, and, without Overwrite, begins and ends with a MiB of zeros. It returns a result only
// with a nil error. Errors: TargetError, restorer.SpaceError, restorer.MismatchError, restorer.PathError, and those of
// the repository, its store, and the system.
//
// It loads the index. The caller holds a lock and passes its context.
func RestoreToDevice(ctx context.Context, r *repo.Repository, snapshot repo.ID, path string,
	o RestoreOptions) (*RestoreResult, error) {
	return runRestore(ctx, r, snapshot, path, o, openDevice)
}

// RestoreToFile is RestoreToDevice for a file, which gets its name when it is complete and verified. Zeros become
// holes.
func RestoreToFile(ctx context.Context, r *repo.Repository, snapshot repo.ID, path string,
	o RestoreOptions) (*RestoreResult, error) {
	return runRestore(ctx, r, snapshot, path, o, openFile)
}

func runRestore(ctx context.Context, r *repo.Repository, snapshot repo.ID, path string, o RestoreOptions,
	open func(path string, size int64, o RestoreOptions) (*target, error)) (*RestoreResult, error) {
	began := time.Now()
	run := &restore{repo: r, o: o.withDefaults()}
	result, err := run.run(ctx, snapshot, path, open)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil && errors.Is(err, context.Canceled) {
			err = cause
		}
		return nil, fmt.Errorf("restore of %s to %s: %w", snapshot.Short(), path, err)
	}
	result.SnapshotID, result.Duration = snapshot, time.Since(began)
	return result, nil
}

func (r *restore) run(ctx context.Context, snapshot repo.ID, path string,
	open func(string, int64, RestoreOptions) (*target, error)) (*RestoreResult, error) {
	if err := r.find(ctx, snapshot); err != nil {
		return nil, err
	}
	t, err := open(path, int64(r.image.Size), r.o)
	if err != nil {
		return nil, err
	}
	defer t.close()
	r.target = t
	if r.o.Progress != nil {
		defer report(r.o.ProgressInterval, func() { r.o.Progress(r.progress()) })()
	}
	worker := func() func(context.Context, batch) error { return r.write }
	if err := inParallel(ctx, r.o.Concurrency, r.batches(), worker); err != nil {
		return nil, err
	}
	if err := t.flush(); err != nil {
		return nil, err
	}
	if !r.o.SkipVerify {
		if err := r.verify(ctx); err != nil {
			return nil, err
		}
	}
	if err := t.finish(); err != nil {
		return nil, err
	}
	return &RestoreResult{
		Size: int64(r.image.Size), TargetSize: t.size,
		Written: t.written.Load(), Zeroed: t.zeroed.Load(), Holes: t.holes.Load(), Verified: !r.o.SkipVerify,
	}, nil
}

func (r *restore) progress() Progress {
	p := Progress{Bytes: r.done.Load(), TotalBytes: r.image.Size}
	if !r.o.SkipVerify {
		p.TotalBytes *= 2
	}
	return p
}

// find looks the file up, and all of its chunks.
func (r *restore) find(ctx context.Context, snapshot repo.ID) error {
	sn, err := r.repo.LoadSnapshot(ctx, snapshot)
	if err != nil {
		return err
	}
	if err := r.repo.LoadIndex(ctx); err != nil {
		return err
	}
	info, isVolume := InfoOf(sn.Tags)
	path := r.o.Path
	if path == "" {
		if !isVolume {
			return fmt.Errorf("snapshot %s is not of a volume, so say which of its files to write: %w",
				snapshot.Short(), &restorer.PathError{Path: ImageName})
		}
		path = ImageName
	}
	if r.image, err = restorer.Base(ctx, r.repo, sn, path); err != nil {
		return err
	}
	if r.image.Type != tree.File || r.image.Size == 0 {
		return fmt.Errorf("%.300q is not a file with content: %w", path, &restorer.PathError{Path: path})
	}
	total := int64(0)
	for c := range r.chunks() {
		if c.size == 0 {
			return fmt.Errorf("%v: %w in the index", repo.BlobHandle{Type: repo.DataBlob, ID: c.id}, repo.ErrNotFound)
		}
		total += c.size
	}
	if uint64(total) != r.image.Size {
		return fmt.Errorf("%.300q: its chunks have %d bytes and its size is %d: %w",
			path, total, r.image.Size, tree.ErrMalformed)
	}
	r.knowZeros(info.ChunkSize, total)
	return nil
}

// knowZeros computes the IDs of chunks of zeros: of this package, and of others. Further ones are fetched like data.
func (r *restore) knowZeros(chunk, total int64) {
	text := make([]byte, max(chunk, chunker.ZeroSize))
	r.zeros = map[repo.ID]bool{}
	for _, length := range []int64{chunk, chunker.ZeroSize, total % max(chunk, 1)} {
		r.zeros[sha256.Sum256(text[:length])] = true
	}
}

// chunk is a part of the volume.
type chunk struct {
	id           repo.ID
	offset, size int64
}

// chunks yields all of the content. One that is not in the index has no size.
func (r *restore) chunks() iter.Seq[chunk] { return r.chunksOf(batch{to: len(r.image.Content)}) }

func (r *restore) chunksOf(b batch) iter.Seq[chunk] {
	return func(yield func(chunk) bool) {
		offset := b.offset
		for _, id := range r.image.Content[b.from:b.to] {
			size, _ := r.repo.BlobSize(repo.BlobHandle{Type: repo.DataBlob, ID: id})
			if !yield(chunk{id: id, offset: offset, size: int64(size)}) {
				return
			}
			offset += int64(size)
		}
	}
}

// batch is a stretch of the content that one worker restores.
type batch struct {
	from, to int
	offset   int64
}

// batches cuts the content into stretches with up to batchBytes of data, and whatever zeros are between.
func (r *restore) batches() iter.Seq[batch] {
	return func(yield func(batch) bool) {
		b, data := batch{}, int64(0)
		for c := range r.chunks() {
			if !r.zeros[c.id] {
				if data > 0 && data+c.size > batchBytes {
					if !yield(b) {
						return
					}
					b, data = batch{from: b.to, to: b.to, offset: c.offset}, 0
				}
				data += c.size
			}
			b.to++
		}
		yield(b)
	}
}

// write restores a batch.
func (r *restore) write(ctx context.Context, b batch) error {
	places := map[repo.BlobHandle][]int64{}
	var handles []repo.BlobHandle
	var hole chunk // the zeros that were met last, merged
	for c := range r.chunksOf(b) {
		if r.zeros[c.id] {
			if hole.offset+hole.size != c.offset {
				if err := r.zero(ctx, hole); err != nil {
					return err
				}
				hole = chunk{offset: c.offset}
			}
			hole.size += c.size
			continue
		}
		h := repo.BlobHandle{Type: repo.DataBlob, ID: c.id}
		if places[h] == nil {
			handles = append(handles, h)
		}
		places[h] = append(places[h], c.offset)
	}
	if err := r.zero(ctx, hole); err != nil {
		return err
	}
	return r.repo.LoadBlobs(ctx, handles, func(h repo.BlobHandle, data []byte) error {
		for _, offset := range places[h] {
			if err := r.target.write(data, offset); err != nil {
				return err
			}
			r.done.Add(uint64(len(data)))
		}
		return nil
	})
}

// zeroStep is how much is made zero in one call, which cannot be interrupted.
const zeroStep = gib

func (r *restore) zero(ctx context.Context, hole chunk) error {
	for hole.size > 0 {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		n := min(hole.size, zeroStep)
		if err := r.target.zero(hole.offset, n); err != nil {
			return err
		}
		r.done.Add(uint64(n))
		hole.offset, hole.size = hole.offset+n, hole.size-n
	}
	return nil
}

// verify reads the target again.
func (r *restore) verify(ctx context.Context) error {
	return inParallel(ctx, r.o.Concurrency, r.chunks(), func() func(context.Context, chunk) error {
		var buf []byte
		return func(_ context.Context, c chunk) error {
			defer r.done.Add(uint64(c.size))
			zero := r.zeros[c.id]
			if zero && r.target.isHole(c.offset, c.size) {
				return nil
			}
			if int64(len(buf)) < c.size {
				buf = make([]byte, c.size)
			}
			data := buf[:c.size]
			if err := r.target.read(data, c.offset); err != nil {
				return err
			}
			if zero && chunker.AllZero(data) || !zero && sha256.Sum256(data) == c.id {
				return nil
			}
			return &restorer.MismatchError{
				Path: r.target.path, Field: fmt.Sprintf("the content at byte %d", c.offset),
				Want: c.id.Short(), Got: "something else",
			}
		}
	})
}
