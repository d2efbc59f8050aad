package file

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"gocloud.dev/blob"

	"example.com/pvcbackup/blobstore"
)

// Openers returns the opener of the scheme "file".
func Openers() map[string]blobstore.Opener {
	return map[string]blobstore.Opener{"file": open}
}

func open(_ context.Context, u *url.URL, opts *blobstore.Options) (*blobstore.Driver, error) {
	create, err := parse(u)
	if err != nil {
		return nil, err
	}
	root, err := openRoot(filepath.Clean(u.Path), opts.FileRoot, create)
	if err != nil {
		return nil, err
	}
	b := &bucket{root: root}
	b.sweep(time.Now())
	return &blobstore.Driver{
		Bucket:   blob.NewBucket(b),
		Classify: classify,
		List:     b.list,
		CheckKey: checkKey,
	}, nil
}

func parse(u *url.URL) (create bool, err error) {
	if u.Host != "" {
		return false, blobstore.Invalid("open", "file URL has the host %q: write file:///folder with three slashes", u.Host)
	}
	if !filepath.IsAbs(u.Path) || filepath.Clean(u.Path) == "/" {
		return false, blobstore.Invalid("open", "file URL has the path %q: it must be an absolute folder other than /", u.Path)
	}
	if strings.Contains(u.Path, "/../") || strings.HasSuffix(u.Path, "/..") {
		return false, blobstore.Invalid("open", "file URL has the path %q, which contains \"..\"", u.Path)
	}
	for name, values := range u.Query() {
		if name != "create_dir" {
			return false, blobstore.Invalid("open", "file URL has the unknown parameter %q; it takes create_dir and prefix", name)
		}
		if create, err = strconv.ParseBool(values[0]); err != nil {
			return false, blobstore.Invalid("open", "file URL has create_dir=%q: it must be true or false", values[0])
		}
	}
	return create, nil
}

// openRoot opens dir so that nothing can leave it. Below base, if given, every
// step is taken inside of base, so that no symbolic link leads out of it.
func openRoot(dir, base string, create bool) (*os.Root, error) {
	if base == "" {
		if create {
			if err := os.MkdirAll(dir, 0o700); err != nil {
				return nil, openError(dir, err)
			}
		}
		root, err := os.OpenRoot(dir)
		return root, openError(dir, err)
	}
	rel, err := filepath.Rel(filepath.Clean(base), dir)
	if err != nil || !filepath.IsLocal(rel) {
		return nil, &blobstore.Error{Op: "open", Kind: blobstore.KindInvalid,
			Err: fmt.Errorf("folder %s is not below %s, the only place where file URLs are allowed here", dir, base)}
	}
	outer, err := os.OpenRoot(base)
	if err != nil {
		return nil, openError(base, err)
	}
	defer outer.Close()
	if create {
		if err := outer.MkdirAll(rel, 0o700); err != nil {
			return nil, openError(dir, err)
		}
	}
	root, err := outer.OpenRoot(rel)
	return root, openError(dir, err)
}

func openError(dir string, err error) error {
	if err == nil {
		return nil
	}
	kind := blobstore.KindInvalid
	switch {
	case errors.Is(err, fs.ErrNotExist):
		kind = blobstore.KindNoBucket
		err = fmt.Errorf("folder %s is not there: mount or create it, or add create_dir=true", dir)
	case errors.Is(err, fs.ErrPermission):
		kind = blobstore.KindPermission
	}
	return &blobstore.Error{Op: "open", Kind: kind, Err: err}
}

// checkKey keeps the folder for unfinished files to ourselves.
func checkKey(key string) error {
	if key == tempDir || strings.HasPrefix(key, tempDir+"/") {
		return fmt.Errorf("key %q lies in %s, which holds unfinished files", key, tempDir)
	}
	for seg := range strings.SplitSeq(key, "/") {
		if len(seg) > 255 {
			return fmt.Errorf("key has a segment of %d bytes; file names end at 255", len(seg))
		}
	}
	return nil
}
