package repotest

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"example.com/pvcbackup/blobstore"
)

// Cheap are key derivation parameters that take no time. It converts to repo.ScryptParams.
var Cheap = struct{ N, R, P int }{N: 2, R: 1, P: 1}

// Memory is an object store in memory. The zero value is not usable; use NewMemory. The hooks must be set before the
// store is used by several goroutines; they may be called by many at once.
type Memory struct {
	// Before is called with "put", "get", "stat", "list" or "delete" and the key or prefix, before anything is done.
	// Its error is the operation's.
	Before func(op, key string) error
	// Drop makes a write succeed without storing anything.
	Drop func(key string) bool
	// Change returns what a read yields instead of data, which is a copy. offset is where data begins in the object.
	Change func(key string, offset int64, data []byte) []byte
	// After is called when an operation was done; its error is the operation's, as if the answer had been lost.
	After func(op, key string) error
	// Unconditional makes the store ignore OnlyIfAbsent.
	Unconditional bool
	// Now gives modification times. nil: the time of day.
	Now func() time.Time

	mu      sync.Mutex
	objects map[string]object
	counts  map[string]int
}

type object struct {
	data []byte
	time time.Time
}

// NewMemory returns an empty store.
func NewMemory() *Memory {
	return &Memory{objects: map[string]object{}, counts: map[string]int{}}
}

func (m *Memory) do(ctx context.Context, op, key string, fn func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	m.counts[op]++
	m.mu.Unlock()
	if m.Before != nil {
		if err := m.Before(op, key); err != nil {
			return fmt.Errorf("%s %s: %w", op, key, err)
		}
	}
	m.mu.Lock()
	err := fn()
	m.mu.Unlock()
	if err == nil && m.After != nil {
		err = m.After(op, key)
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", op, key, err)
	}
	return nil
}

// Count returns how often an operation was called.
func (m *Memory) Count(op string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.counts[op]
}

// Keys returns the keys below a prefix, sorted. It calls no hook.
func (m *Memory) Keys(prefix string) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var keys []string
	for key := range m.objects {
		if strings.HasPrefix(key, prefix) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// Bytes returns a copy of an object, nil if there is none. It calls no hook.
func (m *Memory) Bytes(key string) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	return bytes.Clone(m.objects[key].data)
}

// Set stores an object. It calls no hook.
func (m *Memory) Set(key string, data []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.set(key, data)
}

func (m *Memory) set(key string, data []byte) {
	now := time.Now
	if m.Now != nil {
		now = m.Now
	}
	m.objects[key] = object{append([]byte{}, data...), now()}
}

// Remove deletes an object if it is there. It calls no hook.
func (m *Memory) Remove(key string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.objects, key)
}

// PutBytes implements repo.Store.
func (m *Memory) PutBytes(ctx context.Context, key string, data []byte, o *blobstore.PutOptions) error {
	return m.do(ctx, "put", key, func() error {
		if _, ok := m.objects[key]; ok && o != nil && o.OnlyIfAbsent && !m.Unconditional {
			return blobstore.ErrExists
		}
		if m.Drop == nil || !m.Drop(key) {
			m.set(key, data)
		}
		return nil
	})
}

// GetBytes implements repo.Store.
func (m *Memory) GetBytes(ctx context.Context, key string, limit int64) ([]byte, error) {
	var data []byte
	err := m.do(ctx, "get", key, func() error {
		o, ok := m.objects[key]
		if !ok {
			return blobstore.ErrNotFound
		}
		if int64(len(o.data)) > limit {
			return fmt.Errorf("the object has more than %d bytes", limit)
		}
		data = bytes.Clone(o.data)
		return nil
	})
	return m.changed(key, 0, data), err
}

// GetRange implements repo.Store.
func (m *Memory) GetRange(ctx context.Context, key string, offset, length int64) ([]byte, error) {
	var data []byte
	err := m.do(ctx, "get", key, func() error {
		o, ok := m.objects[key]
		if !ok {
			return blobstore.ErrNotFound
		}
		if offset < 0 || length < 0 || offset > int64(len(o.data))-length {
			return fmt.Errorf("%w: the object is shorter than %d bytes", blobstore.ErrCorrupt, offset+length)
		}
		data = bytes.Clone(o.data[offset : offset+length])
		return nil
	})
	return m.changed(key, offset, data), err
}

func (m *Memory) changed(key string, offset int64, data []byte) []byte {
	if m.Change == nil || data == nil {
		return data
	}
	return m.Change(key, offset, data)
}

// Stat implements repo.Store.
func (m *Memory) Stat(ctx context.Context, key string) (blobstore.Object, error) {
	var found blobstore.Object
	err := m.do(ctx, "stat", key, func() error {
		o, ok := m.objects[key]
		if !ok {
			return blobstore.ErrNotFound
		}
		found = blobstore.Object{Key: key, Size: int64(len(o.data)), ModTime: o.time}
		return nil
	})
	return found, err
}

// List implements repo.Store.
func (m *Memory) List(ctx context.Context, prefix string) iter.Seq2[blobstore.Object, error] {
	return func(yield func(blobstore.Object, error) bool) {
		var found []blobstore.Object
		err := m.do(ctx, "list", prefix, func() error {
			for key, o := range m.objects {
				if strings.HasPrefix(key, prefix) {
					found = append(found, blobstore.Object{Key: key, Size: int64(len(o.data)), ModTime: o.time})
				}
			}
			return nil
		})
		if err != nil {
			yield(blobstore.Object{}, err)
			return
		}
		slices.SortFunc(found, func(a, b blobstore.Object) int { return strings.Compare(a.Key, b.Key) })
		for _, o := range found {
			if !yield(o, nil) {
				return
			}
		}
	}
}

// Delete implements repo.Store.
func (m *Memory) Delete(ctx context.Context, key string) error {
	return m.do(ctx, "delete", key, func() error {
		if _, ok := m.objects[key]; !ok {
			return blobstore.ErrNotFound
		}
		delete(m.objects, key)
		return nil
	})
}
