package gcs

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/pvcbackup/blobstore"
	"example.com/pvcbackup/blobstore/blobtest"
	"example.com/pvcbackup/blobstore/internal/matrix"
)

func TestConformance(t *testing.T) {
	server := blobtest.StartGCS(t)
	var n atomic.Int32
	matrix.Check(t, "gs", func(t testing.TB) blobtest.Store {
		url := fmt.Sprintf("%s/folder/%d", server.URL, n.Add(1))
		s, err := blobstore.Open(t.Context(), url, &blobstore.Options{Openers: Openers()})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.Close()) })
		return s
	}, blobtest.Caps{})
}

// A cancelled context ends the upload in a goroutine of its own, which comes too late now and then.
func TestAPutThatFailsAtItsEndNeverStoresWhatWasSentSoFar(t *testing.T) {
	s, err := blobstore.Open(t.Context(), blobtest.StartGCS(t).URL, &blobstore.Options{Openers: Openers()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	for n := range 300 {
		key := fmt.Sprint(n)
		require.ErrorIs(t, s.Put(t.Context(), key, strings.NewReader("ten bytes!"), &blobstore.PutOptions{Size: 11}), blobstore.ErrCorrupt)
		_, err := s.Stat(t.Context(), key)
		require.ErrorIs(t, err, blobstore.ErrNotFound)
	}
}

// answer opens a store on a server that always answers with status and message.
func answer(t *testing.T, status int, message string) *blobstore.Store {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"error":{"code":%d,"message":%q}}`, status, message)
	}))
	t.Cleanup(server.Close)
	t.Setenv("STORAGE_EMULATOR_HOST", strings.TrimPrefix(server.URL, "http://"))
	s, err := blobstore.Open(t.Context(), "gs://bucket", &blobstore.Options{Openers: Openers(), RetryBudget: -1})
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestErrorsAreWhatTheStatusSays(t *testing.T) {
	for _, tc := range []struct {
		status  int
		message string
		want    error
	}{
		{403, "acme does not have storage.objects.get access (or it may not exist).", blobstore.ErrPermission},
		{401, "Anonymous caller", blobstore.ErrPermission},
		{404, "The specified bucket does not exist.", blobstore.ErrNoBucket},
		{404, "Not Found", blobstore.ErrNoBucket}, // the listing that follows fails as well
		{429, "rate", blobstore.ErrUnavailable},
		{503, "down", blobstore.ErrUnavailable},
		{400, "bad", blobstore.ErrInvalid},
	} {
		t.Run(fmt.Sprint(tc.status, tc.message), func(t *testing.T) {
			s := answer(t, tc.status, tc.message)
			_, err := s.Stat(t.Context(), "config")
			require.ErrorIs(t, err, tc.want)
			_, err = s.GetBytes(t.Context(), "config", 10)
			require.ErrorIs(t, err, tc.want)
			require.ErrorIs(t, s.PutBytes(t.Context(), "config", nil, nil), tc.want)
			require.ErrorIs(t, s.Delete(t.Context(), "config"), tc.want)
			for _, err := range s.List(t.Context(), "") {
				require.ErrorIs(t, err, tc.want)
			}
		})
	}
}

func TestMissingBucketIsNotAMissingObject(t *testing.T) {
	blobtest.StartGCS(t)
	s, err := blobstore.Open(t.Context(), "gs://no-such-bucket", &blobstore.Options{Openers: Openers(), RetryBudget: -1})
	require.NoError(t, err)
	defer s.Close()
	_, err = s.Stat(t.Context(), "k")
	require.ErrorIs(t, err, blobstore.ErrNoBucket)
	_, err = s.GetBytes(t.Context(), "k", 1)
	require.ErrorIs(t, err, blobstore.ErrNoBucket)
}

func FuzzParseAnswersWithParametersOrATypedError(f *testing.F) {
	for _, raw := range []string{"gs://b?anonymous=true", "gs://", "gs://b?universe_domain=x", "gs://b?x=%zz"} {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		u, err := url.Parse(raw)
		if err != nil {
			return
		}
		if _, err := parse(u); err != nil {
			require.ErrorIs(t, err, blobstore.ErrInvalid)
		}
	})
}

func TestSilentStoreEndsInUnavailable(t *testing.T) {
	t.Setenv("STORAGE_EMULATOR_HOST", blobtest.Silent(t))
	s, err := blobstore.Open(t.Context(), "gs://bucket", &blobstore.Options{Openers: Openers(), RetryBudget: -1, StallTimeout: 30 * time.Millisecond})
	require.NoError(t, err)
	defer s.Close()
	require.ErrorIs(t, s.PutBytes(t.Context(), "k", []byte("x"), nil), blobstore.ErrUnavailable)
	_, err = s.GetBytes(t.Context(), "k", 1)
	require.ErrorIs(t, err, blobstore.ErrUnavailable)
	require.ErrorContains(t, err, "no byte moved")
}

func TestBadURLsAndMissingCredentialsAreRefused(t *testing.T) {
	t.Setenv("STORAGE_EMULATOR_HOST", "127.0.0.1:1")
	for _, raw := range []string{"gs://", "gs://b?anonymous=perhaps", "gs://b?acess_id=x"} {
		_, err := blobstore.Open(t.Context(), raw, &blobstore.Options{Openers: Openers()})
		require.ErrorIs(t, err, blobstore.ErrInvalid, raw)
	}
	t.Setenv("STORAGE_EMULATOR_HOST", "")
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", t.TempDir()+"/missing.json")
	_, err := blobstore.Open(t.Context(), "gs://b", &blobstore.Options{Openers: Openers()})
	require.ErrorIs(t, err, blobstore.ErrPermission)
}
