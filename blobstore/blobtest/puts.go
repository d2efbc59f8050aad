package blobtest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/pvcbackup/blobstore"
)

const large = 20 << 20 // more than the first part of any driver but Azure's

func putReplaces(t testing.TB, s Store, _ Caps) {
	mustPut(t, s, "a/b", []byte("first"))
	mustHold(t, s, "a/b", []byte("first"))
	mustPut(t, s, "a/b", []byte("second, longer"))
	mustHold(t, s, "a/b", []byte("second, longer"))
	require.NoError(t, s.Put(t.Context(), "a/b", stream{strings.NewReader("third")}, nil))
	mustHold(t, s, "a/b", []byte("third"))
}

func readerFails(t testing.TB, s Store, _ Caps) {
	for _, n := range []int64{0, 1, 300 << 10, large} {
		key := fmt.Sprint("k", n)
		err := s.Put(t.Context(), key, endless(n, errBroken), nil)
		require.ErrorIs(t, err, errBroken, "after %d bytes", n)
		require.ErrorIs(t, err, blobstore.ErrSource)
		mustLack(t, s, key)
	}
}

func contextEnds(t testing.TB, s Store, _ Caps) {
	for _, n := range []int{0, 300 << 10, large} {
		key := fmt.Sprint("k", n)
		ctx, cancel := context.WithCancel(t.Context())
		err := s.Put(ctx, key, &after{endless(int64(n)+1<<20, io.EOF), n, cancel}, nil)
		cancel()
		require.ErrorIs(t, err, context.Canceled, "after %d bytes", n)
		require.ErrorIs(t, err, blobstore.ErrCanceled)
		mustLack(t, s, key)
	}
	require.ErrorIs(t, s.PutBytes(ended(t), "bytes", []byte("x"), nil), blobstore.ErrCanceled)
	mustLack(t, s, "bytes")
}

func wrongDigest(t testing.TB, s Store, _ Caps) {
	data := content(1, 100_000)
	right, wrong := sha256.Sum256(data), sha256.Sum256([]byte("other"))
	require.ErrorIs(t, s.PutBytes(t.Context(), "bytes", data, &blobstore.PutOptions{SHA256: &wrong}), blobstore.ErrCorrupt)
	mustLack(t, s, "bytes")
	require.ErrorIs(t, s.Put(t.Context(), "stream", bytes.NewReader(data), &blobstore.PutOptions{SHA256: &wrong}), blobstore.ErrCorrupt)
	mustLack(t, s, "stream")
	require.NoError(t, s.PutBytes(t.Context(), "bytes", data, &blobstore.PutOptions{SHA256: &right}))
	mustHold(t, s, "bytes", data)
	require.NoError(t, s.Put(t.Context(), "stream", bytes.NewReader(data), &blobstore.PutOptions{SHA256: &right}))
	mustHold(t, s, "stream", data)
}

func wrongSize(t testing.TB, s Store, _ Caps) {
	for _, size := range []int64{9, 11} {
		err := s.Put(t.Context(), "k", strings.NewReader("ten bytes!"), &blobstore.PutOptions{Size: size})
		require.ErrorIs(t, err, blobstore.ErrCorrupt)
		mustLack(t, s, "k")
	}
	require.NoError(t, s.Put(t.Context(), "k", strings.NewReader("ten bytes!"), &blobstore.PutOptions{Size: 10}))
	mustHold(t, s, "k", []byte("ten bytes!"))
}

