package repo_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/backup/repo/repotest"
	"example.com/pvcbackup/blobstore"
)

func packsOf(t testing.TB, r *repo.Repository) map[repo.ID][]repo.PackedBlob {
	t.Helper()
	require.NoError(t, r.LoadIndex(t.Context()))
	return maps.Collect(r.IndexPacks())
}

func TestTwoGoroutinesSavingOneBlobStoreItOnce(t *testing.T) {
	s := repotest.NewMemory()
	r := initRepo(t, s)
	w := r.NewWriter(t.Context(), nil)
	defer w.Abort()
	const goroutines, blobs = 8, 200
	var wg sync.WaitGroup
	var stored atomic.Int64
	for range goroutines {
		wg.Go(func() {
			for n := range blobs {
				_, known, err := w.SaveBlob(t.Context(), repo.DataBlob, binary.BigEndian.AppendUint32(nil, uint32(n)))
				if err != nil {
					t.Error(err)
				}
				if !known {
					stored.Add(1)
				}
			}
		})
	}
	wg.Wait()
	require.NoError(t, w.Flush(t.Context()))
	require.EqualValues(t, blobs, stored.Load())
	stats := w.Stats()
	require.EqualValues(t, blobs, stats.DataBlobs)
	require.EqualValues(t, blobs*(goroutines-1), stats.KnownBlobs)
	require.EqualValues(t, 4*blobs, stats.Bytes)
	total := 0
	for _, list := range packsOf(t, r) {
		total += len(list)
	}
	require.Equal(t, blobs, total)
}

func TestWhatTheIndexHasIsNotStoredAgain(t *testing.T) {
	s := repotest.NewMemory()
	initRepo(t, s)
	for round, wantKnown := range []bool{false, true} {
		r := openRepo(t, s)
		w := r.NewWriter(t.Context(), nil)
		_, known, err := w.SaveBlob(t.Context(), repo.DataBlob, []byte("data"))
		require.NoError(t, err)
		require.Equal(t, wantKnown, known, "round %d", round)
		require.NoError(t, w.Flush(t.Context()))
		w.Abort()
	}
	require.Len(t, s.Keys("data/"), 1)
	require.Len(t, s.Keys("index/"), 1)
}

func TestStoreKnownStoresOncePerWriter(t *testing.T) {
	s := repotest.NewMemory()
	r := initRepo(t, s)
	fill(t, r)
	w := r.NewWriter(t.Context(), &repo.WriterOptions{StoreKnown: true})
	defer w.Abort()
	h := save(t, w, repo.TreeBlob, []byte(emptyTree))
	require.NoError(t, w.Flush(t.Context()))
	save(t, w, repo.TreeBlob, []byte(emptyTree))
	require.NoError(t, w.Flush(t.Context()))
	require.Len(t, r.Locations(h), 2)
}

func TestTreesAndDataNeverShareAPackAndPacksKeepTheirSize(t *testing.T) {
	const size = 4 << 20
	s := repotest.NewMemory()
	r := initRepo(t, s)
	w := r.NewWriter(t.Context(), &repo.WriterOptions{PackSize: size})
	defer w.Abort()
	for n := range 40 {
		save(t, w, repo.BlobType(n%2), randomBytes(300<<10+n))
	}
	require.NoError(t, w.Flush(t.Context()))
	packs := packsOf(t, r)
	require.Len(t, packs, len(s.Keys("data/")))
	require.GreaterOrEqual(t, len(packs), 4)
	for pack, list := range packs {
		data := s.Bytes(repo.PackFile.Key(pack))
		require.LessOrEqual(t, len(data), size)
		require.EqualValues(t, len(data), repo.PackSize(list))
		header, err := r.PackHeader(t.Context(), pack, int64(len(data)))
		require.NoError(t, err)
		if diff := cmp.Diff(list, header); diff != "" {
			t.Errorf("-index +header:\n%s", diff)
		}
		for _, b := range list {
			require.Equal(t, list[0].Type, b.Type)
		}
	}
}

