package blobtest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"strings"
	"sync"

	"example.com/pvcbackup/blobstore"
)

// Fault is a way in which a store can fail.
type Fault int

// The faults. Where one makes no sense for a call, the call goes through.
const (
	Fail       Fault = iota // do nothing and return Rule.Err
	LoseAnswer              // do it, then return Rule.Err
	Drop                    // do nothing and report success: puts and deletions
	Hang                    // do nothing until the context ends
	Truncate                // give the first Keep bytes of a read, or entries of a list, without an error
	FlipBit                 // change one bit of what is read
)

// Rule makes some calls of a [FaultyStore] fail.
type Rule struct {
	Op    string // "put", "get", "stat", "list", "delete"; empty means every one
	Key   string // what key or prefix must start with; empty means every one
	Nth   int    // which of the matching calls, from 1; 0 means each
	Fault Fault
	Err   error // for Fail and LoseAnswer; nil means one that is ErrUnavailable
	Keep  int64 // for Truncate
}

// Call is one call that a [FaultyStore] has seen.
type Call struct{ Op, Key string }

// FaultyStore passes calls on to a store unless a rule applies: the first that
// does decides. Put and PutBytes are "put", Get, GetBytes and GetRange are
// "get". DeleteAll and Probe consist of the others. It is safe for concurrent use.
type FaultyStore struct {
	store Store

	mu    sync.Mutex
	rules []Rule
	seen  []int // calls that matched, by rule
	calls []Call
}

// Faulty wraps a store.
func Faulty(s Store, rules ...Rule) *FaultyStore {
	f := &FaultyStore{store: s}
	f.SetRules(rules...)
	return f
}

// SetRules replaces the rules and starts counting anew; none heals the store.
func (f *FaultyStore) SetRules(rules ...Rule) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules, f.seen = rules, make([]int, len(rules))
}

// Calls returns the calls so far, in the order in which they began.
func (f *FaultyStore) Calls() []Call {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]Call(nil), f.calls...)
}

// match records a call and returns the rule that applies to it.
func (f *FaultyStore) match(op, key string) *Rule {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, Call{op, key})
	var hit *Rule
	for i, r := range f.rules {
		if (r.Op != "" && r.Op != op) || !strings.HasPrefix(key, r.Key) {
			continue
		}
		f.seen[i]++
		if hit == nil && (r.Nth == 0 || r.Nth == f.seen[i]) {
			if r.Err == nil {
				r.Err = &blobstore.Error{Op: op, Key: key, Kind: blobstore.KindUnavailable, Err: errors.New("injected fault")}
			}
			hit = &r
		}
	}
	return hit
}

// before says whether a rule replaces the call, and by which error.
func (r *Rule) before(ctx context.Context, writes bool) (instead bool, err error) {
	if r == nil {
		return false, nil
	}
	switch r.Fault {
	case Fail:
		return true, r.Err
	case Drop:
		return writes, nil
	case Hang:
		<-ctx.Done()
		kind := blobstore.KindUnavailable
		if errors.Is(ctx.Err(), context.Canceled) {
			kind = blobstore.KindCanceled
		}
		return true, &blobstore.Error{Kind: kind, Err: ctx.Err()}
	}
	return false, nil
}

// after changes the answer of a call that was made.
func (r *Rule) after(err error) error {
	if r != nil && r.Fault == LoseAnswer && err == nil {
		return r.Err
	}
	return err
}

func (r *Rule) data(b []byte) []byte {
	if r == nil || len(b) == 0 {
		return b
	}
	switch r.Fault {
	case Truncate:
		return b[:min(int64(len(b)), r.Keep)]
	case FlipBit:
		b[len(b)/2] ^= 1
	}
	return b
}

// Put is like blobstore.Store.Put.
func (f *FaultyStore) Put(ctx context.Context, key string, r io.Reader, o *blobstore.PutOptions) error {
	rule := f.match("put", key)
	if instead, err := rule.before(ctx, true); instead {
		return err
	}
	return rule.after(f.store.Put(ctx, key, r, o))
}

