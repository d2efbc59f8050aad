package blobtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/pvcbackup/blobstore"
	"example.com/pvcbackup/blobstore/drivers/mem"
)

func openMem(t testing.TB) *blobstore.Store {
	s, err := blobstore.Open(t.Context(), "mem://test", &blobstore.Options{Openers: mem.Openers()})
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// verdict is a testing.TB that remembers instead of failing the test.
type verdict struct {
	testing.TB
	mu     sync.Mutex
	failed string
}

func (v *verdict) Helper() {}
func (v *verdict) Errorf(format string, args ...any) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.failed += fmt.Sprintf(format, args...)
}
func (v *verdict) FailNow() { runtime.Goexit() }
func (v *verdict) Fatalf(format string, args ...any) {
	v.Errorf(format, args...)
	v.FailNow()
}

// judge runs one promise and returns what it has to complain about.
func judge(t *testing.T, p promise, s Store, c Caps) string {
	v := &verdict{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.check(v, s, c)
	}()
	<-done
	return v.failed
}

// broken is a store that keeps all promises but those that a test takes from it.
type broken struct {
	*blobstore.Store
	put      func(ctx context.Context, key string, r io.Reader, o *blobstore.PutOptions) error
	putBytes func(ctx context.Context, key string, data []byte, o *blobstore.PutOptions) error
	get      func(ctx context.Context, key string, offset, length int64) ([]byte, error)
	getBytes func(ctx context.Context, key string, max int64) ([]byte, error)
	stat     func(ctx context.Context, key string) (blobstore.Object, error)
	list     func(ctx context.Context, prefix string) iter.Seq2[blobstore.Object, error]
	remove   func(ctx context.Context, key string) error
	all      func(ctx context.Context, prefix string) (int, error)
	probe    func(ctx context.Context) (blobstore.Report, error)
}

func (b *broken) Put(ctx context.Context, key string, r io.Reader, o *blobstore.PutOptions) error {
	if b.put != nil {
		return b.put(ctx, key, r, o)
	}
	return b.Store.Put(ctx, key, r, o)
}
func (b *broken) PutBytes(ctx context.Context, key string, data []byte, o *blobstore.PutOptions) error {
	if b.putBytes != nil {
		return b.putBytes(ctx, key, data, o)
	}
	return b.Store.PutBytes(ctx, key, data, o)
}
func (b *broken) GetRange(ctx context.Context, key string, offset, length int64) ([]byte, error) {
	if b.get != nil {
		return b.get(ctx, key, offset, length)
	}
	return b.Store.GetRange(ctx, key, offset, length)
}
func (b *broken) GetBytes(ctx context.Context, key string, max int64) ([]byte, error) {
	if b.getBytes != nil {
		return b.getBytes(ctx, key, max)
	}
	return b.Store.GetBytes(ctx, key, max)
}
func (b *broken) Stat(ctx context.Context, key string) (blobstore.Object, error) {
	if b.stat != nil {
		return b.stat(ctx, key)
	}
	return b.Store.Stat(ctx, key)
}
func (b *broken) List(ctx context.Context, prefix string) iter.Seq2[blobstore.Object, error] {
	if b.list != nil {
		return b.list(ctx, prefix)
	}
	return b.Store.List(ctx, prefix)
}
func (b *broken) Delete(ctx context.Context, key string) error {
	if b.remove != nil {
		return b.remove(ctx, key)
	}
	return b.Store.Delete(ctx, key)
}
func (b *broken) DeleteAll(ctx context.Context, prefix string) (int, error) {
	if b.all != nil {
		return b.all(ctx, prefix)
	}
	return b.Store.DeleteAll(ctx, prefix)
}
func (b *broken) Probe(ctx context.Context) (blobstore.Report, error) {
	if b.probe != nil {
		return b.probe(ctx)
	}
	return b.Store.Probe(ctx)
}

// careless stores whatever it got to read, as gocloud's Upload does.
func careless(s *blobstore.Store) func(context.Context, string, io.Reader, *blobstore.PutOptions) error {
	return func(ctx context.Context, key string, r io.Reader, _ *blobstore.PutOptions) error {
		data, err := io.ReadAll(io.LimitReader(r, 30<<20))
		if perr := s.PutBytes(context.WithoutCancel(ctx), key, data, nil); perr != nil {
			return perr
		}
		if err != nil {
			return &blobstore.Error{Kind: blobstore.KindSource, Err: err}
		}
		if ctx.Err() != nil {
			return &blobstore.Error{Kind: blobstore.KindCanceled, Err: ctx.Err()}
		}
		return nil
	}
}

