package blobstore

import (
	"context"
	"errors"
	"iter"
	"net/url"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"gocloud.dev/blob"
)

type iterSeq = iter.Seq2[Object, error]

func fakeOpener(f *fake, seen *string) map[string]Opener {
	return map[string]Opener{"fake": func(_ context.Context, u *url.URL, _ *Options) (*Driver, error) {
		*seen = u.String()
		if u.Host == "fail" {
			return nil, errors.New("cannot dial https://user:hunter2@host/?sig=topsecret")
		}
		return &Driver{Bucket: blob.NewBucket(f), Prefix: PathPrefix(u)}, nil
	}}
}

func TestPrefixIsTheSameFromPathAndParameter(t *testing.T) {
	for raw, want := range map[string]string{
		"fake://b":                        "k",
		"fake://b/":                       "k",
		"fake://b/x/y":                    "x/y/k",
		"fake://b/x/y/":                   "x/y/k",
		"fake://b?prefix=x/y":             "x/y/k",
		"fake://b/x?prefix=/y/&region=eu": "x/y/k",
	} {
		f, seen := newFake(), ""
		s, err := Open(t.Context(), raw, &Options{Openers: fakeOpener(f, &seen)})
		require.NoError(t, err, raw)
		require.NotContains(t, seen, "prefix=", "the driver gets the URL without it")
		require.NoError(t, s.PutBytes(t.Context(), "k", nil, nil))
		require.Contains(t, f.objects, want, raw)
		require.NoError(t, s.Sub("sub").PutBytes(t.Context(), "k", nil, nil))
		require.Contains(t, f.objects, strings.TrimSuffix(want, "k")+"sub/k", raw)
		require.NoError(t, s.Close())
	}
}

func TestStoreNeverLeavesItsPrefix(t *testing.T) {
	f, seen := newFake(), ""
	f.objects["ab"], f.objects["a/b"], f.objects["other"] = nil, nil, nil
	s, err := Open(t.Context(), "fake://b/a", &Options{Openers: fakeOpener(f, &seen)})
	require.NoError(t, err)
	defer s.Close()
	n, err := s.DeleteAll(t.Context(), "")
	require.NoError(t, err)
	require.Equal(t, 1, n)
	for _, sub := range []string{"..", "../other", "x/../.."} {
		_, err := s.Sub(sub).Stat(t.Context(), "k")
		require.ErrorIs(t, err, ErrInvalid, sub)
		for _, err := range s.Sub(sub).List(t.Context(), "") {
			require.ErrorIs(t, err, ErrInvalid, sub)
		}
	}
	_, err = Open(t.Context(), "fake://b/a/../c", &Options{Openers: fakeOpener(f, &seen)})
	require.ErrorIs(t, err, ErrInvalid)
}

func TestUnknownSchemeNamesTheImportAndTheSchemesThere(t *testing.T) {
	var seen string
	_, err := Open(t.Context(), "s3://bucket", &Options{Openers: fakeOpener(newFake(), &seen)})
	var e *SchemeError
	require.ErrorAs(t, err, &e)
	want := &SchemeError{Scheme: "s3", Import: "example.com/pvcbackup/blobstore/drivers/s3", Available: []string{"fake"}}
	if diff := cmp.Diff(want, e); diff != "" {
		t.Fatal(diff)
	}
	require.ErrorIs(t, err, ErrInvalid)
	require.Equal(t, `no driver for the scheme "s3": add example.com/pvcbackup/blobstore/drivers/s3.Openers() to Options.Openers; available: fake`, err.Error())
	_, err = Open(t.Context(), "ftp://bucket", nil)
	require.EqualError(t, err, `no driver knows the scheme "ftp"; available: none`)
}

func TestUnusableURLsAreRefusedWithoutShowingSecrets(t *testing.T) {
	var seen string
	for _, raw := range []string{
		"", "bucket", "s3:bucket", "fake://user:hunter2@b", "fake://b?hunter2=%zz", "fake://b/%zzhunter2",
		"fake://hunter2 x/y", "fake://fail?token=hunter2", "://hunter2",
	} {
		_, err := Open(t.Context(), raw, &Options{Openers: fakeOpener(newFake(), &seen)})
		require.ErrorIs(t, err, ErrInvalid, raw)
		require.NotContains(t, err.Error(), "hunter2")
		require.NotContains(t, err.Error(), "topsecret")
	}
}

func TestURLIsRedactedAndFollowsSub(t *testing.T) {
	var seen string
	open := func(raw string) *Store {
		s, err := Open(t.Context(), raw, &Options{Openers: fakeOpener(newFake(), &seen)})
		require.NoError(t, err)
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	s := open("fake://b/x?region=eu&sig=hunter2")
	require.Equal(t, "fake://b/x?region=eu&sig=redacted", s.URL())
	require.Equal(t, "fake://b/x/y/?region=eu&sig=redacted", s.Sub("y").URL())
	require.Equal(t, "fake://b/x?prefix=p/y/", open("fake://b/x?prefix=p").Sub("y").URL())
}

func TestErrorTellsOperationKeyKindAndCause(t *testing.T) {
	e := &Error{Op: "get", Key: "a/b", Kind: KindPermission, Err: errors.New("GET https://acme.blob/x?sv=1&sig=hunter2: 403 (Authorization: Bearer abcdefghijkl)")}
	require.Equal(t, `get "a/b": permission denied by the store: GET https://acme.blob/x?sig=redacted&sv=redacted: 403 (Authorization: Bearer redacted)`, e.Error())
	require.Equal(t, "StorePermissionDenied", e.Reason())
	require.True(t, e.Terminal())
	require.False(t, (&Error{Kind: KindUnavailable}).Terminal())
}

func TestCoreLinksNoCloudSDK(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	require.NoError(t, err)
	for pkg := range strings.Lines(string(out)) {
		for _, sdk := range []string{"github.com/aws/", "github.com/Azure/", "cloud.google.com/go/storage", "google.golang.org/api/storage", "k8s.io/", "sigs.k8s.io/"} {
			require.False(t, strings.HasPrefix(pkg, sdk), "blobstore links %s", pkg)
		}
	}
}
