package copier_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"example.com/pvcbackup/backup/archiver"
	"example.com/pvcbackup/backup/copier"
	"example.com/pvcbackup/backup/internal/edgetree"
	"example.com/pvcbackup/backup/maintain"
	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/backup/repo/repotest"
	"example.com/pvcbackup/backup/restorer"
	"example.com/pvcbackup/backup/restorer/treecmp"
	"example.com/pvcbackup/blobstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const password = "correct horse"

// initRepository makes one that cuts files like another, if there is another.
func initRepository(t testing.TB, s repo.Store, like *repo.Repository) *repo.Repository {
	t.Helper()
	o := repo.InitOptions{KeyOptions: repo.KeyOptions{Scrypt: repo.ScryptParams(repotest.Cheap)}}
	if like != nil {
		o.Polynomial = like.Polynomial()
	}
	r, err := repo.Init(t.Context(), s, password, &o)
	require.NoError(t, err)
	return r
}

// shared is a repository that both programs see.
func shared(t testing.TB, like *repo.Repository) (*repo.Repository, *repotest.Restic) {
	t.Helper()
	dir := t.TempDir()
	store, err := repotest.NewDir(dir)
	require.NoError(t, err)
	return initRepository(t, store, like), repotest.NewRestic(t, dir, password)
}

func reopen(t testing.TB, s repo.Store) *repo.Repository {
	t.Helper()
	r, err := repo.Open(t.Context(), s, password, nil)
	require.NoError(t, err)
	return r
}

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// backups makes n snapshots of a folder that grows by half a MiB each time.
func backups(t testing.TB, r *repo.Repository, source string, n int, o archiver.Options) {
	t.Helper()
	for i := range n {
		require.NoError(t, os.WriteFile(filepath.Join(source, fmt.Sprint("f", i)), edgetree.Random(int64(i), 512<<10), 0o644))
		o.Host, o.Path, o.Time = "cluster", "/ns/claim", start.Add(time.Duration(i)*time.Hour)
		o.Tags = []string{fmt.Sprint("n=", i)}
		_, err := archiver.Backup(t.Context(), r, source, o)
		require.NoError(t, err)
	}
}

func snapshots(t testing.TB, r *repo.Repository) []repo.SnapshotInfo {
	t.Helper()
	all, err := r.Snapshots(t.Context())
	require.NoError(t, err)
	return all
}

func copyAll(t testing.TB, from, to *repo.Repository) *copier.Result {
	t.Helper()
	result, err := copier.Copy(t.Context(), from, to, snapshots(t, from), copier.Options{})
	require.NoError(t, err)
	return result
}

func sound(t testing.TB, r *repo.Repository) {
	t.Helper()
	report, err := maintain.Check(t.Context(), r, maintain.CheckOptions{ReadData: true})
	require.NoError(t, err)
	require.NoError(t, report.Err())
}

func restores(t testing.TB, r *repo.Repository, id repo.ID, source string) {
	t.Helper()
	target := t.TempDir()
	_, err := restorer.Restore(t.Context(), r, id, target, restorer.Options{})
	require.NoError(t, err)
	differences, err := treecmp.Compare(source, target, treecmp.Options{Owners: os.Getuid() == 0})
	require.NoError(t, err)
	require.Empty(t, differences)
}

func TestACopyHoldsTheSameAndASecondOneAddsNothing(t *testing.T) {
	source := t.TempDir()
	edgetree.Make(t, source)
	from := initRepository(t, repotest.NewMemory(), nil)
	backups(t, from, source, 3, archiver.Options{})
	to, restic := shared(t, nil)
	var last copier.Progress
	all := snapshots(t, from)
	result, err := copier.Copy(t.Context(), from, to, all, copier.Options{Progress: func(p copier.Progress) { last = p }})
	require.NoError(t, err)
	require.Len(t, result.Copied, 3)
	require.False(t, result.SameChunker)
	n := last.TotalBytes
	require.Equal(t, copier.Progress{Snapshots: 3, TotalSnapshots: 3, Bytes: n, TotalBytes: n}, last)
	require.NotZero(t, last.Bytes)
	restic.Run("check", "--read-data")
	for i, sn := range snapshots(t, to) {
		want := all[i]
		require.Equal(t, copier.Copied{From: want.ID, To: sn.ID}, result.Copied[i])
		require.Equal(t, want.ID, *sn.Original)
		require.Nil(t, sn.Parent)
		require.Equal(t, *want.Tree, *sn.Tree)
		require.Equal(t, want.Tags, sn.Tags)
		require.True(t, want.Time.Equal(sn.Time))
		require.Equal(t, want.Summary.TotalBytesProcessed, sn.Summary.TotalBytesProcessed)
	}
	restores(t, to, result.Copied[2].To, source)

	before := restic.Output("list", "packs")
	again := copyAll(t, from, to)
	require.Empty(t, again.Copied)
	require.Len(t, again.Present, 3)
	require.Zero(t, again.Stats)
	require.Equal(t, before, restic.Output("list", "packs"))

	back := copyAll(t, to, from) // they are copies of what is there
	require.Empty(t, back.Copied)
	require.Len(t, back.Present, 3)
}

