package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/backup/restorer/treecmp"
	"example.com/pvcbackup/blobstore"
)

func TestAFolderComesBackFromAURL(t *testing.T) {
	source, target := t.TempDir(), filepath.Join(t.TempDir(), "restored")
	url := "file://" + filepath.Join(t.TempDir(), "store") + "?create_dir=true"
	write := func(name, text string) {
		t.Helper()
		require.NoError(t, os.WriteFile(filepath.Join(source, name), []byte(text), 0o600))
	}
	engine := func(args ...string) string {
		t.Helper()
		var out strings.Builder
		require.NoError(t, run(t.Context(), args, "secret", &out))
		return out.String()
	}
	write("a", "hello")
	write("b", "world")
	require.Contains(t, engine("backup", url, source), ": 2 files, of which 2 are new or changed\n")
	write("b", "everyone")
	require.Contains(t, engine("backup", url, source), ": 2 files, of which 1 are new or changed\n")
	require.Equal(t, 2, strings.Count(engine("list", url), source))
	require.Equal(t, "restored and verified 2 files, 13 bytes\n", engine("restore", url, target))

	differences, err := treecmp.Compare(source, target, treecmp.Options{Owners: true})
	require.NoError(t, err)
	require.Empty(t, differences)
}

func TestMistakesAreToldApart(t *testing.T) {
	url := "file://" + filepath.Join(t.TempDir(), "store") + "?create_dir=true"
	fails := func(password string, args ...string) error {
		return run(t.Context(), args, password, &strings.Builder{})
	}
	require.ErrorIs(t, fails("secret"), errUsage)
	require.ErrorIs(t, fails("", "list", url), errUsage)
	require.ErrorIs(t, fails("secret", "list", "ftp://host/x"), blobstore.ErrInvalid)
	require.ErrorIs(t, fails("secret", "list", url), repo.ErrAbsent)
	require.NoError(t, fails("secret", "backup", url, t.TempDir()))
	require.ErrorIs(t, fails("wrong", "list", url), repo.ErrWrongPassword)
	require.ErrorIs(t, fails("secret", "dance", url), errUsage)
}