func keepsOldObject(t testing.TB, s Store, _ Caps) {
	old, wrong := []byte("the good old object"), [32]byte{1}
	mustPut(t, s, "k", old)
	for _, n := range []int64{0, 10, large} {
		require.ErrorIs(t, s.Put(t.Context(), "k", endless(n, errBroken), nil), errBroken)
		mustHold(t, s, "k", old)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	require.ErrorIs(t, s.Put(ctx, "k", &after{endless(1<<20, io.EOF), 10, cancel}, nil), context.Canceled)
	mustHold(t, s, "k", old)
	require.ErrorIs(t, s.PutBytes(t.Context(), "k", []byte("new"), &blobstore.PutOptions{SHA256: &wrong}), blobstore.ErrCorrupt)
	mustHold(t, s, "k", old)
}

func secondLoses(t testing.TB, s Store, _ Caps) {
	absent := &blobstore.PutOptions{OnlyIfAbsent: true}
	require.NoError(t, s.PutBytes(t.Context(), "k", []byte("first"), absent))
	require.ErrorIs(t, s.PutBytes(t.Context(), "k", []byte("second"), absent), blobstore.ErrExists)
	require.ErrorIs(t, s.PutBytes(t.Context(), "k", []byte("first"), absent), blobstore.ErrExists)
	require.ErrorIs(t, s.Put(t.Context(), "k", strings.NewReader("third"), absent), blobstore.ErrExists)
	require.ErrorIs(t, s.Put(t.Context(), "k", endless(large, io.EOF), absent), blobstore.ErrExists)
	mustHold(t, s, "k", []byte("first"))
	require.NoError(t, s.Put(t.Context(), "stream", strings.NewReader("x"), absent))
	mustHold(t, s, "stream", []byte("x"))
}

func oneWinner(t testing.TB, s Store, c Caps) {
	const rounds, writers = 20, 8
	for round := range rounds {
		key := fmt.Sprint("round", round)
		errs := make([]error, writers)
		start := make(chan struct{})
		var wg sync.WaitGroup
		for i := range writers {
			wg.Go(func() {
				<-start
				data := []byte(fmt.Sprint("writer ", i))
				if i%2 == 0 {
					errs[i] = s.PutBytes(t.Context(), key, data, &blobstore.PutOptions{OnlyIfAbsent: true})
				} else {
					errs[i] = s.Put(t.Context(), key, bytes.NewReader(data), &blobstore.PutOptions{OnlyIfAbsent: true})
				}
			})
		}
		close(start)
		wg.Wait()
		winners := 0
		for i, err := range errs {
			if err == nil {
				winners++
				if !c.OnlyIfAbsentBestEffort {
					mustHold(t, s, key, []byte(fmt.Sprint("writer ", i)))
				}
				continue
			}
			require.ErrorIs(t, err, blobstore.ErrExists)
		}
		if winners != 1 && !c.OnlyIfAbsentBestEffort {
			t.Fatalf("round %d has %d winners", round, winners)
		}
	}
}

func largerThanOnePart(t testing.TB, s Store, c Caps) {
	size := c.StreamSize
	if size == 0 {
		size = large
	}
	for _, n := range []int64{size, size + 1} {
		sent := sha256.New()
		require.NoError(t, s.Put(t.Context(), "big", io.TeeReader(endless(n, io.EOF), sent), nil))
		o, err := s.Stat(t.Context(), "big")
		require.NoError(t, err)
		require.Equal(t, n, o.Size)
		got := sha256.New()
		r, err := s.Get(t.Context(), "big")
		require.NoError(t, err)
		_, err = io.Copy(got, r)
		require.NoError(t, err)
		require.NoError(t, r.Close())
		require.Equal(t, sent.Sum(nil), got.Sum(nil))
	}
	data := content(3, int(size)+1)
	mustPut(t, s, "bytes", data)
	mustHold(t, s, "bytes", data)
	part, err := s.GetRange(t.Context(), "bytes", size-10, 11)
	require.NoError(t, err)
	require.Equal(t, data[size-10:], part)
}

// stalledReader checks that Put returns while its reader still blocks.
func stalledReader(t testing.TB, s Store, _ Caps) {
	for _, n := range []int64{0, 100, large} {
		key := fmt.Sprint("k", n)
		ctx, cancel := context.WithCancel(t.Context())
		release, blocked := make(chan struct{}), make(chan struct{})
		r := io.MultiReader(io.LimitReader(rand.NewChaCha8([32]byte{1}), n), &blocking{release: release, blocked: blocked})
		done := make(chan error, 1)
		go func() { done <- s.Put(ctx, key, r, nil) }()
		wait(t, blocked)
		cancel()
		select {
		case err := <-done:
			require.ErrorIs(t, err, context.Canceled)
		case <-time.After(20 * time.Second):
			t.Fatalf("put hangs on a stalled reader although its context has ended")
		}
		close(release)
		mustLack(t, s, key)
	}
}

func wait(t testing.TB, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(20 * time.Second):
		t.Fatalf("put never read its reader to the end")
	}
}

type blocking struct{ release, blocked chan struct{} }

func (b *blocking) Read([]byte) (int, error) {
	close(b.blocked)
	<-b.release
	return 0, errors.New("released")
}
