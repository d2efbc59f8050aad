package repo

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"example.com/pvcbackup/backup/repo/id"
	"example.com/pvcbackup/blobstore"
)

// FileType is a kind of stored file that is named by the hash of its content.
type FileType string

// The types of files. The values are the folders they are in.
const (
	PackFile     FileType = "data"
	KeyFile      FileType = "keys"
	LockFile     FileType = "locks"
	SnapshotFile FileType = "snapshots"
	IndexFile    FileType = "index"
)

const configKey = "config"

// Key returns the object key of a file, relative to the repository.
func (t FileType) Key(id ID) string {
	name := id.String()
	if t == PackFile {
		return string(t) + "/" + name[:2] + "/" + name
	}
	return string(t) + "/" + name
}

// FileInfo describes a stored file.
type FileInfo struct {
	ID      ID
	Size    int64     // in bytes
	ModTime time.Time // as the store says; zero for files just written
}

// ListFiles lists the files of a type, in the store's order. Objects whose name is not an ID are passed over. An error
// ends the listing: what was seen before it is not all there is.
func (r *Repository) ListFiles(ctx context.Context, t FileType) iter.Seq2[FileInfo, error] {
	return listFiles(ctx, r.store, t)
}

// ListPacks lists the packs in the store, indexed or not.
func (r *Repository) ListPacks(ctx context.Context) iter.Seq2[FileInfo, error] {
	return r.ListFiles(ctx, PackFile)
}

func listFiles(ctx context.Context, s Store, t FileType) iter.Seq2[FileInfo, error] {
	return func(yield func(FileInfo, error) bool) {
		for o, err := range s.List(ctx, string(t)+"/") {
			if err != nil {
				yield(FileInfo{}, fmt.Errorf("list %s: %w", t, err))
				return
			}
			name, err := id.Parse(o.Key[strings.LastIndexByte(o.Key, '/')+1:])
			if err != nil || o.Key != t.Key(name) {
				continue
			}
			if !yield(FileInfo{ID: name, Size: o.Size, ModTime: o.ModTime}, nil) {
				return
			}
		}
	}
}

func collectFiles(ctx context.Context, s Store, t FileType) ([]FileInfo, error) {
	var files []FileInfo
	for f, err := range listFiles(ctx, s, t) {
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

// LoadUnpacked returns the JSON text of an index, snapshot or lock. Bytes that do not hash to the file's name are read
// once more, and then are a DamagedError.
func (r *Repository) LoadUnpacked(ctx context.Context, t FileType, id ID) ([]byte, error) {
	stored, err := loadRaw(ctx, r.store, t, id, maxUnpacked)
	if err != nil {
		return nil, err
	}
	return r.openUnpacked(t.Key(id), stored)
}

// openUnpacked decrypts and decodes; it uses stored up.
func (r *Repository) openUnpacked(key string, stored []byte) ([]byte, error) {
	plain, err := r.cipher.OpenInPlace(stored)
	if err != nil {
		return nil, damaged(key, "%w", err)
	}
	text, err := r.codec.decodeUnpacked(plain)
	if err != nil {
		return nil, damaged(key, "%w", err)
	}
	return text, nil
}

// sealUnpacked returns the bytes to store and their hash.
func (r *Repository) sealUnpacked(text []byte) ([]byte, ID) {
	stored := r.cipher.Seal(nil, r.codec.encodeUnpacked(r.config.Version, text))
	return stored, id.Hash(stored)
}

func (r *Repository) saveUnpacked(ctx context.Context, t FileType, text []byte) (FileInfo, error) {
	stored, id := r.sealUnpacked(text)
	if err := putFile(ctx, r.store, t.Key(id), stored, id); err != nil {
		return FileInfo{}, err
	}
	return FileInfo{ID: id, Size: int64(len(stored))}, nil
}

// RemoveFile deletes a file. One that is gone already is no error.
func (r *Repository) RemoveFile(ctx context.Context, t FileType, id ID) error {
	return remove(ctx, r.store, t.Key(id))
}

func remove(ctx context.Context, s Store, key string) error {
	if err := s.Delete(ctx, key); err != nil && !errors.Is(err, ErrNotFound) {
		return fmt.Errorf("delete %s: %w", key, err)
	}
	return nil
}

func loadRaw(ctx context.Context, s Store, t FileType, want ID, limit int64) ([]byte, error) {
	key := t.Key(want)
	for attempt := 1; ; attempt++ {
		data, err := s.GetBytes(ctx, key, limit)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", key, err)
		}
		got := id.Hash(data)
		if got == want {
			return data, nil
		}
		if attempt == 2 {
			return nil, damaged(key, "its %d bytes have the hash %s", len(data), got)
		}
	}
}

// putFile writes a file that is named by its hash. One that is there already with the same size is the answer to an
// earlier attempt that was lost: the hash of random-looking bytes cannot be taken by anything else.
func putFile(ctx context.Context, s Store, key string, data []byte, hash ID) error {
	sum := [32]byte(hash)
	err := s.PutBytes(ctx, key, data, &blobstore.PutOptions{
		OnlyIfAbsent: true, SHA256: &sum, SHA256Computed: true, ContentType: "application/octet-stream",
	})
	if errors.Is(err, blobstore.ErrExists) {
		return statSize(ctx, s, key, int64(len(data)))
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", key, err)
	}
	return nil
}

func statSize(ctx context.Context, s Store, key string, want int64) error {
	o, err := s.Stat(ctx, key)
	if err != nil {
		return fmt.Errorf("look for %s: %w", key, err)
	}
	if o.Size != want {
		return damaged(key, "it has %d bytes instead of %d", o.Size, want)
	}
	return nil
}
