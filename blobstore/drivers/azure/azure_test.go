package azure

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/pvcbackup/blobstore"
)

// play opens a store on a server that plays Azure's answers.
func play(t *testing.T, h http.HandlerFunc) *blobstore.Store {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	t.Setenv("AZURE_STORAGE_ACCOUNT", "acme")
	t.Setenv("AZURE_STORAGE_KEY", "aHVudGVyMg==")
	url := "azblob://container/folder?protocol=http&localemu=true&domain=" + strings.TrimPrefix(server.URL, "http://")
	s, err := blobstore.Open(t.Context(), url, &blobstore.Options{Openers: Openers(), RetryBudget: -1})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func refuse(status int, code string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("x-ms-error-code", code)
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(status)
		if r.Method != http.MethodHead {
			fmt.Fprintf(w, `<?xml version="1.0" encoding="utf-8"?><Error><Code>%s</Code><Message>no</Message></Error>`, code)
		}
	}
}

func TestErrorsAreWhatTheCodeSays(t *testing.T) {
	for _, tc := range []struct {
		status int
		code   string
		want   error
	}{
		{404, "ContainerNotFound", blobstore.ErrNoBucket},
		{403, "AuthorizationFailure", blobstore.ErrPermission},
		{403, "AuthenticationFailed", blobstore.ErrPermission},
		{403, "AuthorizationPermissionMismatch", blobstore.ErrPermission},
		{409, "ContainerBeingDeleted", blobstore.ErrUnavailable},
		{400, "InvalidHeaderValue", blobstore.ErrInvalid},
	} {
		t.Run(tc.code, func(t *testing.T) {
			s := play(t, refuse(tc.status, tc.code))
			_, err := s.Stat(t.Context(), "config")
			require.ErrorIs(t, err, tc.want)
			_, err = s.GetBytes(t.Context(), "config", 10)
			require.ErrorIs(t, err, tc.want)
			require.NotErrorIs(t, err, blobstore.ErrNotFound)
			require.NotContains(t, err.Error(), "hunter2")
			require.ErrorIs(t, s.PutBytes(t.Context(), "config", nil, nil), tc.want)
			require.ErrorIs(t, s.Delete(t.Context(), "config"), tc.want)
			for _, err := range s.List(t.Context(), "") {
				require.ErrorIs(t, err, tc.want)
			}
		})
	}
}

func TestLoserOfAConditionalPutGetsErrExists(t *testing.T) {
	for status, code := range map[int]string{409: "BlobAlreadyExists", 412: "ConditionNotMet"} {
		s := play(t, refuse(status, code))
		err := s.PutBytes(t.Context(), "k", []byte("x"), &blobstore.PutOptions{OnlyIfAbsent: true})
		require.ErrorIs(t, err, blobstore.ErrExists, code)
	}
}

func TestPutBytesIsOneRequest(t *testing.T) {
	var mu sync.Mutex
	var seen []string
	s := play(t, func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, fmt.Sprint(r.Method, " ", r.URL.Path, " ", n, " ", r.Header.Get("If-None-Match"), " ", r.Header.Get("x-ms-blob-type")))
		w.WriteHeader(http.StatusCreated)
	})
	require.NoError(t, s.PutBytes(t.Context(), "k", make([]byte, 33<<20), &blobstore.PutOptions{OnlyIfAbsent: true}))
	require.Equal(t, []string{"PUT /acme/container/folder/k 34603008 * BlockBlob"}, seen)
}

func TestBadURLsAreRefused(t *testing.T) {
	t.Setenv("AZURE_STORAGE_ACCOUNT", "")
	for _, raw := range []string{
		"azblob://", "azblob://con", "azblob://con?storage_account=acme&typo=1", "azblob://con?storage_account=acme&localemu=perhaps",
		"azblob://con?storage_account=acme&domain=evil.example.org", "azblob://con?storage_account=acme&protocol=http",
		"azblob://..?storage_account=acme", "azblob://Upper?storage_account=acme", "azblob://con:80?storage_account=acme",
	} {
		_, err := blobstore.Open(t.Context(), raw, &blobstore.Options{Openers: Openers()})
		require.ErrorIs(t, err, blobstore.ErrInvalid, raw)
	}
}

// FuzzOnlyAzureAndLoopbackGetCredentials checks that no URL sends credentials elsewhere.
func FuzzOnlyAzureAndLoopbackGetCredentials(f *testing.F) {
	for _, raw := range []string{
		"azblob://con?storage_account=acme", "azblob://con?storage_account=acme&domain=blob.core.usgovcloudapi.net",
		"azblob://con?storage_account=evil.example.org%2F&domain=blob.core.windows.net", "azblob://con?storage_account=a@b",
		"azblob://con?storage_account=acme&localemu=true&domain=127.0.0.1:1", "azblob://con?storage_account=a%3Fb%23c",
	} {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		u, err := url.Parse(raw)
		if err != nil {
			return
		}
		service, err := parse(u)
		if err != nil {
			require.ErrorIs(t, err, blobstore.ErrInvalid)
			return
		}
		host := service.Hostname()
		ip := net.ParseIP(host)
		local := host == "localhost" || strings.HasSuffix(host, ".localhost") || ip != nil && ip.IsLoopback()
		known := slices.ContainsFunc([]string{".blob.core.windows.net", ".blob.core.usgovcloudapi.net", ".blob.core.chinacloudapi.cn", ".blob.storage.azure.net"},
			func(suffix string) bool { return strings.HasSuffix(host, suffix) })
		require.True(t, local || known, "%q leads to %q", raw, host)
	})
}

func TestUnknownHostIsUnavailable(t *testing.T) {
	t.Setenv("AZURE_STORAGE_ACCOUNT", "acme")
	t.Setenv("AZURE_STORAGE_KEY", "")
	t.Setenv("AZURE_STORAGE_SAS_TOKEN", "sv=1&sig=hunter2")
	s, err := blobstore.Open(t.Context(), "azblob://con?protocol=http&localemu=true&domain=no-such-host.localhost:1", &blobstore.Options{Openers: Openers(), RetryBudget: -1})
	require.NoError(t, err)
	defer s.Close()
	_, err = s.Stat(t.Context(), "k")
	require.ErrorIs(t, err, blobstore.ErrUnavailable)
	require.NotContains(t, err.Error(), "hunter2")
}
