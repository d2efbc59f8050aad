package blobtest

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"example.com/pvcbackup/blobstore"
)

// failures provokes an error of every method, all with a missing object.
func failures(ctx context.Context, s Store) map[string]error {
	out := map[string]error{}
	_, out["GetBytes"] = s.GetBytes(ctx, "missing/object", 10)
	_, out["GetRange"] = s.GetRange(ctx, "missing/object", 0, 10)
	_, out["Get"] = s.Get(ctx, "missing/object")
	_, out["Stat"] = s.Stat(ctx, "missing/object")
	return out
}

func errorsAreClassified(t testing.TB, s Store, _ Caps) {
	for name, err := range failures(t.Context(), s) {
		require.ErrorIs(t, err, blobstore.ErrNotFound, name)
		var e *blobstore.Error
		require.ErrorAs(t, err, &e, name)
		require.Equal(t, "missing/object", e.Key, name)
	}
	for name, err := range failures(ended(t), s) {
		require.ErrorIs(t, err, blobstore.ErrCanceled, name)
		require.ErrorIs(t, err, context.Canceled, name)
		require.NotErrorIs(t, err, blobstore.ErrNotFound, name)
	}
	late, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	for name, err := range failures(late, s) {
		require.ErrorIs(t, err, blobstore.ErrUnavailable, name)
		require.ErrorIs(t, err, context.DeadlineExceeded, name)
	}
	n := 0
	for _, err := range s.List(ended(t), "") {
		require.ErrorIs(t, err, blobstore.ErrCanceled)
		n++
	}
	require.Equal(t, 1, n, "a listing that failed must say so")
}

func noSecretsInErrors(t testing.TB, s Store, c Caps) {
	texts := []string{s.URL()}
	for _, ctx := range []context.Context{t.Context(), ended(t)} {
		for _, err := range failures(ctx, s) {
			texts = append(texts, err.Error())
		}
	}
	if err := s.PutBytes(ended(t), "k", []byte("x"), nil); err != nil {
		texts = append(texts, err.Error())
	}
	for _, text := range texts {
		for _, secret := range c.Secrets {
			require.False(t, strings.Contains(text, secret), "a secret is shown")
		}
	}
}

// noGoroutineLeft ignores the connections that HTTP clients keep for later.
func noGoroutineLeft(t testing.TB, s Store, _ Caps) {
	mustPut(t, s, "k", content(1, 100_000))
	before := goleak.IgnoreCurrent()
	require.ErrorIs(t, s.Put(t.Context(), "broken", endless(large, errBroken), nil), errBroken)
	require.NoError(t, s.Put(t.Context(), "fine", endless(large, io.EOF), nil))
	ctx, cancel := context.WithCancel(t.Context())
	require.Error(t, s.Put(ctx, "cut", &after{endless(large, io.EOF), 1 << 20, cancel}, nil))
	cancel()
	r, err := s.Get(t.Context(), "fine")
	require.NoError(t, err)
	_, err = io.CopyN(io.Discard, r, 1000)
	require.NoError(t, err)
	require.NoError(t, r.Close())
	_, err = s.GetRange(t.Context(), "k", 5, 10)
	require.NoError(t, err)
	for range s.List(t.Context(), "") {
		break
	}
	err = goleak.Find(before,
		goleak.IgnoreAnyFunction("net/http.(*persistConn).readLoop"),
		goleak.IgnoreAnyFunction("net/http.(*persistConn).writeLoop"),
		goleak.IgnoreAnyFunction("net/http.(*http2ClientConn).readLoop"),
	)
	require.NoError(t, err)
}

func probeTells(t testing.TB, s Store, c Caps) {
	r, err := s.Probe(t.Context())
	require.NoError(t, err)
	require.Equal(t, s.URL(), r.URL)
	for name, check := range map[string]blobstore.Check{
		"write": r.Write, "read": r.Read, "list": r.List, "delete": r.Delete, "digest": r.Digest, "clock": r.Clock,
	} {
		require.True(t, check.OK, "%s: %s", name, check.Detail)
		require.NotEmpty(t, check.Detail, name)
	}
	require.Equal(t, !c.OnlyIfAbsentBestEffort, r.ConditionalPut.OK, r.ConditionalPut.Detail)
	mustList(t, s, "") // it cleans up
}