func TestALittleDataIsOnePack(t *testing.T) {
	s := repotest.NewMemory()
	r := initRepo(t, s)
	w := r.NewWriter(t.Context(), nil)
	defer w.Abort()
	for n := range 50 {
		save(t, w, repo.DataBlob, randomBytes(100+n))
	}
	require.NoError(t, w.Flush(t.Context()))
	require.Len(t, s.Keys("data/"), 1)
	require.NoError(t, r.VerifyWritten(t.Context(), w.Written(), 1))
	for h := range maps.Values(packsOf(t, r)) {
		for _, b := range h {
			_, err := r.LoadBlob(t.Context(), b.BlobHandle, nil)
			require.NoError(t, err)
		}
	}
}

func TestCompressionFollowsTheContent(t *testing.T) {
	zeros, random := make([]byte, 1<<20), randomBytes(1<<20)
	mixed := append(slices.Clone(random), zeros...)
	for name, c := range map[string]struct {
		kind       repo.BlobType
		data       []byte
		level      repo.Compression
		compressed bool
	}{
		"zeros":           {repo.DataBlob, zeros, repo.CompressFastest, true},
		"zeros, default":  {repo.DataBlob, zeros, repo.CompressDefault, true},
		"zeros, better":   {repo.DataBlob, zeros, repo.CompressBetter, true},
		"zeros, off":      {repo.DataBlob, zeros, repo.CompressOff, false},
		"random":          {repo.DataBlob, random, repo.CompressDefault, false},
		"random head":     {repo.DataBlob, mixed, repo.CompressFastest, true},
		"tree":            {repo.TreeBlob, zeros, repo.CompressFastest, true},
		"tree, off":       {repo.TreeBlob, zeros, repo.CompressOff, true},
		"tree, random":    {repo.TreeBlob, random, repo.CompressFastest, true},
		"nothing":         {repo.DataBlob, nil, repo.CompressDefault, false},
		"nothing, a tree": {repo.TreeBlob, nil, repo.CompressDefault, false},
		"one byte":        {repo.DataBlob, []byte("x"), repo.CompressDefault, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := initRepo(t, repotest.NewMemory())
			w := r.NewWriter(t.Context(), &repo.WriterOptions{Compression: c.level})
			defer w.Abort()
			h := save(t, w, c.kind, c.data)
			require.NoError(t, w.Flush(t.Context()))
			require.Equal(t, c.compressed, r.Locations(h)[0].PlainLength > 0)
			got, err := r.LoadBlob(t.Context(), h, nil)
			require.NoError(t, err)
			require.Equal(t, string(c.data), string(got))
		})
	}
}

func TestAPackThatFailedIsInNoIndex(t *testing.T) {
	s := repotest.NewMemory()
	r := initRepo(t, s)
	var puts atomic.Int64
	s.Before = func(op, key string) error {
		if op == "put" && strings.HasPrefix(key, "data/") && puts.Add(1) == 2 {
			return errStore
		}
		return nil
	}
	w := r.NewWriter(t.Context(), &repo.WriterOptions{PackSize: 4 << 20})
	defer w.Abort()
	var err error
	for n := 0; n < 100 && err == nil; n++ {
		_, _, err = w.SaveBlob(t.Context(), repo.DataBlob, randomBytes(1<<20))
	}
	require.ErrorIs(t, w.Flush(t.Context()), errStore)
	_, _, err = w.SaveBlob(t.Context(), repo.DataBlob, []byte("more"))
	require.ErrorIs(t, err, errStore, "the first error stays")
	for pack := range packsOf(t, r) {
		require.NotNil(t, s.Bytes(repo.PackFile.Key(pack)), "an index lists pack %s, which is not stored", pack.Short())
	}
}

func TestBlobsOfAFailedWriterAreNotKnownToTheNext(t *testing.T) {
	s := repotest.NewMemory()
	r := initRepo(t, s)
	s.Before = failOn("put", "index/")
	w := r.NewWriter(t.Context(), nil)
	h := save(t, w, repo.DataBlob, []byte("data"))
	require.ErrorIs(t, w.Flush(t.Context()), errStore)
	w.Abort()
	s.Before = nil
	require.False(t, r.Has(h))
	w = r.NewWriter(t.Context(), nil)
	defer w.Abort()
	_, known, err := w.SaveBlob(t.Context(), repo.DataBlob, []byte("data"))
	require.NoError(t, err)
	require.False(t, known)
}

