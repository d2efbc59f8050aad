package file

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"time"

	"gocloud.dev/blob/driver"
)

const (
	tempDir = ".blobstore-tmp"
	tempAge = 24 * time.Hour // older unfinished files belong to nobody

	// tries bounds the race with a Delete that removes a folder which has just
	// become empty, and with a Close that removes the one for unfinished files.
	tries = 20
)

// writer collects an object in a file without a key until Close.
type writer struct {
	ctx    context.Context
	b      *bucket
	key    string
	absent bool // only if there is none
	temp   string
	f      *os.File
}

// NewTypedWriter implements driver.Bucket.
func (b *bucket) NewTypedWriter(ctx context.Context, key, _ string, opts *driver.WriterOptions) (driver.Writer, error) {
	if opts.BeforeWrite != nil {
		if err := opts.BeforeWrite(func(any) bool { return false }); err != nil {
			return nil, err
		}
	}
	if opts.IfNotExist {
		// The link decides; this only spares the bytes of a certain loser.
		if _, err := b.root.Lstat(key); err == nil {
			return nil, &fs.PathError{Op: "link", Path: key, Err: fs.ErrExist}
		}
	}
	w := &writer{ctx: ctx, b: b, key: key, absent: opts.IfNotExist}
	return w, w.create()
}

func (w *writer) create() (err error) {
	var random [16]byte
	_, _ = rand.Read(random[:])
	w.temp = tempDir + "/" + hex.EncodeToString(random[:])
	for range tries {
		if err = w.b.root.Mkdir(tempDir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		w.f, err = w.b.root.OpenFile(w.temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return err
}

// Write implements io.Writer.
func (w *writer) Write(p []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	return w.f.Write(p)
}

// Close gives the file its key, unless the context has ended.
func (w *writer) Close() error {
	err := w.ctx.Err()
	if err == nil {
		err = w.f.Sync()
	}
	err = errors.Join(err, w.f.Close())
	if err == nil {
		err = w.publish()
	}
	if err != nil || w.absent {
		// After a link the object has two names; without a key it has one too many.
		_ = w.b.root.Remove(w.temp)
	}
	return err
}

func (w *writer) publish() (err error) {
	dir := path.Dir(w.key)
	for range tries {
		if err = w.b.mkdir(dir); err != nil {
			return err
		}
		if w.absent {
			err = w.b.root.Link(w.temp, w.key)
		} else {
			err = w.b.root.Rename(w.temp, w.key)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	if err != nil {
		if info, serr := w.b.root.Lstat(w.key); serr == nil && !info.Mode().IsRegular() {
			return errors.Join(errNotFile, err)
		}
		return err
	}
	return w.b.sync(dir)
}

// mkdir makes dir and what is above it, each on disk before the next.
func (b *bucket) mkdir(dir string) error {
	if dir == "." {
		return nil
	}
	if info, err := b.root.Stat(dir); err == nil && info.IsDir() {
		return nil
	}
	parent := path.Dir(dir)
	if err := b.mkdir(parent); err != nil {
		return err
	}
	err := b.root.Mkdir(dir, 0o700)
	if errors.Is(err, fs.ErrExist) {
		if info, serr := b.root.Stat(dir); serr == nil && !info.IsDir() {
			return errors.Join(errNotFile, err)
		}
		return nil
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the parent went away in between: publish comes round again
	}
	if err != nil {
		return err
	}
	return b.sync(parent)
}

func (b *bucket) sync(dir string) error {
	d, err := b.root.Open(dir)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it was removed again, with what was in it
		}
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// sweep removes unfinished files that are too old to be anybody's.
func (b *bucket) sweep(now time.Time) {
	d, err := b.root.Open(tempDir)
	if err != nil {
		return
	}
	defer d.Close()
	list, _ := d.ReadDir(-1)
	for _, e := range list {
		if info, err := e.Info(); err == nil && now.Sub(info.ModTime()) > tempAge {
			_ = b.root.Remove(path.Join(tempDir, e.Name()))
		}
	}
}

// Copy implements driver.Bucket.
func (b *bucket) Copy(ctx context.Context, dst, src string, opts *driver.CopyOptions) error {
	if opts.BeforeCopy != nil {
		if err := opts.BeforeCopy(func(any) bool { return false }); err != nil {
			return err
		}
	}
	f, _, err := b.open(src)
	if err != nil {
		return err
	}
	defer f.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w, err := b.NewTypedWriter(ctx, dst, "", &driver.WriterOptions{})
	if err != nil {
		return err
	}
	if _, err := io.Copy(w, f); err != nil {
		cancel()
		return errors.Join(err, w.Close())
	}
	return w.Close()
}
