package archiver

import (
	"context"
	"sync"
	"time"

	"example.com/pvcbackup/backup/internal/fsmeta"
	"example.com/pvcbackup/backup/repo/tree"
	"golang.org/x/sys/unix"
)

// reportProgress calls the callback until the returned function is called, which calls it for the last time. Only a run
// that takes longer than the first interval is counted: nobody sees the totals of a shorter one.
func (b *backup) reportProgress(ctx context.Context, root int) (stop func()) {
	if b.o.Progress == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		ticker := time.NewTicker(b.o.ProgressInterval)
		defer ticker.Stop()
		for counting := !b.o.CountTotals; ; {
			select {
			case <-ticker.C:
				b.o.Progress(b.progress())
				if !counting {
					counting = true
					running.Go(func() { b.count(ctx, root) })
				}
			case <-done:
				return
			}
		}
	})
	return func() {
		cancel()
		close(done)
		running.Wait()
		last := b.progress()
		if b.o.CountTotals {
			last.TotalFiles, last.TotalBytes = last.Files, last.Bytes
		}
		b.o.Progress(last)
	}
}

func (b *backup) progress() Progress {
	t := &b.tally
	p := Progress{
		Files: t.filesDone.Load(), Dirs: t.dirsDone.Load(),
		// Unmodified files are done without being read.
		Bytes:  t.bytesDone.Load() + t.bytes[isUnmodified].Load(),
		Stored: uint64(b.writer.Stats().PackedBytes),
	}
	if t.counted.Load() {
		p.TotalFiles, p.TotalBytes = t.totalFiles.Load(), t.totalBytes.Load()
	}
	return p
}

// count adds up what is there. What cannot be read is met again, and recorded, by the walk.
func (b *backup) count(ctx context.Context, root int) {
	fd, err := fsmeta.OpenQuiet(root, ".", unix.O_DIRECTORY) // one that nobody else lists through
	if err != nil {
		return
	}
	defer unix.Close(fd)
	st, err := fsmeta.Fstat(fd)
	if err == nil && b.countDir(ctx, fd, ".", st.Dev) == nil {
		b.tally.counted.Store(true)
	}
}

func (b *backup) countDir(ctx context.Context, fd int, path string, device uint64) error {
	names, _ := fsmeta.Names(fd)
	for _, name := range names {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		child := join(path, name)
		st, err := fsmeta.Lstat(fd, name)
		if err != nil || b.o.excluded(child, name) {
			continue
		}
		switch fsmeta.TypeOf(&st) {
		case tree.File:
			b.tally.totalFiles.Add(1)
			b.tally.totalBytes.Add(uint64(st.Size))
		case tree.Dir:
			if b.o.OneFileSystem && st.Dev != device {
				continue
			}
			sub, err := fsmeta.OpenQuiet(fd, name, unix.O_DIRECTORY)
			if err != nil {
				continue
			}
			err = b.countDir(ctx, sub, child, device)
			unix.Close(sub)
			if err != nil {
				return err
			}
		}
	}
	return nil
}