// existing answers as a store does whose first answer was lost before it was asked again.
type existing struct{ *repotest.Memory }

func (e existing) PutBytes(ctx context.Context, key string, data []byte, o *blobstore.PutOptions) error {
	if err := e.Memory.PutBytes(ctx, key, data, o); err != nil {
		return err
	}
	return e.Memory.PutBytes(ctx, key, data, o)
}

func TestAWriteWhoseAnswerWasLostCountsAsWritten(t *testing.T) {
	s := existing{repotest.NewMemory()}
	r := initRepo(t, s)
	_, won, err := r.CommitRun(t.Context(), "run", fill(t, r))
	require.NoError(t, err)
	require.True(t, won)
}

func TestADroppedWriteIsFoundByVerifyWritten(t *testing.T) {
	for _, prefix := range []string{"data/", "index/"} {
		t.Run(prefix, func(t *testing.T) {
			s := repotest.NewMemory()
			r := initRepo(t, s)
			s.Drop = func(key string) bool { return strings.HasPrefix(key, prefix) }
			w := r.NewWriter(t.Context(), nil)
			defer w.Abort()
			save(t, w, repo.DataBlob, []byte("data"))
			require.NoError(t, w.Flush(t.Context()))
			err := r.VerifyWritten(t.Context(), w.Written(), 0)
			require.ErrorIs(t, err, repo.ErrUnverified)
			require.ErrorContains(t, err, prefix)
		})
	}
}

func TestVerifyWrittenFindsOneMissingPackAmongMany(t *testing.T) {
	s := repotest.NewMemory()
	r := initRepo(t, s)
	var files repo.Written
	for n := range 150 {
		w := r.NewWriter(t.Context(), nil)
		save(t, w, repo.DataBlob, fmt.Append(nil, n))
		require.NoError(t, w.Flush(t.Context()))
		files.Packs = append(files.Packs, w.Written().Packs...)
		files.Indexes = append(files.Indexes, w.Written().Indexes...)
		w.Abort()
	}
	stats := s.Count("stat")
	require.NoError(t, r.VerifyWritten(t.Context(), files, 3))
	require.Equal(t, stats, s.Count("stat"), "many files are looked for by listing")
	victim := repo.PackFile.Key(files.Packs[77].ID)
	data := s.Bytes(victim)
	s.Set(victim, data[:len(data)-1])
	require.ErrorIs(t, r.VerifyWritten(t.Context(), files, 0), repo.ErrUnverified)
	s.Remove(victim)
	err := r.VerifyWritten(t.Context(), files, 0)
	require.ErrorIs(t, err, repo.ErrUnverified)
	require.ErrorContains(t, err, victim)
}

func TestVerifyWrittenReadsASampleBack(t *testing.T) {
	s := repotest.NewMemory()
	r := initRepo(t, s)
	w := r.NewWriter(t.Context(), nil)
	defer w.Abort()
	save(t, w, repo.DataBlob, randomBytes(1000))
	require.NoError(t, w.Flush(t.Context()))
	key := s.Keys("data/")[0]
	data := s.Bytes(key)
	data[100] ^= 1
	s.Set(key, data)
	require.NoError(t, r.VerifyWritten(t.Context(), w.Written(), 0))
	err := r.VerifyWritten(t.Context(), w.Written(), 1)
	require.ErrorIs(t, err, repo.ErrDamaged)
	require.ErrorContains(t, err, key)
}

func TestAnIndexIsWrittenAfterTenMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := repotest.NewMemory()
		r := initRepo(t, s)
		w := r.NewWriter(t.Context(), &repo.WriterOptions{PackSize: 4 << 20})
		defer w.Abort()
		pack := func() { save(t, w, repo.DataBlob, randomBytes(4<<20)) } // larger than a pack: uploaded at once
		pack()
		synctest.Wait()
		time.Sleep(10*time.Minute - time.Second)
		pack()
		synctest.Wait()
		require.Empty(t, s.Keys("index/"))
		time.Sleep(time.Second)
		pack()
		synctest.Wait()
		require.Len(t, s.Keys("index/"), 1)
		require.NoError(t, w.Flush(t.Context()))
		require.Len(t, packsOf(t, r), 3)
		require.Len(t, s.Keys("index/"), 1)
	})
}

