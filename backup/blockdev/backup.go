package blockdev

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"example.com/pvcbackup/backup/archiver"
	"example.com/pvcbackup/backup/internal/chunker"
	"example.com/pvcbackup/backup/internal/commit"
	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/backup/repo/tree"
)

// backup is one run.
type backup struct {
	repo   *repo.Repository
	source Source
	o      Options
	g      geometry
	zeros  zeros
	parent *parent

	memory    division
	writer    *repo.Writer
	done      atomic.Uint64 // bytes of the volume
	bytesRead atomic.Int64
	trees     commit.Trees
	written   repo.Written     // by writers that are done
	stats     repo.WriterStats // of them
}

// Backup stores a volume and commits its snapshot. It returns a result only with a nil error. Errors:
// archiver.UnreadableError, ErrOption, and those of the repository and its store. Nothing about changed ranges is an
// error: see Result.Reason.
//
// It loads the index. The caller holds a lock and passes its context.
func Backup(ctx context.Context, r *repo.Repository, source Source, o Options) (*Result, error) {
	began := time.Now()
	o = o.withDefaults()
	if err := o.check(); err != nil {
		return nil, err
	}
	g, err := o.geometry(source.Size())
	if err != nil {
		return nil, err
	}
	b := &backup{repo: r, source: source, o: o, g: g, zeros: newZeros(g)}
	result, err := b.run(ctx)
	if err != nil {
		// What ended the context is the first error; what followed from it says less.
		if cause := context.Cause(ctx); cause != nil && errors.Is(err, context.Canceled) {
			err = cause
		}
		return nil, fmt.Errorf("backup of volume %s: %w", o.Path, err)
	}
	result.Duration = time.Since(began)
	return result, nil
}

func (b *backup) run(ctx context.Context) (*Result, error) {
	chosen, err := commit.FindParent(ctx, b.repo, commit.Choice{
		ID: b.o.Parent, None: b.o.NoParent, Host: b.o.Host, Path: b.o.Path, Time: b.o.Time, Usable: usable,
	})
	if err != nil {
		return nil, err
	}
	if b.o.RunName != "" {
		switch found, sn, err := b.repo.FindRun(ctx, b.o.RunName); {
		case err == nil:
			return reused(found, sn), nil
		case !errors.Is(err, repo.ErrNotFound):
			return nil, fmt.Errorf("run %s: %w", b.o.RunName, err)
		}
	}
	if chosen != nil {
		if b.parent, err = b.loadParent(ctx, chosen); err != nil {
			return nil, err
		}
	}
	return b.store(ctx)
}

// store reads, verifies and commits.
func (b *backup) store(ctx context.Context) (*Result, error) {
	b.memory = b.o.divide(b.g)
	p, err := b.plan(ctx)
	if err != nil {
		return nil, err
	}
	result, err := b.save(ctx, p)
	if err != nil {
		return nil, err
	}
	blobs := commit.NewSample(b.o.SampleBlobs)
	blobs.Add(p.content)
	if err := commit.Verify(ctx, b.repo, result.Tree, b.written, &b.trees, blobs); err != nil {
		return nil, fmt.Errorf("verify before the commit: %w", err)
	}
	return b.commit(ctx, result)
}

// save stores everything but the snapshot.
func (b *backup) save(ctx context.Context, p *plan) (*Result, error) {
	b.newWriter(ctx, b.memory.data)
	defer func() { b.writer.Abort() }() // whichever it is by then
	if err := b.read(ctx, p); err != nil {
		return nil, err
	}
	if b.memory.apart {
		if err := b.finishWriter(ctx); err != nil {
			return nil, err
		}
		b.newWriter(ctx, leastWriter)
	}
	result := b.result(p)
	var err error
	if result.Tree, err = b.saveTrees(ctx, p.content, result); err != nil {
		return nil, err
	}
	if err := b.finishWriter(ctx); err != nil {
		return nil, err
	}
	result.Added, result.AddedPacked = uint64(b.stats.Bytes), uint64(b.stats.PackedBytes)
	return result, nil
}

func (b *backup) newWriter(ctx context.Context, budget int64) {
	b.writer = b.repo.NewWriter(ctx, &repo.WriterOptions{
		PackSize: b.o.PackSize, MemoryBudget: budget, Compression: b.o.Compression,
	})
}

// finishWriter has everything stored, and notes what that was.
func (b *backup) finishWriter(ctx context.Context) error {
	if err := b.writer.Flush(ctx); err != nil {
		return err
	}
	b.writer.Abort()
	written, stats := b.writer.Written(), b.writer.Stats()
	b.written.Packs = append(b.written.Packs, written.Packs...)
	b.written.Indexes = append(b.written.Indexes, written.Indexes...)
	b.stats.DataBlobs += stats.DataBlobs
	b.stats.TreeBlobs += stats.TreeBlobs
	b.stats.Bytes += stats.Bytes
	b.stats.PackedBytes += stats.PackedBytes
	return nil
}

