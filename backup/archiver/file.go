package archiver

import (
	"context"
	"errors"
	"math"
	"runtime"
	"sync"

	"example.com/pvcbackup/backup/internal/chunker"
	"example.com/pvcbackup/backup/internal/fsmeta"
	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/backup/repo/tree"
	"golang.org/x/sys/unix"
)

const (
	smallFile = 512 << 10 // what fits is one chunk, whatever the chunker
	slack     = 4 << 20   // of a window, beyond what a splitter must see
)

// readers is the pool that reads files: a few goroutines that each hold one file, and one for each CPU that stores the
// chunks of large files.
type readers struct {
	b       *backup
	ctx     context.Context
	jobs    chan *job
	chunks  chan chunk
	large   chan *largeReader // those that are free; nil ones are not made yet
	split   func() (chunker.Splitter, error)
	running sync.WaitGroup
	storing sync.WaitGroup
	stopped sync.Once
	zero    struct {
		sync.Mutex
		id   repo.ID
		done bool
	}
}

type job struct {
	dirfd int
	e     *entry
	p     *promise
}

// chunk is a part of a window that is to be stored.
type chunk struct {
	data []byte
	id   *repo.ID
	w    *window
}

// window is a stretch of a large file. Its chunks are stored from where they were read to.
type window struct {
	buf     []byte
	ids     []*repo.ID
	storing sync.WaitGroup
}

func newReaders(ctx context.Context, b *backup, large int, split func() (chunker.Splitter, error)) *readers {
	cpus := runtime.GOMAXPROCS(0)
	r := &readers{
		b: b, ctx: ctx, split: split,
		jobs: make(chan *job, 4*b.o.ReadConcurrency), chunks: make(chan chunk, cpus), large: make(chan *largeReader, large),
	}
	for range cap(r.large) {
		r.large <- nil
	}
	for range b.o.ReadConcurrency {
		r.running.Go(r.read)
	}
	for range cpus {
		r.storing.Go(r.storeChunks)
	}
	return r
}

// stop waits for everything that was submitted.
func (r *readers) stop() {
	r.stopped.Do(func() {
		close(r.jobs)
		r.running.Wait()
		close(r.chunks)
		r.storing.Wait()
	})
}

// submit has a file read. The directory must stay open until the promise is kept.
func (r *readers) submit(dirfd int, e *entry) (*promise, error) {
	p := &promise{done: make(chan struct{})}
	select {
	case r.jobs <- &job{dirfd: dirfd, e: e, p: p}:
		return p, nil
	case <-r.ctx.Done():
		return nil, context.Cause(r.ctx)
	}
}

func (r *readers) read() {
	small := make([]byte, smallFile+1)
	for j := range r.jobs {
		if r.ctx.Err() != nil {
			j.p.err = context.Cause(r.ctx)
		} else if j.p.node, j.p.err = r.file(j, small); j.p.err != nil {
			r.b.cancel(j.p.err)
		}
		close(j.p.done)
	}
}

func (r *readers) storeChunks() {
	for c := range r.chunks {
		id, _, err := r.b.writer.SaveBlob(r.ctx, repo.DataBlob, c.data)
		if err != nil {
			r.b.cancel(err)
		}
		*c.id = id
		c.w.storing.Done()
	}
}

var errReplaced = errors.New("it was replaced by something that is not a file")

// file reads and stores one file. It returns nothing for one that cannot be read, which is recorded.
func (r *readers) file(j *job, small []byte) (*tree.Node, error) {
	fd, err := fsmeta.OpenQuiet(j.dirfd, j.e.name, 0)
	if err != nil {
		return nil, r.b.skip(j.e.path, err)
	}
	defer unix.Close(fd)
	st, err := fsmeta.Fstat(fd)
	if err == nil && fsmeta.TypeOf(&st) != tree.File {
		err = errReplaced
	}
	if err != nil {
		return nil, r.b.skip(j.e.path, err)
	}
	j.e.st = st
	node, err := r.b.describe(j.e, func() ([]tree.Xattr, error) { return fsmeta.FdXattrs(fd) })
	if err != nil {
		return nil, r.b.skip(j.e.path, err)
	}
	size, err := r.content(fd, node, small)
	var unreadable *readError
	if errors.As(err, &unreadable) {
		return nil, r.b.skip(j.e.path, unreadable.err)
	}
	if err != nil {
		return nil, err
	}
	after, err := fsmeta.Fstat(fd)
	if err != nil {
		return nil, r.b.skip(j.e.path, err)
	}
	if size != node.Size || !sameFile(&st, &after) {
		r.b.tally.changed.add(j.e.path)
	}
	node.Size = size
	k := isNew
	if j.e.previous != nil {
		k = isChanged
	}
	r.b.tally.file(k, size)
	r.b.sample.Add(node.Content)
	return node, nil
}

