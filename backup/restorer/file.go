package restorer

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"example.com/pvcbackup/backup/internal/chunker"
	"example.com/pvcbackup/backup/internal/fsmeta"
	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/backup/repo/tree"
	"golang.org/x/sys/unix"
)

const (
	batchBytes = 32 << 20
	batchFiles = 128
	holeBlock  = 64 << 10
	// fileBuffer must hold the largest chunk of a file that is read again; larger ones are allocated.
	fileBuffer = 8 << 20
)

var zeroChunk = repo.ID(sha256.Sum256(make([]byte, chunker.ZeroSize)))

// file is one that is being restored, by as many batches as it takes.
type file struct {
	rel  string
	node *tree.Node

	once  sync.Once
	err   error
	fd    int
	ready bool // it is open, and to be written
	kept  bool // it is equal, and only its metadata is to be set
	parts atomic.Int64
}

// part is a stretch of a file: the chunks of its content from one to another.
type part struct {
	f        *file
	from, to int
	offset   int64
}

// batch is what one worker fetches and writes in one go.
type batch struct {
	parts []part
	bytes int64
}

func newBatch() *batch { return &batch{} }

// close gives up what a batch leaves open; after a success there is nothing.
func (b *batch) close() {
	for _, p := range b.parts {
		if p.f != nil && p.f.parts.Add(-1) == 0 && p.f.ready {
			unix.Close(p.f.fd)
			p.f.ready = false
		}
	}
}

// file plans one file. It refuses content that is not in the index, or whose length is not the file's.
func (r *restore) file(ctx context.Context, rel string, n *tree.Node) error {
	f := &file{rel: rel, node: n, fd: -1}
	p := part{f: f}
	offset := int64(0)
	var parts []part
	for i, c := range n.Content {
		size, ok := r.repo.BlobSize(repo.BlobHandle{Type: repo.DataBlob, ID: c})
		if !ok {
			return fmt.Errorf("%.300q: %v: %w", rel, repo.BlobHandle{Type: repo.DataBlob, ID: c}, repo.ErrNotFound)
		}
		if offset-p.offset+int64(size) > batchBytes && i > p.from && c != zeroChunk {
			p.to = i
			parts = append(parts, p)
			p = part{f: f, from: i, offset: offset}
		}
		offset += int64(size)
	}
	p.to = len(n.Content)
	parts = append(parts, p)
	if uint64(offset) != n.Size {
		return fmt.Errorf("%.300q: its chunks have %d bytes and its size is %d: %w", rel, offset, n.Size, tree.ErrMalformed)
	}
	if r.o.DryRun {
		r.tally.bytes.Add(n.Size)
		return nil
	}
	f.parts.Store(int64(len(parts)))
	for i, p := range parts {
		end := offset
		if i+1 < len(parts) {
			end = parts[i+1].offset
		}
		r.open.parts = append(r.open.parts, p)
		r.open.bytes += end - p.offset
		if r.open.bytes >= batchBytes || len(r.open.parts) >= batchFiles {
			if err := r.send(ctx); err != nil {
				f.parts.Add(int64(i + 1 - len(parts))) // nobody will see the others
				return err
			}
		}
	}
	return nil
}