func unconditional(s *blobstore.Store) func(context.Context, string, []byte, *blobstore.PutOptions) error {
	return func(ctx context.Context, key string, data []byte, o *blobstore.PutOptions) error {
		return s.PutBytes(ctx, key, data, nil)
	}
}

// TestEveryPromiseIsBrokenByAStoreThatBreaksIt proves that no promise is empty.
func TestEveryPromiseIsBrokenByAStoreThatBreaksIt(t *testing.T) {
	breakers := map[string]func(*broken){
		"Put/ReplacesTheObject": func(b *broken) {
			b.putBytes = func(ctx context.Context, key string, data []byte, _ *blobstore.PutOptions) error {
				err := b.Store.PutBytes(ctx, key, data, &blobstore.PutOptions{OnlyIfAbsent: true})
				if errors.Is(err, blobstore.ErrExists) {
					err = nil
				}
				return err
			}
		},
		"PutIsAtomic/ReaderFails":  func(b *broken) { b.put = careless(b.Store) },
		"PutIsAtomic/ContextEnds":  func(b *broken) { b.put = careless(b.Store) },
		"PutIsAtomic/WrongDigest":  func(b *broken) { b.putBytes = unconditional(b.Store) },
		"PutIsAtomic/WrongSize":    func(b *broken) { b.put = careless(b.Store) },
		"PutKeepsOldObject":        func(b *broken) { b.put = careless(b.Store) },
		"OnlyIfAbsent/SecondLoses": func(b *broken) { b.putBytes = unconditional(b.Store) },
		"OnlyIfAbsent/Concurrent":  func(b *broken) { b.putBytes = unconditional(b.Store) },
		"GetRange/Exact": func(b *broken) {
			b.get = func(ctx context.Context, key string, offset, length int64) ([]byte, error) {
				got, err := b.Store.GetRange(ctx, key, offset, length)
				return got[:max(0, len(got)-1)], err
			}
		},
		"GetRange/PastTheEnd": func(b *broken) {
			b.get = func(ctx context.Context, key string, offset, length int64) ([]byte, error) {
				data, err := b.Store.GetBytes(ctx, key, 1<<20)
				if err != nil || offset < 0 || offset > int64(len(data)) {
					return nil, err
				}
				return data[offset:min(int64(len(data)), offset+length)], nil
			}
		},
		"GetBytes/TooLarge": func(b *broken) {
			b.getBytes = func(ctx context.Context, key string, _ int64) ([]byte, error) {
				return b.Store.GetBytes(ctx, key, 1<<30)
			}
		},
		"Stat/SizeAndTime": func(b *broken) {
			b.stat = func(ctx context.Context, key string) (blobstore.Object, error) {
				o, err := b.Store.Stat(ctx, key)
				o.Size++
				return o, err
			}
		},
		"List/Sorted":             func(b *broken) { b.list = shuffled(b.Store) },
		"List/PrefixIsNotAFolder": func(b *broken) { b.list = folders(b.Store) },
		"List/MoreThanOnePage":    func(b *broken) { b.list = firstPage(b.Store, 1000) },
		"List/StopsWhenAsked":     func(b *broken) { b.list = firstPage(b.Store, 1) },
		"Delete/Missing":          func(b *broken) { b.remove = func(context.Context, string) error { return nil } },
		"Delete/Gone":             func(b *broken) { b.remove = func(context.Context, string) error { return nil } },
		"DeleteAll/OnlyBelowThePrefix": func(b *broken) {
			b.all = func(ctx context.Context, prefix string) (int, error) {
				return b.Store.DeleteAll(ctx, strings.TrimSuffix(prefix, "/"))
			}
		},
		"Keys/Unicode": func(b *broken) { b.list = ascii(b.Store) },
		"Keys/FolderAndFile": func(b *broken) {
			b.putBytes = func(ctx context.Context, key string, data []byte, o *blobstore.PutOptions) error {
				if key == "a/x" {
					_ = b.Store.Delete(ctx, "a")
				}
				return b.Store.PutBytes(ctx, key, data, o)
			}
		},
		"Keys/Refused": func(b *broken) {
			b.remove = func(ctx context.Context, key string) error { return b.Store.Delete(ctx, "x"+key) }
		},
		"Empty": func(b *broken) {
			b.putBytes = func(ctx context.Context, key string, data []byte, o *blobstore.PutOptions) error {
				if len(data) == 0 {
					return nil
				}
				return b.Store.PutBytes(ctx, key, data, o)
			}
		},
		"LargerThanOnePart": func(b *broken) {
			b.put = func(ctx context.Context, key string, r io.Reader, o *blobstore.PutOptions) error {
				return b.Store.Put(ctx, key, io.LimitReader(r, 16<<20), o)
			}
		},
		"StalledReader": func(b *broken) {
			b.put = func(ctx context.Context, key string, r io.Reader, o *blobstore.PutOptions) error {
				first := make([]byte, 1)
				_, err := r.Read(first) // ignores ctx only until the first byte
				if err != nil {
					return err
				}
				return errors.New("it failed without being asked to")
			}
		},
		"NoGoroutineLeft": func(b *broken) {
			b.put = func(ctx context.Context, key string, r io.Reader, o *blobstore.PutOptions) error {
				go func() { <-t.Context().Done() }()
				return b.Store.Put(ctx, key, r, o)
			}
		},
		"ErrorsAreClassified": func(b *broken) {
			b.stat = func(ctx context.Context, key string) (blobstore.Object, error) {
				return blobstore.Object{}, errors.New("something went wrong")
			}
		},
		"NoSecretsInErrors": func(b *broken) {
			b.stat = func(ctx context.Context, key string) (blobstore.Object, error) {
				return blobstore.Object{}, errors.New("GET https://host/?sig=hunter2")
			}
		},
		"Probe/TellsWhatWorks": func(b *broken) {
			b.probe = func(context.Context) (blobstore.Report, error) { return blobstore.Report{}, nil }
		},
	}
	for _, p := range promises() {
		t.Run(p.name, func(t *testing.T) {
			breaker, ok := breakers[p.name]
			require.True(t, ok, "the promise has no store that breaks it")
			caps := Caps{Secrets: []string{"hunter2"}}
			b := &broken{Store: openMem(t)}
			breaker(b)
			require.NotEmpty(t, judge(t, p, b, caps), "a store that breaks the promise passes")
			require.Empty(t, judge(t, p, openMem(t), caps), "a store that keeps it fails")
		})
	}
}

