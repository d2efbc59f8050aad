package file

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"path"
	"slices"
	"strings"

	"gocloud.dev/blob/driver"

	"example.com/pvcbackup/blobstore"
)

// list yields the objects below a plain string prefix in the order of their
// keys, holding one folder's names per level in memory.
func (b *bucket) list(ctx context.Context, prefix string) iter.Seq2[blobstore.Object, error] {
	return func(yield func(blobstore.Object, error) bool) {
		dir := "."
		if i := strings.LastIndexByte(prefix, '/'); i >= 0 {
			dir = prefix[:i]
		}
		info, err := b.root.Stat(dir)
		if errors.Is(err, fs.ErrNotExist) && dir != "." || err == nil && !info.IsDir() {
			return
		}
		if err != nil {
			yield(blobstore.Object{}, err)
			return
		}
		w := &walk{ctx: ctx, b: b, prefix: prefix, yield: yield}
		w.folder(dir, "")
	}
}

type walk struct {
	ctx    context.Context
	b      *bucket
	prefix string
	yield  func(blobstore.Object, error) bool
}

// folder walks one folder and says whether to go on.
func (w *walk) folder(dir, above string) bool {
	if err := w.ctx.Err(); err != nil {
		return w.fail(err)
	}
	names, err := w.names(dir)
	if errors.Is(err, fs.ErrNotExist) && above != "" {
		return true // removed since its parent was read
	}
	if err != nil {
		return w.fail(err)
	}
	for _, name := range names {
		if !w.entry(path.Join(dir, strings.TrimSuffix(name, "/")), strings.HasSuffix(name, "/"), dir) {
			return false
		}
	}
	return true
}

// names returns a folder's names in key order: "a/" comes after "a.b".
func (w *walk) names(dir string) ([]string, error) {
	d, err := w.b.root.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	entries, err := d.ReadDir(-1)
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		if dir == "." && e.Name() == tempDir {
			continue
		}
		name := e.Name()
		if e.IsDir() {
			name += "/"
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return names, nil
}

func (w *walk) entry(key string, isDir bool, above string) bool {
	if isDir {
		sub := key + "/"
		if !strings.HasPrefix(sub, w.prefix) && !strings.HasPrefix(w.prefix, sub) {
			return true
		}
		return w.folder(key, above)
	}
	if !strings.HasPrefix(key, w.prefix) {
		return true
	}
	info, err := w.b.root.Stat(key)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return true // removed since the folder was read
	case err != nil:
		return w.fail(err)
	case info.IsDir():
		return w.fail(fmt.Errorf("%s is a symbolic link to a folder, which a store cannot hold", key))
	case !info.Mode().IsRegular():
		return true
	}
	return w.yield(blobstore.Object{Key: key, Size: info.Size(), ModTime: info.ModTime()}, nil)
}

func (w *walk) fail(err error) bool {
	w.yield(blobstore.Object{}, err)
	return false
}

const defaultPage = 1000

// ListPaged implements driver.Bucket over list; a page's token is its last key.
// It walks from the start for each page, so Store uses list itself.
func (b *bucket) ListPaged(ctx context.Context, opts *driver.ListOptions) (*driver.ListPage, error) {
	if opts.BeforeList != nil {
		if err := opts.BeforeList(func(any) bool { return false }); err != nil {
			return nil, err
		}
	}
	size := opts.PageSize
	if size <= 0 {
		size = defaultPage
	}
	page, token := &driver.ListPage{}, string(opts.PageToken)
	for o, err := range b.list(ctx, opts.Prefix) {
		if err != nil {
			return nil, err
		}
		entry := &driver.ListObject{Key: o.Key, Size: o.Size, ModTime: o.ModTime}
		if opts.Delimiter != "" {
			if dir, _, ok := strings.Cut(o.Key[len(opts.Prefix):], opts.Delimiter); ok {
				entry = &driver.ListObject{Key: opts.Prefix + dir + opts.Delimiter, IsDir: true}
			}
		}
		n := len(page.Objects)
		if entry.Key <= token || n > 0 && entry.Key == page.Objects[n-1].Key {
			continue
		}
		if n == size {
			page.NextPageToken = []byte(page.Objects[n-1].Key)
			break
		}
		page.Objects = append(page.Objects, entry)
	}
	return page, nil
}