func (r *restore) send(ctx context.Context) error {
	select {
	case r.batches <- r.open:
		r.open = newBatch()
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// worker restores one batch at a time.
type worker struct {
	*restore
	dirs dirCache
	buf  []byte
}

type place struct {
	f      *file
	offset int64
}

func (w *worker) batch(ctx context.Context, b *batch) error {
	places := map[repo.BlobHandle][]place{}
	var handles []repo.BlobHandle
	for _, p := range b.parts {
		if err := w.prepare(p.f); err != nil {
			return err
		}
		if !p.f.ready {
			continue
		}
		offset := p.offset
		for _, c := range p.f.node.Content[p.from:p.to] {
			h := repo.BlobHandle{Type: repo.DataBlob, ID: c}
			size, _ := w.repo.BlobSize(h)
			if c != zeroChunk || w.o.NoHoles {
				if places[h] == nil {
					handles = append(handles, h)
				}
				places[h] = append(places[h], place{f: p.f, offset: offset})
			}
			offset += int64(size)
		}
		w.tally.written.Add(uint64(offset - p.offset))
	}
	err := w.repo.LoadBlobs(ctx, handles, func(h repo.BlobHandle, data []byte) error {
		for _, at := range places[h] {
			if err := w.write(at.f, data, at.offset); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i := range b.parts {
		p := &b.parts[i]
		if err := w.verify(*p); err != nil {
			return err
		}
		f := p.f
		p.f = nil // done, and none of close's business
		if f.parts.Add(-1) == 0 {
			if err := w.complete(f); err != nil {
				return err
			}
		}
	}
	return nil
}

// prepare opens a file, once for all its parts.
func (w *worker) prepare(f *file) error {
	f.once.Do(func() { f.err = at(f.rel, w.create(f)) })
	return f.err
}

func (w *worker) create(f *file) error {
	dir, name := split(f.rel)
	dirfd, err := w.dirs.get(dir)
	if err != nil {
		return err
	}
	create := func() error {
		err := fsmeta.Retry(func() (err error) {
			f.fd, err = unix.Openat(dirfd, name, unix.O_CREAT|unix.O_EXCL|unix.O_RDWR|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
			return err
		})
		if err != nil {
			return err
		}
		f.ready = true
		if f.node.Size < holeBlock {
			return nil // it is written whole
		}
		return fsmeta.Retry(func() error { return unix.Ftruncate(f.fd, int64(f.node.Size)) })
	}
	err = create()
	if !errors.Is(err, unix.EEXIST) {
		return err
	}
	st, err := fsmeta.Lstat(dirfd, name)
	if err != nil {
		return err
	}
	if w.o.Overwrite == IfChanged {
		if f.kept, err = w.equal(dirfd, name, f, &st); f.kept || err != nil {
			return err
		}
	}
	skip, err := w.makeRoom(dirfd, f.rel, &st)
	if skip || err != nil {
		return err // neither ready nor kept: complete counts it as skipped
	}
	return create()
}

// equal reports whether a file in the target has the content of the snapshot.
func (w *worker) equal(dirfd int, name string, f *file, st *unix.Stat_t) (bool, error) {
	if fsmeta.TypeOf(st) != tree.File || uint64(st.Size) != f.node.Size || st.Nlink > 1 && f.node.Links < 2 {
		return false, nil
	}
	fd, err := fsmeta.OpenQuiet(dirfd, name, 0)
	if err != nil {
		return false, nil // what cannot be read is replaced
	}
	defer unix.Close(fd)
	err = w.hashes(fd, part{f: f, to: len(f.node.Content)})
	var mismatch *MismatchError
	if errors.As(err, &mismatch) {
		return false, nil
	}
	return err == nil, err
}

// write puts a chunk into a file, and leaves out what is zero for long: it was never there.
func (w *worker) write(f *file, data []byte, offset int64) error {
	for len(data) > 0 {
		n := len(data)
		if !w.o.NoHoles {
			zeros, n2 := nextRun(data, offset)
			n = n2
			if zeros {
				data, offset = data[n:], offset+int64(n)
				continue
			}
		}
		for n > 0 {
			var done int
			err := fsmeta.Retry(func() (err error) {
				done, err = unix.Pwrite(f.fd, data[:n], offset)
				return err
			})
			if err != nil {
				return at(f.rel, err)
			}
			data, offset, n = data[done:], offset+int64(done), n-done
		}
	}
	return nil
}

// nextRun returns how much of data can be written, or left out, in one go: zeros are left out by whole blocks.
func nextRun(data []byte, offset int64) (zeros bool, n int) {
	first := holeBlock - int(offset%holeBlock)
	if first == holeBlock && len(data) >= holeBlock && chunker.AllZero(data[:holeBlock]) {
		return true, holeBlock
	}
	n = min(first, len(data))
	for n+holeBlock <= len(data) && !chunker.AllZero(data[n:n+holeBlock]) {
		n += holeBlock
	}
	if len(data)-n < holeBlock {
		n = len(data)
	}
	return false, n
}

// verify reads a part again.
func (w *worker) verify(p part) error {
	if !p.f.ready || w.o.SkipVerify {
		return nil
	}
	return at(p.f.rel, w.hashes(p.f.fd, p))
}

// hashes compares the chunks of a part with what an open file has.
func (w *worker) hashes(fd int, p part) error {
	if w.buf == nil {
		w.buf = make([]byte, fileBuffer)
	}
	offset := p.offset
	dataFrom := int64(-1) // where the next data begins, if it is known
	for _, c := range p.f.node.Content[p.from:p.to] {
		size, _ := w.repo.BlobSize(repo.BlobHandle{Type: repo.DataBlob, ID: c})
		if c == zeroChunk {
			if dataFrom < offset {
				dataFrom = nextData(fd, offset)
			}
			if dataFrom >= offset+int64(size) {
				offset += int64(size)
				continue
			}
		}
		if int(size) > len(w.buf) {
			w.buf = make([]byte, size)
		}
		n, err := readFull(fd, w.buf[:size], offset)
		if err != nil {
			return err
		}
		if n < int(size) || sha256.Sum256(w.buf[:size]) != c {
			return &MismatchError{Path: p.f.rel, Field: fmt.Sprintf("the content at byte %d", offset), Want: c.Short(), Got: "something else"}
		}
		offset += int64(size)
	}
	return nil
}

// nextData returns where the next data at or after an offset begins; offset itself when the filesystem cannot tell.
func nextData(fd int, offset int64) int64 {
	data, err := unix.Seek(fd, offset, unix.SEEK_DATA)
	if err == nil {
		return data
	}
	if errors.Is(err, unix.ENXIO) {
		if size, err := unix.Seek(fd, 0, unix.SEEK_END); err == nil {
			return size
		}
	}
	return offset
}

func readFull(fd int, buf []byte, offset int64) (int, error) {
	done := 0
	for done < len(buf) {
		var n int
		err := fsmeta.Retry(func() (err error) {
			n, err = unix.Pread(fd, buf[done:], offset+int64(done))
			return err
		})
		if err != nil || n == 0 {
			return done, err
		}
		done += n
	}
	return done, nil
}

// complete sets the metadata of a file whose content is there, and closes it.
func (w *worker) complete(f *file) error {
	if !f.ready && !f.kept {
		w.tally.skipped.Add(1)
		w.tally.planned[files].Add(^uint64(0))
		return nil
	}
	dir, name := split(f.rel)
	dirfd, err := w.dirs.get(dir)
	if err == nil {
		err = w.metadata(dirfd, name, f.fd, f.rel, f.node)
	}
	if f.ready {
		f.ready = false
		// Some filesystems tell only now that they are full.
		if closeErr := unix.Close(f.fd); err == nil && !errors.Is(closeErr, unix.EINTR) {
			err = closeErr
		}
	}
	if err != nil {
		return at(f.rel, err)
	}
	if f.kept {
		w.tally.kept.Add(1)
	}
	w.tally.done[files].Add(1)
	w.tally.bytes.Add(f.node.Size)
	return nil
}
