package archiver

import (
	"context"
	"sync"
	"time"

	"example.com/pvcbackup/backup/internal/fsmeta"
	"example.com/pvcbackup/backup/repo/tree"
	"golang.org/x/sys/unix"
)

// reportProgress calls the callback until the returned function is called, which calls it for the last time.
func (b *backup) reportProgress() (stop func()) {
	if b.o.Progress == nil {
		return func() {}
	}
	done := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		ticker := time.NewTicker(b.o.ProgressInterval)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				b.o.Progress(b.progress())
			case <-done:
				b.o.Progress(b.progress())
				return
			}
		}
	})
	return func() {
		close(done)
		running.Wait()
	}
}

func (b *backup) progress() Progress {
	t := &b.tally
	return Progress{
		Files: t.filesDone.Load(), Dirs: t.dirsDone.Load(),
		// Unmodified files are done without being read.
		Bytes:      t.bytesDone.Load() + t.bytes[isUnmodified].Load(),
		TotalFiles: t.totalFiles.Load(), TotalBytes: t.totalBytes.Load(),
		Stored: uint64(b.writer.Stats().PackedBytes),
	}
}

// count adds up what is there. What cannot be read is met again, and recorded, by the walk.
func (b *backup) count(ctx context.Context, root int) error {
	st, err := fsmeta.Fstat(root)
	if err != nil {
		return err
	}
	return b.countDir(ctx, root, ".", st.Dev)
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
