package blobstore

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"gocloud.dev/blob"
)

const pageSize = 1000

// List yields every object whose key starts with prefix, a plain string ("a"
// also matches "ab"), in the order of the bytes of their keys, over all pages. An error
// ends it: what came before is then not the whole list. Empty objects whose key
// ends in a slash, which consoles create as folders, are left out.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		if err := checkPrefix(s.prefix + prefix); err != nil {
			yield(Object{}, &Error{Op: "list", Key: prefix, Kind: KindInvalid, Err: err})
			return
		}
		last := ""
		for o, err := range s.list(ctx, prefix) {
			if err == nil && strings.HasSuffix(o.Key, "/") && o.Size == 0 {
				continue
			}
			if err == nil {
				o.Key, err = s.relative(prefix, last, o.Key)
			}
			if err != nil {
				yield(Object{}, s.wrap(ctx, "list", prefix, err))
				return
			}
			last = o.Key
			if !yield(o, nil) {
				return
			}
		}
	}
}

// relative checks a listed key and cuts the store's prefix off.
func (s *Store) relative(prefix, last, full string) (string, error) {
	key, ok := strings.CutPrefix(full, s.prefix)
	if !ok || !strings.HasPrefix(key, prefix) || key == "" {
		return "", &Error{Kind: KindCorrupt, Err: fmt.Errorf("the store listed %q, which is not below the prefix", full)}
	}
	if key <= last {
		return "", &Error{Kind: KindCorrupt, Err: fmt.Errorf("the store listed %q after %q", key, last)}
	}
	return key, nil
}

// list yields complete keys.
func (s *Store) list(ctx context.Context, prefix string) iter.Seq2[Object, error] {
	if s.driver.List != nil {
		return s.driver.List(ctx, s.prefix+prefix)
	}
	return func(yield func(Object, error) bool) {
		token := blob.FirstPageToken
		for token != nil {
			var page []*blob.ListObject
			var next []byte
			err := s.do(ctx, "list", prefix, func(ctx context.Context, _ attempt) (err error) {
				page, next, err = s.driver.Bucket.ListPage(ctx, token, pageSize, &blob.ListOptions{Prefix: s.prefix + prefix})
				return err
			})
			if err != nil {
				yield(Object{}, err)
				return
			}
			for _, o := range page {
				if !yield(Object{Key: o.Key, Size: o.Size, ModTime: o.ModTime}, nil) {
					return
				}
			}
			token = next
		}
	}
}