func sameFile(a, b *unix.Stat_t) bool {
	return a.Ino == b.Ino && a.Dev == b.Dev && a.Size == b.Size && a.Mtim == b.Mtim && a.Ctim == b.Ctim
}

// readError says that the file, and not the repository, is at fault.
type readError struct{ err error }

func (e *readError) Error() string { return e.err.Error() }
func (e *readError) Unwrap() error { return e.err }

// content stores what is in the file, puts its chunks into node, and returns how much it was.
func (r *readers) content(fd int, node *tree.Node, small []byte) (uint64, error) {
	node.Content = []repo.ID{}
	if node.Size <= smallFile {
		enough := int(node.Size)
		if enough == 0 { // which some filesystems say of every file
			enough = len(small)
		}
		n, err := readFull(fd, small, 0, enough)
		if err != nil || n == 0 {
			return 0, err
		}
		if n <= smallFile {
			id, _, err := r.b.writer.SaveBlob(r.ctx, repo.DataBlob, small[:n])
			node.Content = append(node.Content, id)
			r.b.tally.bytesDone.Add(uint64(n))
			return uint64(n), err
		}
	}
	return r.largeContent(fd, node)
}

func (r *readers) largeContent(fd int, node *tree.Node) (uint64, error) {
	var l *largeReader
	select {
	case l = <-r.large:
	case <-r.ctx.Done():
		return 0, context.Cause(r.ctx)
	}
	defer func() { r.large <- l }()
	if l == nil {
		splitter, err := r.split()
		if err != nil {
			return 0, err
		}
		l = &largeReader{r: r, splitter: splitter}
		for i := range l.windows {
			l.windows[i].buf = make([]byte, splitter.Window()+slack)
		}
	}
	_ = unix.Fadvise(fd, 0, 0, unix.FADV_SEQUENTIAL) // advice
	return l.read(fd, node)
}

// readFull reads at an offset until buf is full, the file ends, or there is exactly enough: what comes after that shows
// in the file's size.
func readFull(fd int, buf []byte, offset int64, enough int) (int, error) {
	done := 0
	for done < len(buf) && done != enough {
		var n int
		err := fsmeta.Retry(func() (err error) {
			n, err = unix.Pread(fd, buf[done:], offset+int64(done))
			return err
		})
		if err != nil {
			return done, &readError{err}
		}
		if n == 0 {
			break
		}
		done += n
	}
	return done, nil
}

// zeroID stores the zero chunk once.
func (r *readers) zeroID() (repo.ID, error) {
	r.zero.Lock()
	defer r.zero.Unlock()
	if !r.zero.done {
		id, _, err := r.b.writer.SaveBlob(r.ctx, repo.DataBlob, make([]byte, chunker.ZeroSize))
		if err != nil {
			return id, err
		}
		r.zero.id, r.zero.done = id, true
	}
	return r.zero.id, nil
}

// largeReader reads one file at a time through two windows: while the chunks of one are stored, the other is filled.
type largeReader struct {
	r        *readers
	splitter chunker.Splitter
	windows  [2]window
	content  []repo.ID
}

func (l *largeReader) read(fd int, node *tree.Node) (uint64, error) {
	l.content = []repo.ID{}
	size, err := l.cut(fd, node.Size)
	for i := range l.windows {
		l.collect(&l.windows[i])
	}
	if err == nil && l.r.ctx.Err() != nil {
		err = context.Cause(l.r.ctx)
	}
	node.Content, l.content = l.content, nil
	return size, err
}