func TestADryRunWritesNothing(t *testing.T) {
	from, store := initRepository(t, repotest.NewMemory(), nil), repotest.NewMemory()
	backups(t, from, t.TempDir(), 1, archiver.Options{})
	to := initRepository(t, store, nil)
	before := store.Keys("")
	result, err := copier.Copy(t.Context(), from, to, snapshots(t, from), copier.Options{DryRun: true})
	require.NoError(t, err)
	require.Len(t, result.Copied, 1)
	require.Equal(t, before, store.Keys(""))
}

func TestWithTheSameChunkerDeduplicationCarriesOn(t *testing.T) {
	source := t.TempDir()
	from := initRepository(t, repotest.NewMemory(), nil)
	o := archiver.Options{Chunker: archiver.Rabin}
	backups(t, from, source, 2, o)
	to := initRepository(t, repotest.NewMemory(), from)
	require.True(t, copyAll(t, from, to).SameChunker)
	require.NoError(t, os.WriteFile(filepath.Join(source, "copy"), edgetree.Random(0, 512<<10), 0o644))
	o.Host, o.Path, o.NoParent = "another", "/ns/claim", true
	done, err := archiver.Backup(t.Context(), to, source, o)
	require.NoError(t, err)
	require.Less(t, done.Added, uint64(10<<10), "only trees are new")
}

func TestResticRecognisesOurCopiesAndWeResticsOnes(t *testing.T) {
	source := t.TempDir()
	from, resticFrom := shared(t, nil)
	backups(t, from, source, 2, archiver.Options{})
	resticFrom.Run("backup", "--host", "cluster", source)
	file := filepath.Join(t.TempDir(), "password")
	require.NoError(t, os.WriteFile(file, []byte(password), 0o600))

	t.Run("ours first", func(t *testing.T) {
		to, restic := shared(t, from)
		require.Len(t, copyAll(t, from, to).Copied, 3)
		restic.Run("copy", "--from-repo", resticFrom.URL(), "--from-password-file", file)
		require.Len(t, snapshots(t, to), 3)
		restic.Run("check", "--read-data")
		restic.Run("restore", "latest", "--target", t.TempDir())
	})
	t.Run("restic's first", func(t *testing.T) {
		to, restic := shared(t, from)
		restic.Run("copy", "--from-repo", resticFrom.URL(), "--from-password-file", file)
		result := copyAll(t, from, to)
		require.Empty(t, result.Copied)
		require.Len(t, result.Present, 3)
		sound(t, to)
		restores(t, to, result.Present[2].To, source)
	})
}

func TestASnapshotWhoseTagsChangedIsCopiedAgain(t *testing.T) {
	from, to := initRepository(t, repotest.NewMemory(), nil), initRepository(t, repotest.NewMemory(), nil)
	backups(t, from, t.TempDir(), 1, archiver.Options{})
	copyAll(t, from, to)
	sn := snapshots(t, from)[0]
	sn.Tags = append(sn.Tags, "more")
	_, err := from.ReplaceSnapshot(t.Context(), sn.ID, &sn.Snapshot)
	require.NoError(t, err)
	result := copyAll(t, from, to)
	require.Len(t, result.Copied, 1)
	require.Zero(t, result.Stats.Packs)
	require.Len(t, snapshots(t, to), 2)
}

func TestWhatIsDamagedIsNotCopied(t *testing.T) {
	store := repotest.NewMemory()
	from, to := initRepository(t, store, nil), initRepository(t, repotest.NewMemory(), nil)
	backups(t, from, t.TempDir(), 2, archiver.Options{})
	all := snapshots(t, from)
	require.NoError(t, from.LoadIndex(t.Context()))
	for _, what := range []repo.BlobType{repo.DataBlob, repo.TreeBlob} {
		var key string
		for id, blobs := range from.IndexPacks() {
			if blobs[0].Type == what {
				key = repo.PackFile.Key(id)
			}
		}
		whole := store.Bytes(key)
		pack := store.Bytes(key)
		pack[40] ^= 1
		store.Set(key, pack)
		// One that was opened just now: the other one may have the bytes from when they were whole.
		fresh, err := repo.Open(t.Context(), store, password, nil)
		require.NoError(t, err)
		_, err = copier.Copy(t.Context(), fresh, to, all, copier.Options{})
		require.ErrorIs(t, err, repo.ErrDamaged, what)
		require.ErrorContains(t, err, key)
		require.Less(t, len(snapshots(t, to)), 2)
		store.Set(key, whole)
	}
	copyAll(t, from, to)
	sound(t, to)
}

