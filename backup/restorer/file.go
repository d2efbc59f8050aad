package restorer

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"example.com/pvcbackup/backup/internal/chunker"
	"example.com/pvcbackup/backup/internal/fsmeta"
	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/backup/repo/tree"
	"golang.org/x/sys/unix"
)

const (
	// A batch holds as much as this, at first, and then twice as much as the one before, up to that: what is small is
	// divided among the workers, and what is large takes few requests.
	firstBatch = 4 << 20
	batchBytes = 32 << 20
	batchFiles = 16 << 10
	batchOpen  = 128 // files that are open until the batch is done
	holeBlock  = 64 << 10
	// readBackSize is how much of a chunk is read back at once: what a processor's cache holds beside it.
	readBackSize = 256 << 10
)

var zeroChunk = repo.ID(sha256.Sum256(make([]byte, chunker.ZeroSize)))

// file is one that is being restored, by as many batches as it takes.
type file struct {
	rel  string
	node *tree.Node

	once  sync.Once
	err   error
	fd    int
	ready bool   // it is open, and to be written
	kept  bool   // it is equal, and only its metadata is to be set
	have  []bool // chunks of its content that an interrupted restore has written; nil for none
	parts atomic.Int64
	lost  atomic.Bool // the repository does not have all of it
}

// part is a stretch of a file: the chunks of its content from one to another.
type part struct {
	f        *file
	from, to int
	offset   int64
}

// batch is what one worker fetches and writes in one go.
type batch struct {
	parts        []part
	bytes, limit int64
	open         int
}

func newBatch(limit int64) *batch { return &batch{limit: min(limit, batchBytes)} }

func (b *batch) full() bool {
	return b.bytes >= b.limit || len(b.parts) >= batchFiles || b.open >= batchOpen
}

// close gives up what a batch leaves open; after a success there is nothing.
func (b *batch) close() {
	for _, p := range b.parts {
		if p.f != nil && p.f.parts.Add(-1) == 0 && p.f.ready {
			unix.Close(p.f.fd)
			p.f.ready = false
		}
	}
}

