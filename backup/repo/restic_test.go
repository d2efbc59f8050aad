package repo_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/backup/repo/repotest"
)

func dirStore(t testing.TB) (*repotest.Dir, string) {
	t.Helper()
	root := t.TempDir()
	s, err := repotest.NewDir(root)
	require.NoError(t, err)
	return s, root
}

// backup stores one file of several blobs, and commits it as a run.
func backup(t testing.TB, r *repo.Repository, run string, parts ...[]byte) repo.ID {
	t.Helper()
	w := r.NewWriter(t.Context(), &repo.WriterOptions{PackSize: 4 << 20})
	defer w.Abort()
	content := []repo.ID{}
	size := 0
	for _, part := range parts {
		content = append(content, save(t, w, repo.DataBlob, part).ID)
		size += len(part)
	}
	node := map[string]any{
		"name": "file", "type": "file", "mode": 0o644, "mtime": time.Unix(0, 0).UTC(), "atime": time.Unix(0, 0).UTC(),
		"ctime": time.Unix(0, 0).UTC(), "uid": 1, "gid": 1, "size": size, "content": content,
	}
	text, err := json.Marshal(map[string]any{"nodes": []any{node}})
	require.NoError(t, err)
	tree := save(t, w, repo.TreeBlob, append(text, '\n'))
	require.NoError(t, w.Flush(t.Context()))
	snapshot, _, err := r.CommitRun(t.Context(), run, snapshotOf(tree.ID))
	require.NoError(t, err)
	require.NoError(t, r.VerifyWritten(t.Context(), w.Written(), 5))
	return snapshot
}