func TestACopyDoesNotRelyOnAPackThatTheDestinationLost(t *testing.T) {
	store := repotest.NewMemory()
	from, to := initRepository(t, repotest.NewMemory(), nil), initRepository(t, store, nil)
	backups(t, from, t.TempDir(), 1, archiver.Options{})
	copied := copyAll(t, from, to)
	require.NoError(t, to.RemoveSnapshots(t.Context(), copied.Copied[0].To))
	lost := store.Keys("data/")[0]
	store.Remove(lost)
	_, err := copier.Copy(t.Context(), from, to, snapshots(t, from), copier.Options{})
	require.ErrorIs(t, err, repo.ErrDamaged)
	require.ErrorContains(t, err, lost)
	plan, err := maintain.PlanIndexRepair(t.Context(), to, maintain.RepairOptions{DropMissing: true})
	require.NoError(t, err)
	require.NoError(t, plan.Execute(t.Context()))
	copyAll(t, from, to)
	sound(t, to)
}

func TestARepositoryIsNotCopiedToItselfNorToAnOldOne(t *testing.T) {
	store := repotest.NewMemory()
	r := initRepository(t, store, nil)
	_, err := copier.Copy(t.Context(), r, reopen(t, store), nil, copier.Options{})
	require.ErrorIs(t, err, copier.ErrSameRepository)

	dir := t.TempDir()
	repotest.NewRestic(t, dir, password).Run("init", "--repository-version", "1")
	old, err := repotest.NewDir(dir)
	require.NoError(t, err)
	_, err = copier.Copy(t.Context(), r, reopen(t, old), nil, copier.Options{})
	require.ErrorIs(t, err, repo.ErrVersion)
}

func TestAnOldRepositoryIsCopiedIntoANewOne(t *testing.T) {
	dir, source := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(source, "f"), edgetree.Random(1, 3<<20), 0o640))
	require.NoError(t, os.Mkdir(filepath.Join(source, "d"), 0o750))
	restic := repotest.NewRestic(t, dir, password)
	restic.Run("init", "--repository-version", "1")
	restic.Run("backup", source)
	store, err := repotest.NewDir(dir)
	require.NoError(t, err)
	to, resticTo := shared(t, nil)
	result := copyAll(t, reopen(t, store), to)
	require.Len(t, result.Copied, 1)
	resticTo.Run("check", "--read-data")
	restores(t, to, result.Copied[0].To, source)
}

var errKilled = fmt.Errorf("killed: %w", blobstore.ErrUnavailable)

// A copy that ends anywhere leaves a repository that is sound, and the next one goes on from the last index.
func TestACopyThatIsKilledGoesOn(t *testing.T) {
	source := t.TempDir()
	from := initRepository(t, repotest.NewMemory(), nil)
	backups(t, from, source, 3, archiver.Options{})
	all := snapshots(t, from)
	copyUntil := func(store *repotest.Memory, ops int64) error {
		to := reopen(t, store)
		var count atomic.Int64
		store.After = func(op, _ string) error {
			if count.Add(1) >= ops {
				return errKilled
			}
			return nil
		}
		_, err := copier.Copy(t.Context(), from, to, all, copier.Options{})
		store.After = nil
		return err
	}
	for ops := int64(1); ; ops++ {
		store := repotest.NewMemory()
		initRepository(t, store, nil)
		err := copyUntil(store, ops)
		if err == nil {
			if ops < 8 {
				t.Errorf("a copy takes only %d operations", ops)
			}
			break
		}
		require.ErrorIs(t, err, errKilled)
		sound(t, reopen(t, store))
		indexed := len(store.Keys("index/")) > 0
		result := copyAll(t, from, reopen(t, store))
		require.Len(t, result.Copied, 3-len(result.Present))
		if indexed {
			require.Zero(t, result.Stats.Packs, "what was indexed is stored again")
		}
		to := reopen(t, store)
		sound(t, to)
		require.Len(t, snapshots(t, to), 3)
		restores(t, to, snapshots(t, to)[2].ID, source)
	}
}

func TestACopyEndsWithItsContext(t *testing.T) {
	from, to := initRepository(t, repotest.NewMemory(), nil), initRepository(t, repotest.NewMemory(), nil)
	backups(t, from, t.TempDir(), 1, archiver.Options{})
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("the lock was lost")
	o := copier.Options{Progress: func(copier.Progress) { cancel(why) }}
	_, err := copier.Copy(ctx, from, to, snapshots(t, from), o)
	require.Error(t, err)
	require.True(t, errors.Is(err, why) || errors.Is(err, context.Canceled), "%v", err)
	require.Empty(t, snapshots(t, to))
	require.False(t, strings.Contains(err.Error(), password))
}