func collect(s *blobstore.Store, ctx context.Context, prefix string) (all []blobstore.Object) {
	for o := range s.List(ctx, prefix) {
		all = append(all, o)
	}
	return all
}

type lister = func(context.Context, string) iter.Seq2[blobstore.Object, error]

func listing(s *blobstore.Store, change func(prefix string, all []blobstore.Object) []blobstore.Object) lister {
	return func(ctx context.Context, prefix string) iter.Seq2[blobstore.Object, error] {
		return func(yield func(blobstore.Object, error) bool) {
			for _, o := range change(prefix, collect(s, ctx, prefix)) {
				if !yield(o, nil) {
					return
				}
			}
		}
	}
}

func shuffled(s *blobstore.Store) lister {
	return listing(s, func(_ string, all []blobstore.Object) []blobstore.Object {
		slices.Reverse(all)
		return all
	})
}

func folders(s *blobstore.Store) lister {
	return listing(s, func(prefix string, all []blobstore.Object) []blobstore.Object {
		return slices.DeleteFunc(all, func(o blobstore.Object) bool {
			rest := strings.TrimPrefix(o.Key, strings.TrimSuffix(prefix, "/"))
			return prefix != "" && rest != "" && rest[0] != '/'
		})
	})
}

func firstPage(s *blobstore.Store, n int) lister {
	return listing(s, func(_ string, all []blobstore.Object) []blobstore.Object { return all[:min(n, len(all))] })
}

func ascii(s *blobstore.Store) lister {
	return listing(s, func(_ string, all []blobstore.Object) []blobstore.Object {
		return slices.DeleteFunc(all, func(o blobstore.Object) bool {
			return strings.ContainsFunc(o.Key, func(r rune) bool { return r > 127 })
		})
	})
}