// PutBytes is like blobstore.Store.PutBytes.
func (f *FaultyStore) PutBytes(ctx context.Context, key string, data []byte, o *blobstore.PutOptions) error {
	rule := f.match("put", key)
	if instead, err := rule.before(ctx, true); instead {
		return err
	}
	return rule.after(f.store.PutBytes(ctx, key, data, o))
}

func (f *FaultyStore) read(ctx context.Context, key string, get func() ([]byte, error)) ([]byte, error) {
	rule := f.match("get", key)
	if instead, err := rule.before(ctx, false); instead {
		return nil, err
	}
	b, err := get()
	if err = rule.after(err); err != nil {
		return nil, err
	}
	return rule.data(b), nil
}

// GetBytes is like blobstore.Store.GetBytes.
func (f *FaultyStore) GetBytes(ctx context.Context, key string, max int64) ([]byte, error) {
	return f.read(ctx, key, func() ([]byte, error) { return f.store.GetBytes(ctx, key, max) })
}

// GetRange is like blobstore.Store.GetRange.
func (f *FaultyStore) GetRange(ctx context.Context, key string, offset, length int64) ([]byte, error) {
	return f.read(ctx, key, func() ([]byte, error) { return f.store.GetRange(ctx, key, offset, length) })
}

// Get is like blobstore.Store.Get; a faulty object is held in memory.
func (f *FaultyStore) Get(ctx context.Context, key string) (io.ReadCloser, error) {
	rule := f.match("get", key)
	if instead, err := rule.before(ctx, false); instead {
		return nil, err
	}
	r, err := f.store.Get(ctx, key)
	if err != nil || rule == nil {
		return r, err
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	if err = rule.after(err); err != nil {
		return nil, err
	}
	return io.NopCloser(bytes.NewReader(rule.data(b))), nil
}

// Stat is like blobstore.Store.Stat.
func (f *FaultyStore) Stat(ctx context.Context, key string) (blobstore.Object, error) {
	rule := f.match("stat", key)
	if instead, err := rule.before(ctx, false); instead {
		return blobstore.Object{}, err
	}
	o, err := f.store.Stat(ctx, key)
	return o, rule.after(err)
}

// List is like blobstore.Store.List.
func (f *FaultyStore) List(ctx context.Context, prefix string) iter.Seq2[blobstore.Object, error] {
	return func(yield func(blobstore.Object, error) bool) {
		rule := f.match("list", prefix)
		if instead, err := rule.before(ctx, false); instead {
			yield(blobstore.Object{}, err)
			return
		}
		n := int64(0)
		for o, err := range f.store.List(ctx, prefix) {
			if rule != nil && rule.Fault == Truncate && n >= rule.Keep {
				return
			}
			n++
			if !yield(o, err) {
				return
			}
		}
		if err := rule.after(nil); err != nil {
			yield(blobstore.Object{}, err)
		}
	}
}

// Delete is like blobstore.Store.Delete.
func (f *FaultyStore) Delete(ctx context.Context, key string) error {
	rule := f.match("delete", key)
	if instead, err := rule.before(ctx, true); instead {
		return err
	}
	return rule.after(f.store.Delete(ctx, key))
}

// DeleteAll lists and deletes through the rules, one object after the other.
func (f *FaultyStore) DeleteAll(ctx context.Context, prefix string) (int, error) {
	var keys []string
	for o, err := range f.List(ctx, prefix) {
		if err != nil {
			return 0, err
		}
		keys = append(keys, o.Key)
	}
	for n, key := range keys {
		if err := f.Delete(ctx, key); err != nil && !errors.Is(err, blobstore.ErrNotFound) {
			return n, err
		}
	}
	return len(keys), nil
}

// Probe probes the store below, without rules.
func (f *FaultyStore) Probe(ctx context.Context) (blobstore.Report, error) { return f.store.Probe(ctx) }

// URL returns the URL of the store below.
func (f *FaultyStore) URL() string { return f.store.URL() }

// Close closes the store below.
func (f *FaultyStore) Close() error { return f.store.Close() }
