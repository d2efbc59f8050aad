package repotest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"example.com/pvcbackup/blobstore"
)

// Dir lays objects out as files below a folder. Conditional writes are atomic among processes.
type Dir struct{ root string }

// NewDir uses an existing folder, and makes in it those that restic expects of a repository.
func NewDir(root string) (*Dir, error) {
	for _, name := range []string{"data", "index", "keys", "locks", "snapshots"} {
		if err := os.MkdirAll(filepath.Join(root, name), 0o700); err != nil {
			return nil, err
		}
	}
	return &Dir{root: root}, nil
}

func (d *Dir) path(key string) string { return filepath.Join(d.root, filepath.FromSlash(key)) }

func translate(op, key string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		err = blobstore.ErrNotFound
	case errors.Is(err, fs.ErrExist):
		err = blobstore.ErrExists
	case errors.Is(err, fs.ErrPermission):
		err = blobstore.ErrPermission
	}
	return fmt.Errorf("%s %s: %w", op, key, err)
}

// PutBytes implements repo.Store.
func (d *Dir) PutBytes(ctx context.Context, key string, data []byte, o *blobstore.PutOptions) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return translate("put", key, d.put(d.path(key), data, o != nil && o.OnlyIfAbsent))
}

func (d *Dir) put(path string, data []byte, absent bool) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(d.root, "put-*.tmp")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // gone already after a rename
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if absent {
		return os.Link(f.Name(), path)
	}
	return os.Rename(f.Name(), path)
}

// GetBytes implements repo.Store.
func (d *Dir) GetBytes(ctx context.Context, key string, limit int64) ([]byte, error) {
	o, err := d.Stat(ctx, key)
	if err != nil {
		return nil, err
	}
	if o.Size > limit {
		return nil, fmt.Errorf("get %s: the object has more than %d bytes", key, limit)
	}
	data, err := os.ReadFile(d.path(key))
	return data, translate("get", key, err)
}

// GetRange implements repo.Store.
func (d *Dir) GetRange(ctx context.Context, key string, offset, length int64) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f, err := os.Open(d.path(key))
	if err != nil {
		return nil, translate("get", key, err)
	}
	defer func() { _ = f.Close() }() // nothing was written
	data := make([]byte, length)
	if n, err := f.ReadAt(data, offset); int64(n) != length {
		return nil, fmt.Errorf("get %s: %w: the object is shorter than %d bytes: %w", key, blobstore.ErrCorrupt, offset+length, err)
	}
	return data, nil
}

// Stat implements repo.Store.
func (d *Dir) Stat(ctx context.Context, key string) (blobstore.Object, error) {
	if err := ctx.Err(); err != nil {
		return blobstore.Object{}, err
	}
	info, err := os.Stat(d.path(key))
	if err != nil {
		return blobstore.Object{}, translate("stat", key, err)
	}
	return blobstore.Object{Key: key, Size: info.Size(), ModTime: info.ModTime()}, nil
}

// List implements repo.Store.
func (d *Dir) List(ctx context.Context, prefix string) iter.Seq2[blobstore.Object, error] {
	return func(yield func(blobstore.Object, error) bool) {
		found, err := d.list(ctx, prefix)
		if err != nil {
			yield(blobstore.Object{}, translate("list", prefix, err))
			return
		}
		for _, o := range found {
			if !yield(o, nil) {
				return
			}
		}
	}
}

func (d *Dir) list(ctx context.Context, prefix string) ([]blobstore.Object, error) {
	var found []blobstore.Object
	err := filepath.WalkDir(d.root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return errors.Join(err, ctx.Err())
		}
		rel, err := filepath.Rel(d.root, path)
		key := filepath.ToSlash(rel)
		if err != nil || !strings.HasPrefix(key, prefix) || strings.HasSuffix(key, ".tmp") {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		found = append(found, blobstore.Object{Key: key, Size: info.Size(), ModTime: info.ModTime()})
		return nil
	})
	slices.SortFunc(found, func(a, b blobstore.Object) int { return strings.Compare(a.Key, b.Key) })
	return found, err
}

// Delete implements repo.Store.
func (d *Dir) Delete(ctx context.Context, key string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return translate("delete", key, os.Remove(d.path(key)))
}