// read finds out what is needed.
func (b *backup) read(ctx context.Context, p *plan) error {
	if b.o.Progress != nil {
		stop := report(b.o.ProgressInterval, func() {
			b.o.Progress(Progress{
				Bytes: b.done.Load(), TotalBytes: uint64(b.g.size), Stored: uint64(b.writer.Stats().PackedBytes),
			})
		})
		defer stop()
	}
	data, err := b.dataChunks(ctx)
	if err != nil {
		return err
	}
	for k := range b.g.chunks() {
		if !p.need.has(k) {
			b.done.Add(uint64(b.g.length(k)))
		} else if !data.has(k) {
			p.content[k] = b.zeros.id(b.g.length(k))
			b.done.Add(uint64(b.g.length(k)))
		}
	}
	b.advise(p.read == ReadFull)
	err = b.readChunks(ctx, p.need.and(data), func(ctx context.Context, k int, data []byte) (err error) {
		b.bytesRead.Add(int64(len(data)))
		if chunker.AllZero(data) {
			p.content[k] = b.zeros.id(int64(len(data)))
		} else if p.content[k], _, err = b.writer.SaveBlob(ctx, repo.DataBlob, data); err != nil {
			return err
		}
		b.done.Add(uint64(len(data)))
		return nil
	})
	if err != nil {
		return err
	}
	return b.zeros.save(ctx, b.writer, p.content)
}

// dataChunks returns the chunks that are not in a hole as a whole.
func (b *backup) dataChunks(ctx context.Context) (*chunkSet, error) {
	set := newChunkSet(b.g.chunks())
	for at := int64(0); at < b.g.size; {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		start, end, err := b.source.NextData(at)
		if err != nil {
			return nil, unreadable(at, fmt.Errorf("look for holes: %w", err))
		}
		if start >= b.g.size {
			break
		}
		if start < at || end <= start {
			return nil, unreadable(at, fmt.Errorf("the next data is said to be from byte %d to %d", start, end))
		}
		last := b.g.index(min(end, b.g.size) - 1)
		set.addRange(b.g.index(start), last)
		at = b.g.offset(last + 1)
	}
	return set, nil
}

// readChunks reads chunks, and calls f with each of them, several at a time. The data is valid until f returns.
func (b *backup) readChunks(ctx context.Context, set *chunkSet,
	f func(ctx context.Context, k int, data []byte) error) error {
	return inParallel(ctx, min(b.memory.readers, set.count()), set.all(), func() func(context.Context, int) error {
		buf := make([]byte, b.g.length(0))
		return func(ctx context.Context, k int) error {
			data := buf[:b.g.length(k)]
			n, err := b.source.ReadAt(data, b.g.offset(k))
			if n < len(data) {
				if err == nil || errors.Is(err, io.EOF) {
					err = io.ErrUnexpectedEOF
				}
				return unreadable(b.g.offset(k)+int64(n), err)
			}
			return f(ctx, k, data)
		}
	})
}

func unreadable(at int64, err error) error {
	what := fmt.Sprintf("the volume at byte %d (%v)", at, err)
	return &archiver.UnreadableError{Paths: []string{what}, Count: 1, Err: err}
}

func (b *backup) advise(whole bool) {
	if d, ok := b.source.(*Device); ok {
		d.advise(whole)
	}
}

// result compares with the parent.
func (b *backup) result(p *plan) *Result {
	result := &Result{
		Size: b.g.size, ChunkSize: b.g.chunk, Read: p.read, Reason: p.reason, Detail: p.detail,
		BytesRead: b.bytesRead.Load(), BytesSampled: p.sampled, Mismatch: p.mismatch, Empty: true,
	}
	if d, ok := b.source.(*Device); ok {
		result.SourceChanged = d.changed()
	}
	var before []repo.ID
	if b.parent != nil {
		result.Parent = b.parent.id
		if b.parent.image != nil && b.parent.info.ChunkSize == b.g.chunk {
			before = b.parent.image.Content
		}
		result.SinceFull = b.parent.info.SinceFull
	}
	if result.SinceFull++; p.read == ReadFull {
		result.SinceFull = 0
	}
	for k, id := range p.content {
		length := uint64(b.g.length(k))
		switch {
		case k >= len(before):
			result.Bytes.New += length
		case before[k] != id:
			result.Bytes.Changed += length
		default:
			result.Bytes.Unmodified += length
		}
		result.Empty = result.Empty && b.zeros.has(id)
	}
	return result
}

// unchanged reports whether the volume is as it was in the parent.
func (b *backup) unchanged(result *Result) bool {
	return result.Bytes.Unmodified == uint64(b.g.size) && b.parent.info.Size == b.g.size
}

// saveTrees stores the nodes of the volume and returns the root. The times are those of the last change that a run
// found, so that an unchanged volume has an unchanged tree.
func (b *backup) saveTrees(ctx context.Context, content []repo.ID, result *Result) (repo.ID, error) {
	when := b.o.Time.UTC()
	if b.unchanged(result) {
		when = b.parent.image.ModTime
	}
	image := &tree.Node{
		Name: ImageName, Type: tree.File, Mode: 0o600, ModTime: when, AccessTime: when, ChangeTime: when,
		Size: uint64(b.g.size), Links: 1, Content: content,
	}
	inner, err := b.saveTree(ctx, image)
	if err != nil {
		return inner, err
	}
	dir := &tree.Node{
		Name: dirName, Type: tree.Dir, Mode: dirMode, ModTime: when, AccessTime: when, ChangeTime: when, Subtree: inner,
	}
	return b.saveTree(ctx, dir)
}

func (b *backup) saveTree(ctx context.Context, n *tree.Node) (repo.ID, error) {
	var builder tree.Builder
	if err := builder.Add(n); err != nil {
		return repo.ID{}, err
	}
	id, _, err := b.writer.SaveBlob(ctx, repo.TreeBlob, builder.Bytes())
	if err == nil {
		b.trees.Saved(id)
	}
	return id, err
}
