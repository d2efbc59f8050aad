package browse

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"golang.org/x/sync/errgroup"

	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/backup/repo/tree"
)

const (
	batchBytes   = 8 << 20 // of content that is fetched together
	batchPieces  = 512
	batchesAhead = 2 // that are fetched while one is written
)

// ErrNotFile means that something is not a regular file and so has no content.
var ErrNotFile = errors.New("it is not a regular file")

// DumpFile writes the content of a file, holes as zeros. Errors: ErrNotFile, those of the repository and its store, and
// those of w; what was written until then stays.
func DumpFile(ctx context.Context, r *repo.Repository, file *tree.Node, w io.Writer) error {
	if file.Type != tree.File {
		return fmt.Errorf("%.200q: %w but of the type %s", file.Name, ErrNotFile, file.Type)
	}
	return (&flow{repo: r, out: w}).run(ctx, func(ctx context.Context, f *flow) error {
		return f.file(ctx, file.Name, file, nil)
	})
}

// flow fetches content ahead, a batch at a time, and writes it in the order in which it was asked for.
type flow struct {
	repo  *repo.Repository
	out   io.Writer
	open  *batch
	queue chan *batch
	fetch func(*batch)
}

// batch is some of what is written, and the content that it takes.
type batch struct {
	pieces []piece
	bytes  int64
	blobs  map[repo.ID][]byte // nil: could not be fetched
	ready  chan struct{}      // closed when fetching is over
	err    error
}

// piece is what is written in one go: what begin writes, and then some of a file's content.
type piece struct {
	name    string
	begin   func() error // nil in the middle of a file
	content []repo.ID
}

// run calls ask, which says what is written, and writes it at the same time.
func (f *flow) run(ctx context.Context, ask func(context.Context, *flow) error) error {
	group, ctx := errgroup.WithContext(ctx)
	f.queue, f.open = make(chan *batch, batchesAhead), newBatch()
	f.fetch = func(b *batch) {
		group.Go(func() error {
			defer close(b.ready)
			b.err = f.load(ctx, b)
			return nil // it belongs to where the batch is written
		})
	}
	group.Go(func() error {
		defer close(f.queue)
		if err := ask(ctx, f); err != nil {
			return err
		}
		return f.send(ctx)
	})
	group.Go(func() error { return f.write(ctx) })
	return group.Wait()
}

func newBatch() *batch { return &batch{blobs: map[repo.ID][]byte{}, ready: make(chan struct{})} }

// entry asks for something without content.
func (f *flow) entry(ctx context.Context, begin func() error) error {
	return f.add(ctx, piece{begin: begin}, 0)
}

// file asks for a file: what begin writes, if not nil, and its content, which must have the file's size.
func (f *flow) file(ctx context.Context, name string, n *tree.Node, begin func() error) error {
	p, bytes, total := piece{name: name, begin: begin}, int64(0), uint64(0)
	pieces, sizes := []piece{}, []int64{}
	for i, id := range n.Content {
		size, listed := f.repo.BlobSize(repo.BlobHandle{Type: repo.DataBlob, ID: id})
		if !listed {
			return fmt.Errorf("%.200q: its blob %s: %w in the index", name, id, repo.ErrNotFound)
		}
		p.content = n.Content[i-len(p.content) : i+1]
		total += uint64(size)
		if bytes += int64(size); bytes >= batchBytes {
			pieces, sizes = append(pieces, p), append(sizes, bytes)
			p, bytes = piece{name: name}, 0
		}
	}
	if total != n.Size {
		return fmt.Errorf("%.200q: its blobs have %d bytes and its size is %d: %w", name, total, n.Size, tree.ErrMalformed)
	}
	pieces, sizes = append(pieces, p), append(sizes, bytes)
	for i := range pieces {
		if err := f.add(ctx, pieces[i], sizes[i]); err != nil {
			return err
		}
	}
	return nil
}

func (f *flow) add(ctx context.Context, p piece, bytes int64) error {
	f.open.pieces = append(f.open.pieces, p)
	for _, id := range p.content {
		f.open.blobs[id] = nil
	}
	if f.open.bytes += bytes; f.open.bytes >= batchBytes || len(f.open.pieces) >= batchPieces {
		return f.send(ctx)
	}
	return nil
}

func (f *flow) send(ctx context.Context) error {
	select {
	case f.queue <- f.open:
		f.fetch(f.open)
		f.open = newBatch()
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (f *flow) load(ctx context.Context, b *batch) error {
	handles := make([]repo.BlobHandle, 0, len(b.blobs))
	for id := range b.blobs {
		handles = append(handles, repo.BlobHandle{Type: repo.DataBlob, ID: id})
	}
	return f.repo.LoadBlobs(ctx, handles, func(h repo.BlobHandle, plain []byte) error {
		b.blobs[h.ID] = bytes.Clone(plain)
		return nil
	})
}

func (f *flow) write(ctx context.Context) error {
	for b := range f.queue {
		select {
		case <-b.ready:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if b.err != nil && !errors.Is(b.err, repo.ErrDamaged) {
			return b.err
		}
		for _, p := range b.pieces {
			if err := f.piece(ctx, b, p); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *flow) piece(ctx context.Context, b *batch, p piece) error {
	if p.begin != nil {
		if err := p.begin(); err != nil {
			return err
		}
	}
	for _, id := range p.content {
		plain := b.blobs[id]
		if plain == nil { // one of the batch is damaged: find out which
			var err error
			if plain, err = f.repo.LoadBlob(ctx, repo.BlobHandle{Type: repo.DataBlob, ID: id}, nil); err != nil {
				return fmt.Errorf("the content of %.200q: %w", p.name, err)
			}
		}
		if _, err := f.out.Write(plain); err != nil {
			return fmt.Errorf("write the content of %.200q: %w", p.name, err)
		}
	}
	return nil
}