func TestResticChecksAndReadsWhatWasWritten(t *testing.T) {
	s, root := dirStore(t)
	r, err := repo.Init(t.Context(), s, password, &repo.InitOptions{KeyOptions: cheap, Owner: "me"})
	require.NoError(t, err)
	parts := [][]byte{randomBytes(1 << 20), make([]byte, 512<<10), []byte(strings.Repeat("text ", 1000)), []byte("x"), randomBytes(5 << 20)}
	snapshot := backup(t, r, "run-1", parts...)
	backup(t, r, "run-2", parts[0], []byte("changed"))

	restic := repotest.NewRestic(t, root, password)
	require.Contains(t, restic.Run("check", "--read-data"), "no errors were found")
	want := ""
	for _, part := range parts {
		want += string(part)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	got, err := restic.Command(ctx, "dump", snapshot.String(), "/file").Output()
	require.NoError(t, err)
	require.True(t, want == string(got), "restic dumps other content")

	rw, err := r.RewriteIndex(t.Context(), func(repo.ID) bool { return false })
	require.NoError(t, err)
	require.NoError(t, rw.RemoveOld(t.Context()))
	require.Contains(t, restic.Run("check", "--read-data"), "no errors were found")

	require.NoError(t, r.RemoveSnapshots(t.Context(), snapshot))
	restic.Run("prune", "--max-unused", "0")
	require.Contains(t, restic.Run("check", "--read-data"), "no errors were found")
	r, err = repo.Open(t.Context(), s, password, nil)
	require.NoError(t, err)
	readAll(t, r)
}

func TestResticOpensWithAnAddedKey(t *testing.T) {
	s, root := dirStore(t)
	r, err := repo.Init(t.Context(), s, password, &repo.InitOptions{})
	require.NoError(t, err)
	_, err = r.AddKey(t.Context(), "second", repo.KeyOptions{})
	require.NoError(t, err)
	require.Contains(t, repotest.NewRestic(t, root, "second").Run("cat", "config"), r.ID())
}

func TestResticRespectsLocksAndItsLocksAreRespected(t *testing.T) {
	s, root := dirStore(t)
	r, err := repo.Init(t.Context(), s, password, &repo.InitOptions{KeyOptions: cheap})
	require.NoError(t, err)
	restic := repotest.NewRestic(t, root, password)
	l, err := r.Lock(t.Context(), repo.LockOptions{Host: "pod-1"})
	require.NoError(t, err)
	out, err := restic.Try("check")
	require.Error(t, err)
	require.Contains(t, out, "pod-1")
	require.NoError(t, l.Unlock(t.Context()))

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := restic.Command(ctx, "backup", "--stdin") // holds its lock until its input ends
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	require.Eventually(t, func() bool {
		locks, err := r.Locks(t.Context())
		return err == nil && len(locks) == 1
	}, time.Minute, 50*time.Millisecond)
	_, err = r.Lock(t.Context(), repo.LockOptions{Host: "pod-1", Exclusive: true})
	require.ErrorIs(t, err, repo.ErrLocked)
	_, err = in.Write([]byte("data"))
	require.NoError(t, err)
	require.NoError(t, in.Close())
	require.NoError(t, cmd.Wait())
	l, err = r.Lock(t.Context(), repo.LockOptions{Host: "pod-1", Exclusive: true})
	require.NoError(t, err)
	require.NoError(t, l.Unlock(t.Context()))
}

// readAll reads every snapshot, and every blob that the index lists, and compares the index with the packs.
func readAll(t testing.TB, r *repo.Repository) (blobs int) {
	t.Helper()
	infos, err := r.Snapshots(t.Context())
	require.NoError(t, err)
	require.NotEmpty(t, infos)
	require.NoError(t, r.LoadIndex(t.Context()))
	for _, info := range infos {
		_, err := r.LoadBlob(t.Context(), repo.BlobHandle{Type: repo.TreeBlob, ID: *info.Tree}, nil)
		require.NoError(t, err)
	}
	index := packsOf(t, r)
	for f, err := range r.ListPacks(t.Context()) {
		require.NoError(t, err)
		header, err := r.PackHeader(t.Context(), f.ID, f.Size)
		require.NoError(t, err)
		if diff := cmp.Diff(index[f.ID], header); diff != "" {
			t.Errorf("-index +header:\n%s", diff)
		}
		err = r.ReadPack(t.Context(), f.ID, header, func(_ repo.PackedBlob, _ []byte, err error) error {
			blobs++
			return err
		})
		require.NoError(t, err)
	}
	return blobs
}

func TestWhatResticWroteIsRead(t *testing.T) {
	for _, version := range []string{"1", "2"} {
		t.Run("version "+version, func(t *testing.T) {
			s, root := dirStore(t)
			require.NoError(t, os.Remove(filepath.Join(root, "keys")))
			source := t.TempDir()
			for name, data := range map[string][]byte{"zeros": make([]byte, 3<<20), "random": randomBytes(2 << 20), "small": []byte("x"), "empty": nil} {
				require.NoError(t, os.WriteFile(filepath.Join(source, name), data, 0o600))
			}
			restic := repotest.NewRestic(t, root, password)
			restic.Run("init", "--repository-version", version)
			restic.Run("backup", "--tag", "first", source)
			require.NoError(t, os.WriteFile(filepath.Join(source, "more"), []byte("more"), 0o600))
			restic.Run("backup", source)

			r, err := repo.Open(t.Context(), s, password, nil)
			require.NoError(t, err)
			require.Equal(t, version, []string{"", "1", "2"}[r.Version()])
			require.Contains(t, restic.Run("cat", "config"), r.ID())
			require.GreaterOrEqual(t, readAll(t, r), 6)
			infos, err := r.Snapshots(t.Context())
			require.NoError(t, err)
			require.Len(t, infos, 2)
			require.Equal(t, []string{"first"}, infos[0].Tags)
			require.Equal(t, infos[0].ID, *infos[1].Parent)
			require.NotNil(t, infos[0].Summary)

			if version == "2" {
				backup(t, r, "ours", []byte("data"))
				require.Contains(t, restic.Run("check", "--read-data"), "no errors were found")
			}
		})
	}
}
