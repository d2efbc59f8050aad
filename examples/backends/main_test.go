package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"example.com/pvcbackup/blobstore"
	"example.com/pvcbackup/blobstore/blobtest"
)

func TestOnlyTheURLDiffers(t *testing.T) {
	want := "the store honours conditional puts: true\nbytes 1 to 3: ell\ngreetings/first 5\n"
	for name, url := range map[string]string{
		"memory": "mem://anything",
		"folder": "file://" + filepath.Join(t.TempDir(), "store") + "?create_dir=true",
		"S3":     blobtest.StartS3(t).URL,
		"GCS":    blobtest.StartGCS(t).URL,
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			require.NoError(t, try(t.Context(), url, &out))
			if diff := cmp.Diff(want, out.String()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestAnUnknownSchemeNamesThoseThatWork(t *testing.T) {
	err := try(t.Context(), "ftp://host/folder", &strings.Builder{})
	require.ErrorIs(t, err, blobstore.ErrInvalid)
	require.ErrorContains(t, err, "azblob, file, gs, mem, s3")
}