func TestMemoryIsBoundedByBackPressure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := repotest.NewMemory()
		r := initRepo(t, s)
		gate := make(chan struct{})
		s.Before = func(op, key string) error {
			if op == "put" && strings.HasPrefix(key, "data/") {
				<-gate
			}
			return nil
		}
		w := r.NewWriter(t.Context(), &repo.WriterOptions{MemoryBudget: 32 << 20})
		var saved atomic.Int64
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for range 10 {
					if _, _, err := w.SaveBlob(t.Context(), repo.DataBlob, randomBytes(2<<20)); err != nil {
						t.Error(err)
					}
					saved.Add(1)
				}
			})
		}
		synctest.Wait()
		if n := saved.Load(); n > 5 {
			t.Errorf("%d blobs of 2 MiB were taken while nothing could be uploaded", n)
		}
		close(gate)
		wg.Wait()
		require.NoError(t, w.Flush(t.Context()))
		require.EqualValues(t, 40, w.Stats().DataBlobs)
		w.Abort()
	})
}

func TestAbortEndsWhatIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := repotest.NewMemory()
		r := initRepo(t, s)
		ctx, stop := context.WithCancel(t.Context())
		s.Before = func(op, key string) error {
			if op == "put" && strings.HasPrefix(key, "data/") {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}
		w := r.NewWriter(t.Context(), &repo.WriterOptions{PackSize: 4 << 20})
		save(t, w, repo.DataBlob, randomBytes(4<<20))
		synctest.Wait()
		go stop()
		w.Abort()
		w.Abort()
		_, _, err := w.SaveBlob(t.Context(), repo.DataBlob, []byte("x"))
		require.Error(t, err)
		require.Error(t, w.Flush(t.Context()))
		require.Empty(t, s.Keys("index/"))
	})
}