// cut goes through the file and returns its length.
func (l *largeReader) cut(fd int, size uint64) (uint64, error) {
	// A file without holes takes up its size; only others are asked for them.
	filling, cutting := newHoles(fd, size), newHoles(fd, size)
	var (
		at   int64  // of the file, where the next chunk begins
		rest []byte // of the file, from at on, in the window before
		end  bool   // nothing follows rest
	)
	for turn := 0; ; turn++ {
		w := &l.windows[turn%2]
		l.collect(w)
		have := copy(w.buf, rest)
		for !end && have < len(w.buf) {
			n, err := filling.read(w.buf[have:], at+int64(have))
			if err != nil {
				l.collect(&l.windows[(turn+1)%2])
				return 0, err
			}
			have += n
			end = n == 0
		}
		rest = w.buf[:have]
		for len(rest) > 0 && (end || len(rest) >= l.splitter.Window()) {
			skip, err := l.hole(cutting, at, w)
			if err != nil {
				return 0, err
			}
			if skip > int64(len(rest)) { // what is in the window beyond this is older than what comes next
				at, rest, end = at+skip, nil, false
				break
			}
			at, rest = at+skip, rest[skip:]
			if skip > 0 {
				continue
			}
			cut := l.splitter.Next(rest, at)
			if err := l.emit(w, rest[:cut.Length], cut.Zero); err != nil {
				return 0, err
			}
			at, rest = at+int64(cut.Length), rest[cut.Length:]
		}
		if end && len(rest) == 0 {
			l.collect(&l.windows[(turn+1)%2])
			l.collect(w)
			return uint64(at), nil
		}
		// The next window must not overtake this one, and rest is read from this one.
		l.collect(&l.windows[(turn+1)%2])
	}
}

// hole emits the zero chunks with which a hole begins and returns their length.
func (l *largeReader) hole(h *holes, at int64, w *window) (int64, error) {
	inHole, end := h.at(at)
	if !inHole {
		return 0, nil
	}
	skip := l.splitter.Zeros(at, end-at)
	if skip == 0 {
		return 0, nil
	}
	id, err := l.r.zeroID()
	for range skip / chunker.ZeroSize {
		w.ids = append(w.ids, &id)
	}
	l.r.b.tally.bytesDone.Add(uint64(skip))
	return skip, err
}

func (l *largeReader) emit(w *window, data []byte, zero bool) error {
	l.r.b.tally.bytesDone.Add(uint64(len(data)))
	if zero {
		id, err := l.r.zeroID()
		w.ids = append(w.ids, &id)
		return err
	}
	id := new(repo.ID)
	w.ids = append(w.ids, id)
	w.storing.Add(1)
	select {
	case l.r.chunks <- chunk{data: data, id: id, w: w}:
		return nil
	case <-l.r.ctx.Done():
		w.storing.Done()
		return context.Cause(l.r.ctx)
	}
}

// collect waits for the chunks of a window and appends them to the content.
func (l *largeReader) collect(w *window) {
	w.storing.Wait()
	for _, id := range w.ids {
		l.content = append(l.content, *id)
	}
	clear(w.ids)
	w.ids = w.ids[:0]
}

// holes finds out where a file has data. Where the filesystem cannot tell, all is data.
type holes struct {
	fd         int
	off        bool
	start, end int64 // what is known
	hole       bool
}

func newHoles(fd int, size uint64) *holes {
	h := &holes{fd: fd}
	st, err := fsmeta.Fstat(fd)
	h.off = err != nil || uint64(st.Blocks)*512 >= size
	return h
}

// at reports whether there is a hole at an offset, and where it, or the data, ends. Beyond the end of the file is data.
func (h *holes) at(offset int64) (hole bool, end int64) {
	if h.off {
		return false, math.MaxInt64
	}
	if offset < h.start || offset >= h.end {
		h.look(offset)
	}
	return h.hole && !h.off, h.end
}

func (h *holes) look(offset int64) {
	data, err := unix.Seek(h.fd, offset, unix.SEEK_DATA)
	switch {
	case errors.Is(err, unix.ENXIO): // a hole up to the end, or beyond it
		size, err := unix.Seek(h.fd, 0, unix.SEEK_END)
		if h.off = err != nil; size > offset {
			h.start, h.end, h.hole = offset, size, true
		} else {
			h.start, h.end, h.hole = offset, math.MaxInt64, false
		}
	case err != nil:
		h.off = true
	case data > offset:
		h.start, h.end, h.hole = offset, data, true
	default:
		end, err := unix.Seek(h.fd, offset, unix.SEEK_HOLE)
		h.off = err != nil
		h.start, h.end, h.hole = offset, end, false
	}
}

// read fills a part of buf: from a hole with zeros, else from the file. It returns 0 at the end of the file.
func (h *holes) read(buf []byte, offset int64) (int, error) {
	hole, end := h.at(offset)
	if most := end - offset; int64(len(buf)) > most {
		buf = buf[:most]
	}
	if hole {
		clear(buf)
		return len(buf), nil
	}
	return readFull(h.fd, buf, offset, len(buf))
}