// file plans one file. It leaves out one with content that is not in the index, and refuses one whose content does not
// have its length.
func (r *restore) file(ctx context.Context, rel string, n *tree.Node) error {
	f := &file{rel: rel, node: n, fd: -1}
	p := part{f: f}
	offset := int64(0)
	var parts []part
	for i, c := range n.Content {
		size, ok := r.repo.BlobSize(repo.BlobHandle{Type: repo.DataBlob, ID: c})
		if !ok {
			r.tally.planned[files].Add(^uint64(0))
			r.damage.add(rel, n, fmt.Errorf("%.300q: %v (%s): %w in the index", rel, repo.BlobHandle{Type: repo.DataBlob, ID: c}, c, repo.ErrNotFound))
			return nil
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
		if !r.atOnce(f) {
			r.open.open++
		}
		if r.open.full() {
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
		r.open = newBatch(2 * r.open.limit)
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
	part   *part // of a file that is written at once; nil otherwise
}

// atOnce reports whether a file is made, written and completed when its only chunk arrives. One that may exist has to be
// looked at before anything is fetched.
func (r *restore) atOnce(f *file) bool {
	fresh := r.o.Overwrite == RefuseNonEmpty || r.o.Overwrite == Always
	return fresh && len(f.node.Content) == 1 && f.node.Content[0] != zeroChunk
}

func (w *worker) batch(ctx context.Context, b *batch) error {
	places := map[repo.BlobHandle][]place{}
	var handles []repo.BlobHandle
	for i := range b.parts {
		p := &b.parts[i]
		if w.atOnce(p.f) {
			h := repo.BlobHandle{Type: repo.DataBlob, ID: p.f.node.Content[0]}
			if places[h] == nil {
				handles = append(handles, h)
			}
			places[h] = append(places[h], place{f: p.f, part: p})
			continue
		}
		if err := w.prepare(p.f); err != nil {
			return err
		}
		if !p.f.ready {
			continue
		}
		offset := p.offset
		for i, c := range p.f.node.Content[p.from:p.to] {
			h := repo.BlobHandle{Type: repo.DataBlob, ID: c}
			size, _ := w.repo.BlobSize(h)
			at := place{f: p.f, offset: offset}
			offset += int64(size)
			if p.f.have != nil {
				if p.f.have[p.from+i] {
					continue
				}
				if err := w.empty(p.f, at.offset, int64(size)); err != nil {
					return err
				}
			}
			w.tally.written.Add(uint64(size))
			if c != zeroChunk || w.o.NoHoles {
				if places[h] == nil {
					handles = append(handles, h)
				}
				places[h] = append(places[h], at)
			}
		}
	}
	put := func(h repo.BlobHandle, data []byte) error {
		for _, at := range places[h] {
			if at.part != nil && at.part.f == nil {
				continue // it is complete since before a chunk turned out to be damaged
			}
			if err := w.chunk(at, data); err != nil {
				return err
			}
		}
		return nil
	}
	err := w.repo.LoadBlobs(ctx, handles, put)
	if lasting(err) {
		err = w.salvage(ctx, handles, places, put)
	}
	if err != nil {
		return err
	}
	for i := range b.parts {
		p := &b.parts[i]
		if p.f == nil {
			continue // it was written at once
		}
		if err := w.verifyHoles(*p); err != nil {
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

// chunk writes a chunk where it belongs, and with it the whole file if it has no other.
func (w *worker) chunk(at place, data []byte) error {
	if at.part != nil {
		if err := w.prepare(at.f); err != nil {
			return err
		}
		w.tally.written.Add(uint64(len(data)))
	}
	if err := w.write(at.f, data, at.offset); err != nil {
		return err
	}
	if err := w.readBack(at.f, data, at.offset); err != nil {
		return err
	}
	if at.part == nil {
		return nil
	}
	at.part.f = nil // done, and none of close's business
	return w.complete(at.f)
}

// salvage loads one blob after the other, and gives up only the files that need those that are damaged.
func (w *worker) salvage(ctx context.Context, handles []repo.BlobHandle, places map[repo.BlobHandle][]place, put func(repo.BlobHandle, []byte) error) error {
	for _, h := range handles {
		data, err := w.repo.LoadBlob(ctx, h, nil)
		if lasting(err) {
			for _, at := range places[h] {
				w.lose(at.f, err)
			}
			continue
		}
		if err == nil {
			err = put(h, data)
		}
		if err != nil {
			return err
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
		if err = w.resume(dirfd, name, f, &st); f.kept || f.ready || err != nil {
			return err
		}
	}
	skip, err := w.makeRoom(dirfd, f.rel, &st)
	if skip || err != nil {
		return err // neither ready nor kept: complete counts it as skipped
	}
	return create()
}

// resume keeps a file of the target that has the content of the snapshot, and goes on with one that an interrupted
// restore has left.
func (w *worker) resume(dirfd int, name string, f *file, st *unix.Stat_t) error {
	if fsmeta.TypeOf(st) != tree.File || uint64(st.Size) != f.node.Size || st.Nlink > 1 && f.node.Links < 2 {
		return nil
	}
	fd, err := fsmeta.OpenQuiet(dirfd, name, 0)
	if err != nil {
		return nil // what cannot be read is replaced
	}
	defer unix.Close(fd)
	have, count, left := make([]bool, len(f.node.Content)), 0, leftOver(dirfd, name, fd)
	err = w.eachChunk(fd, part{f: f, to: len(have)}, nil, func(i int, _ int64, equal bool) error {
		if have[i] = equal; equal {
			count++
		} else if !left {
			return errDiffers
		}
		return nil
	})
	switch {
	case errors.Is(err, errDiffers):
		return nil
	case err != nil:
		return err
	case count == len(have):
		f.kept = true
	case count > 0:
		f.fd, err = unix.Open(fsmeta.FdPath(fd), unix.O_RDWR|unix.O_CLOEXEC, 0)
		if f.ready = err == nil; f.ready {
			f.have = have
		}
	}
	return nil // what cannot be written is replaced
}

var errDiffers = errors.New("the file has other content")

// leftOver reports whether an open file may be written to in place: only this process's user can have it open, and the
// name in the target is the only one it has. Both were so when an interrupted restore made it, and hold for nothing
// outside the target.
func leftOver(dirfd int, name string, fd int) bool {
	open, err := fsmeta.Fstat(fd)
	if err != nil || open.Mode&0o7777 != 0o600 || int(open.Uid) != os.Geteuid() {
		return false
	}
	named, err := fsmeta.Lstat(dirfd, name)
	return err == nil && named.Ino == open.Ino && named.Dev == open.Dev && named.Nlink == 1
}

// empty makes a stretch of a file zero, and a hole where the filesystem can.
func (w *worker) empty(f *file, offset, size int64) error {
	const mode = unix.FALLOC_FL_PUNCH_HOLE | unix.FALLOC_FL_KEEP_SIZE
	if fsmeta.Retry(func() error { return unix.Fallocate(f.fd, mode, offset, size) }) == nil {
		return nil
	}
	return w.writeAll(f, make([]byte, size), offset)
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
		if err := w.writeAll(f, data[:n], offset); err != nil {
			return err
		}
		data, offset = data[n:], offset+int64(n)
	}
	return nil
}

func (w *worker) writeAll(f *file, data []byte, offset int64) error {
	for len(data) > 0 {
		var done int
		err := fsmeta.Retry(func() (err error) {
			done, err = unix.Pwrite(f.fd, data, offset)
			return err
		})
		if err != nil {
			return at(f.rel, err)
		}
		data, offset = data[done:], offset+int64(done)
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

// readBack compares what a file has now with a chunk that was just written, and whose hash is known to be right.
func (w *worker) readBack(f *file, data []byte, offset int64) error {
	if w.o.SkipVerify {
		return nil
	}
	for len(data) > 0 {
		buf := w.buffer(min(len(data), readBackSize))
		n, err := readFull(f.fd, buf, offset)
		if err != nil {
			return at(f.rel, err)
		}
		if n < len(buf) || !bytes.Equal(buf, data[:n]) {
			return at(f.rel, contentMismatch(f, offset, "what was written"))
		}
		data, offset = data[n:], offset+int64(n)
	}
	return nil
}

// verifyHoles looks at the chunks of a part that were left out because they are zero.
func (w *worker) verifyHoles(p part) error {
	if !p.f.ready || w.o.SkipVerify || w.o.NoHoles {
		return nil
	}
	zero := func(c repo.ID) bool { return c == zeroChunk }
	return at(p.f.rel, w.eachChunk(p.f.fd, p, zero, func(i int, offset int64, equal bool) error {
		if !equal {
			return contentMismatch(p.f, offset, p.f.node.Content[i].Short())
		}
		return nil
	}))
}

func (w *worker) buffer(size int) []byte {
	if cap(w.buf) < size {
		w.buf = make([]byte, size)
	}
	return w.buf[:size]
}

func contentMismatch(f *file, offset int64, want string) error {
	return &MismatchError{Path: f.rel, Field: fmt.Sprintf("the content at byte %d", offset), Want: want, Got: "something else"}
}

// eachChunk tells fn of every chunk of a part that is chosen, by its number in the content and its offset, whether an
// open file has it. nil chooses all.
func (w *worker) eachChunk(fd int, p part, chosen func(repo.ID) bool, fn func(i int, offset int64, equal bool) error) error {
	offset := p.offset
	dataFrom := int64(-1) // where the next data begins, if it is known
	for i := p.from; i < p.to; i++ {
		c := p.f.node.Content[i]
		size, _ := w.repo.BlobSize(repo.BlobHandle{Type: repo.DataBlob, ID: c})
		start := offset
		offset += int64(size)
		if chosen != nil && !chosen(c) {
			continue
		}
		if c == zeroChunk && dataFrom < start {
			dataFrom = nextData(fd, start)
		}
		equal := c == zeroChunk && dataFrom >= offset
		if !equal {
			buf := w.buffer(int(size))
			n, err := readFull(fd, buf, start)
			if err != nil {
				return err
			}
			equal = n == int(size) && sha256.Sum256(buf) == c
		}
		if err := fn(i, start, equal); err != nil {
			return err
		}
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
	if f.lost.Load() {
		return w.discard(f)
	}
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