func TestACancelledFlushFails(t *testing.T) {
	r := initRepo(t, repotest.NewMemory())
	w := r.NewWriter(t.Context(), nil)
	defer w.Abort()
	save(t, w, repo.DataBlob, []byte("data"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, w.Flush(ctx), context.Canceled)
}

func TestDamagedCopiesArePassedOverAndNamed(t *testing.T) {
	s := repotest.NewMemory()
	r := initRepo(t, s)
	var h repo.BlobHandle
	for range 2 {
		w := r.NewWriter(t.Context(), &repo.WriterOptions{StoreKnown: true})
		h = save(t, w, repo.DataBlob, []byte("precious"))
		require.NoError(t, w.Flush(t.Context()))
		w.Abort()
	}
	places := r.Locations(h)
	require.Len(t, places, 2)
	bad := map[string]bool{repo.PackFile.Key(places[0].Pack): true}
	s.Change = func(key string, _ int64, data []byte) []byte {
		if bad[key] {
			data[len(data)/2] ^= 1
		}
		return data
	}
	got, err := r.LoadBlob(t.Context(), h, nil)
	require.NoError(t, err)
	require.Equal(t, "precious", string(got))
	require.NoError(t, r.LoadBlobs(t.Context(), []repo.BlobHandle{h}, func(_ repo.BlobHandle, got []byte) error {
		require.Equal(t, "precious", string(got))
		return nil
	}))
	bad[repo.PackFile.Key(places[1].Pack)] = true
	_, err = r.LoadBlob(t.Context(), h, nil)
	require.ErrorIs(t, err, repo.ErrDamaged)
	for key := range bad {
		require.ErrorContains(t, err, key)
	}
	require.ErrorIs(t, r.LoadBlobs(t.Context(), []repo.BlobHandle{h}, func(repo.BlobHandle, []byte) error { return nil }), repo.ErrDamaged)

	s.Change = nil
	s.Remove(repo.PackFile.Key(places[0].Pack))
	_, err = r.LoadBlob(t.Context(), h, nil)
	require.NoError(t, err, "a missing pack is passed over, too")
}

func TestWhatTheIndexDoesNotListIsNotFound(t *testing.T) {
	r := initRepo(t, repotest.NewMemory())
	h := repo.BlobHandle{Type: repo.DataBlob, ID: repo.ID{1}}
	_, err := r.LoadBlob(t.Context(), h, nil)
	require.ErrorIs(t, err, repo.ErrNotFound)
	require.NotErrorIs(t, err, repo.ErrDamaged)
	require.ErrorIs(t, r.LoadBlobs(t.Context(), []repo.BlobHandle{h}, nil), repo.ErrNotFound)
	_, ok := r.BlobSize(h)
	require.False(t, ok)
}

func TestNeighboursAreReadTogether(t *testing.T) {
	s := repotest.NewMemory()
	r := initRepo(t, s)
	w := r.NewWriter(t.Context(), nil)
	defer w.Abort()
	var handles []repo.BlobHandle
	for n := range 100 {
		handles = append(handles, save(t, w, repo.DataBlob, randomBytes(1000+n)))
	}
	require.NoError(t, w.Flush(t.Context()))
	before := s.Count("get")
	require.NoError(t, r.LoadBlobs(t.Context(), handles, func(repo.BlobHandle, []byte) error { return nil }))
	require.Equal(t, 1, s.Count("get")-before)
	err := r.LoadBlobs(t.Context(), handles, func(repo.BlobHandle, []byte) error { return errStore })
	require.ErrorIs(t, err, errStore)
}

func TestDamagedIndexAndShortListsAreErrors(t *testing.T) {
	s := repotest.NewMemory()
	r := initRepo(t, s)
	fill(t, r)
	key := s.Keys("index/")[0]
	good := s.Bytes(key)
	for name, data := range map[string][]byte{"empty": {}, "short": good[:10], "flipped": append([]byte{good[0] ^ 1}, good[1:]...)} {
		t.Run(name, func(t *testing.T) {
			s.Set(key, data)
			err := r.LoadIndex(t.Context())
			require.ErrorIs(t, err, repo.ErrDamaged)
			require.ErrorContains(t, err, key)
		})
	}
	s.Set(key, good)
	s.Before = failOn("list", "index/")
	require.ErrorIs(t, r.LoadIndex(t.Context()), errStore)
}

func TestDamagedPackHeadersAreNamed(t *testing.T) {
	s := repotest.NewMemory()
	r := initRepo(t, s)
	w := r.NewWriter(t.Context(), nil)
	defer w.Abort()
	for n := range 40 {
		save(t, w, repo.DataBlob, fmt.Append(nil, n))
	}
	require.NoError(t, w.Flush(t.Context()))
	f := w.Written().Packs[0]
	key := repo.PackFile.Key(f.ID)
	good := s.Bytes(key)
	want, err := r.PackHeader(t.Context(), f.ID, f.Size)
	require.NoError(t, err)
	require.Len(t, want, 40)
	for name, change := range map[string]func([]byte) []byte{
		"truncated":      func(b []byte) []byte { return b[:len(b)-1] },
		"one more byte":  func(b []byte) []byte { return append(b, 0) },
		"tiny":           func(b []byte) []byte { return b[:10] },
		"bad length":     func(b []byte) []byte { b[len(b)-1] = 255; return b },
		"zero length":    func(b []byte) []byte { copy(b[len(b)-4:], make([]byte, 4)); return b },
		"flipped header": func(b []byte) []byte { b[len(b)-40] ^= 1; return b },
		"lost beginning": func(b []byte) []byte { return b[10:] },
	} {
		t.Run(name, func(t *testing.T) {
			data := change(slices.Clone(good))
			s.Set(key, data)
			_, err := r.PackHeader(t.Context(), f.ID, int64(len(data)))
			require.ErrorIs(t, err, repo.ErrDamaged)
			require.ErrorContains(t, err, key)
		})
	}
}
