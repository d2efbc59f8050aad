package blobstore_test

import (
	"context"
	"math"
	"net/url"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/pvcbackup/blobstore"
	"example.com/pvcbackup/blobstore/drivers/mem"
)

var hostile = []string{
	"", " ", "/", "//", ".", "..", "../..", "a/../b", "a//b", "\x00", "\n", "\r\nX-Evil: 1", "\xff\xfe", "%00", "%zz", "a\\b", "__0x2f__",
	strings.Repeat("x", 2000), strings.Repeat("a/", 600), strings.Repeat("é", 1<<20),
}

func TestHostileURLsAreShortTypedErrors(t *testing.T) {
	for _, text := range append([]string{
		":", "://", "mem", "mem:", "mem:x", "mem://[::1", "mem://h:port", "mem://h/?prefix=..", "mem://h?x", "mem://h?a;b", "mem://h/%00",
	}, hostile...) {
		for _, raw := range []string{text, "mem://h?prefix=a/../" + url.QueryEscape(text), "nonsense://" + text} {
			_, err := blobstore.Open(t.Context(), raw, &blobstore.Options{Openers: mem.Openers()})
			require.ErrorIs(t, err, blobstore.ErrInvalid, "%.40q", raw)
		}
	}
}

func TestAnOpenerThatIsNotThereOrReturnsNothingIsAnError(t *testing.T) {
	nothing := func(context.Context, *url.URL, *blobstore.Options) (*blobstore.Driver, error) { return nil, nil }
	empty := func(context.Context, *url.URL, *blobstore.Options) (*blobstore.Driver, error) {
		return &blobstore.Driver{}, nil
	}
	for _, opener := range []blobstore.Opener{nil, nothing, empty} {
		_, err := blobstore.Open(t.Context(), "x://y", &blobstore.Options{Openers: map[string]blobstore.Opener{"x": opener}})
		require.ErrorIs(t, err, blobstore.ErrInvalid)
	}
}

func TestHostileArgumentsAreTypedErrors(t *testing.T) {
	ctx, s := t.Context(), inMemory()
	require.NoError(t, s.PutBytes(ctx, "k", []byte("hello"), nil))
	require.ErrorIs(t, s.Put(ctx, "k", nil, nil), blobstore.ErrInvalid, "no reader")
	bad := &blobstore.PutOptions{ContentType: "a\r\nX-Evil: 1"}
	require.ErrorIs(t, s.Put(ctx, "k", strings.NewReader(""), bad), blobstore.ErrInvalid)
	require.ErrorIs(t, s.PutBytes(ctx, "k", nil, bad), blobstore.ErrInvalid)
	require.NoError(t, s.Put(ctx, "sized", strings.NewReader("x"), &blobstore.PutOptions{Size: math.MinInt64}))
	for _, length := range []int64{6, 1 << 40, math.MaxInt64} {
		_, err := s.GetRange(ctx, "k", 0, length)
		require.ErrorIs(t, err, blobstore.ErrCorrupt, "a range of %d bytes", length)
	}
	_, err := s.GetBytes(ctx, "k", math.MinInt64)
	require.ErrorIs(t, err, blobstore.ErrInvalid)
	got, err := s.GetBytes(ctx, "k", math.MaxInt64)
	require.NoError(t, err)
	require.Equal(t, "hello", string(got))
}

func TestHostileKeysAndPrefixesAreRefused(t *testing.T) {
	ctx, s := t.Context(), inMemory()
	for _, text := range hostile {
		if blobstore.CheckKey(text) == nil {
			continue // harmless after all: a space, an escape that is not one
		}
		require.ErrorIs(t, s.PutBytes(ctx, text, nil, nil), blobstore.ErrInvalid, "%.20q", text)
		_, err := s.DeleteAll(ctx, text+"\x00")
		require.ErrorIs(t, err, blobstore.ErrInvalid)
		if strings.Trim(text, "/") != "" {
			require.ErrorIs(t, s.Sub(text).PutBytes(ctx, "k", nil, nil), blobstore.ErrInvalid, "below %.20q", text)
		}
	}
	for object, err := range s.List(ctx, "") {
		t.Fatalf("something was stored: %v %v", object, err)
	}
}

func TestTheZeroValuesOfErrorsSpeak(t *testing.T) {
	require.NotEmpty(t, (&blobstore.Error{}).Error())
	require.NotEmpty(t, (&blobstore.Error{Kind: math.MaxUint8}).Error())
	require.NotEmpty(t, (&blobstore.SchemeError{}).Error())
}

func FuzzCheckKeyAcceptsOnlyWhatStaysBelowAPrefix(f *testing.F) {
	for _, text := range hostile[:len(hostile)-1] {
		f.Add(text)
	}
	f.Add("data/3f/3fa8")
	f.Fuzz(func(t *testing.T, key string) {
		if blobstore.CheckKey(key) != nil {
			return
		}
		if below := path.Join("/a", key); below != "/a/"+key {
			t.Errorf("%q leads to %q", key, below)
		}
	})
}

func FuzzOpenAnswersWithAStoreOrATypedError(f *testing.F) {
	for _, text := range hostile[:len(hostile)-1] {
		f.Add("mem://h/" + text)
	}
	f.Add("mem://h/a?prefix=b")
	f.Fuzz(func(t *testing.T, raw string) {
		s, err := blobstore.Open(t.Context(), raw, &blobstore.Options{Openers: mem.Openers()})
		if err != nil {
			require.ErrorIs(t, err, blobstore.ErrInvalid)
			return
		}
		require.NoError(t, s.PutBytes(t.Context(), "k", nil, nil), "what opens can be written to")
		require.NoError(t, s.Close())
	})
}