func TestFaulty(t *testing.T) {
	ctx := t.Context()
	data := []byte("0123456789")
	fill := func(rules ...Rule) *FaultyStore {
		f := Faulty(openMem(t))
		for _, k := range []string{"a/1", "a/2", "b"} {
			require.NoError(t, f.PutBytes(ctx, k, bytes.Clone(data), nil))
		}
		f.SetRules(rules...)
		return f
	}
	t.Run("FailsTheNthCallOnly", func(t *testing.T) {
		f := fill(Rule{Op: "get", Key: "a/", Nth: 2})
		for i, want := range []error{nil, nil, blobstore.ErrUnavailable, nil} {
			key := []string{"a/1", "b", "a/2", "a/1"}[i]
			_, err := f.GetBytes(ctx, key, 10)
			require.ErrorIs(t, err, want)
		}
		require.Equal(t, Call{"get", "a/2"}, f.Calls()[5])
	})
	t.Run("LoseAnswerPerformsAndReportsFailure", func(t *testing.T) {
		mine := errors.New("mine")
		f := fill(Rule{Op: "put", Fault: LoseAnswer, Err: mine}, Rule{Op: "delete", Fault: LoseAnswer})
		require.ErrorIs(t, f.PutBytes(ctx, "c", data, nil), mine)
		require.ErrorIs(t, f.Delete(ctx, "b"), blobstore.ErrUnavailable)
		mustList(t, f, "", "a/1", "a/2", "c")
	})
	t.Run("DropAcknowledgesAndDoesNothing", func(t *testing.T) {
		f := fill(Rule{Fault: Drop})
		require.NoError(t, f.PutBytes(ctx, "c", data, nil))
		require.NoError(t, f.Put(ctx, "d", bytes.NewReader(data), nil))
		require.NoError(t, f.Delete(ctx, "b"))
		mustList(t, f, "", "a/1", "a/2", "b")
	})
	t.Run("TruncateShortensReadsAndLists", func(t *testing.T) {
		f := fill(Rule{Op: "get", Fault: Truncate, Keep: 3}, Rule{Op: "list", Fault: Truncate, Keep: 1})
		got, err := f.GetRange(ctx, "b", 2, 5)
		require.NoError(t, err)
		require.Equal(t, "234", string(got))
		r, err := f.Get(ctx, "b")
		require.NoError(t, err)
		got, err = io.ReadAll(r)
		require.NoError(t, err)
		require.Equal(t, "012", string(got))
		mustList(t, f, "", "a/1")
	})
	t.Run("FlipBitChangesContent", func(t *testing.T) {
		got, err := fill(Rule{Op: "get", Fault: FlipBit}).GetBytes(ctx, "b", 10)
		require.NoError(t, err)
		require.Equal(t, "0123446789", string(got))
	})
	t.Run("HangLastsUntilTheContextEnds", func(t *testing.T) {
		f := fill(Rule{Fault: Hang})
		require.ErrorIs(t, f.Delete(ended(t), "b"), context.Canceled)
		require.ErrorIs(t, f.PutBytes(ended(t), "c", nil, nil), blobstore.ErrCanceled)
		_, err := f.Stat(ended(t), "b")
		require.ErrorIs(t, err, context.Canceled)
	})
	t.Run("ListFailsInsteadOfEndingEarly", func(t *testing.T) {
		f := fill(Rule{Op: "list"})
		for _, err := range f.List(ctx, "") {
			require.ErrorIs(t, err, blobstore.ErrUnavailable)
		}
		_, err := f.DeleteAll(ctx, "")
		require.ErrorIs(t, err, blobstore.ErrUnavailable)
	})
	t.Run("WithoutRulesItKeepsEveryPromise", func(t *testing.T) {
		Run(t, func(t testing.TB) Store { return Faulty(openMem(t)) }, Caps{StreamSize: 1 << 20})
	})
}

func TestMissingToolIsAnErrorThatSaysSo(t *testing.T) {
	t.Setenv("PVCBACKUP_TOOLS", t.TempDir())
	_, err := Tool("versitygw")
	require.ErrorContains(t, err, "build the test tools")
}
