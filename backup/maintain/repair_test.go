package maintain

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"example.com/pvcbackup/backup/archiver"
	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/backup/repo/repotest"
	"example.com/pvcbackup/backup/restorer"
	"example.com/pvcbackup/backup/restorer/treecmp"
	"example.com/pvcbackup/blobstore"
)

func repairIndex(t testing.TB, r *repo.Repository, o RepairOptions) *IndexRepair {
	t.Helper()
	plan, err := PlanIndexRepair(t.Context(), r, o)
	require.NoError(t, err)
	require.NoError(t, plan.Execute(t.Context()))
	return plan
}

// indexEntries is everything that the index files say, each time that one says it.
func indexEntries(t testing.TB, s repo.Store) (entries []string) {
	t.Helper()
	r := reopen(t, s)
	for file, err := range r.ListFiles(t.Context(), repo.IndexFile) {
		require.NoError(t, err)
		packs, err := r.LoadIndexFile(t.Context(), file.ID)
		require.NoError(t, err)
		for _, pack := range packs {
			for _, b := range pack.Blobs {
				entries = append(entries, fmt.Sprint(pack.ID, b.Type, b.ID, b.Offset, b.Length, b.PlainLength))
			}
		}
	}
	slices.Sort(entries)
	return entries
}

func TestRepairOfAnIndexThatIsRightChangesNoEntry(t *testing.T) {
	for seed := range uint64(4) {
		s, m := newShop(), newModel()
		r := initRepository(t, s)
		m.fill(t, r, rand.New(rand.NewPCG(seed, 1)), 8)
		before := indexEntries(t, s)
		plan := repairIndex(t, r, RepairOptions{})
		require.Empty(t, slices.Concat(plan.Added, plan.Changed, plan.Missing, plan.Repeated, plan.Damaged))
		if diff := cmp.Diff(before, indexEntries(t, s)); diff != "" {
			t.Errorf("-before +after:\n%s", diff)
		}
		require.Equal(t, len(before), plan.Blobs)
		require.Len(t, s.Keys("index/"), 1)
		require.Empty(t, m.verify(t, s).Notes)
	}
}

func TestRepairMakesAnIndexWhateverHappenedToTheOldOne(t *testing.T) {
	s, m := newShop(), newModel()
	r := initRepository(t, s)
	m.fill(t, r, rand.New(rand.NewPCG(5, 1)), 6)
	want := indexEntries(t, s)
	load := func(t *testing.T, s *shop) (*repo.Repository, []repo.IndexedPack) {
		r := reopen(t, s)
		require.NoError(t, r.LoadIndex(t.Context()))
		var packs []repo.IndexedPack
		for id, blobs := range r.IndexPacks() {
			packs = append(packs, repo.IndexedPack{ID: id, Blobs: blobs})
		}
		return r, packs
	}
	save := func(t *testing.T, r *repo.Repository, packs ...repo.IndexedPack) {
		_, err := r.SaveIndex(t.Context(), slices.Values(packs))
		require.NoError(t, err)
	}
	dropAll := func(s *shop) {
		for _, key := range s.Keys("index/") {
			s.Remove(key)
		}
	}
	for name, tc := range map[string]struct {
		harm  func(*testing.T, *shop)
		found func(*IndexRepair) int
	}{
		"all files are gone": {func(_ *testing.T, s *shop) { dropAll(s) }, func(p *IndexRepair) int { return len(p.Added) }},
		"one file is damaged": {func(_ *testing.T, s *shop) {
			data := s.Bytes(s.Keys("index/")[1])
			data[len(data)/2] ^= 1
			s.Set(s.Keys("index/")[1], data)
		}, func(p *IndexRepair) int { return len(p.Damaged) }},
		"one file is empty": {
			func(_ *testing.T, s *shop) { s.Set(s.Keys("index/")[2], nil) },
			func(p *IndexRepair) int { return len(p.Damaged) },
		},
		"a superseded file was left": {func(t *testing.T, s *shop) {
			r, packs := load(t, s)
			save(t, r, packs[:2]...)
		}, func(p *IndexRepair) int { return len(p.Repeated) }},
		"a pack is split over two files": {func(t *testing.T, s *shop) {
			r, packs := load(t, s)
			dropAll(s)
			i := slices.IndexFunc(packs, func(p repo.IndexedPack) bool { return len(p.Blobs) > 1 })
			save(t, r, repo.IndexedPack{ID: packs[i].ID, Blobs: packs[i].Blobs[:1]})
			packs[i].Blobs = packs[i].Blobs[1:]
			save(t, r, packs...)
		}, func(p *IndexRepair) int { return len(p.Changed) }},
		"an entry is wrong": {func(t *testing.T, s *shop) {
			r, packs := load(t, s)
			dropAll(s)
			packs[0].Blobs = slices.Clone(packs[0].Blobs)
			packs[0].Blobs[0].ID[5] ^= 1
			save(t, r, packs...)
		}, func(p *IndexRepair) int { return len(p.Changed) }},
	} {
		t.Run(name, func(t *testing.T) {
			s := s.clone()
			tc.harm(t, s)
			plan := repairIndex(t, reopen(t, s), RepairOptions{})
			require.NotZero(t, tc.found(plan), "%+v", plan)
			if diff := cmp.Diff(want, indexEntries(t, s)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			require.Empty(t, m.verify(t, s).Notes)
		})
	}
}

func TestRepairReadsAHeaderAgainWhenTheStoreIsFlaky(t *testing.T) {
	s, m := newShop(), newModel()
	r := initRepository(t, s)
	m.fill(t, r, rand.New(rand.NewPCG(6, 1)), 4)
	want := indexEntries(t, s)
	var mu sync.Mutex
	tried := map[string]int{}
	flaky := func(key string) bool {
		mu.Lock()
		defer mu.Unlock()
		tried[key]++
		return strings.HasPrefix(key, "data/") && tried[key] == 1
	}
	for name, hook := range map[string]func(*shop){
		"error": func(s *shop) {
			s.Before = func(op, key string) error {
				if op == "get" && flaky(key) {
					return blobstore.ErrUnavailable
				}
				return nil
			}
		},
		"wrong bytes": func(s *shop) {
			s.Change = func(key string, _ int64, data []byte) []byte {
				if flaky(key) {
					clear(data)
				}
				return data
			}
		},
		"short": func(s *shop) {
			s.Change = func(key string, _ int64, data []byte) []byte {
				if flaky(key) {
					return data[:len(data)-1]
				}
				return data
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			clear(tried)
			s := s.clone()
			hook(s)
			repairIndex(t, reopen(t, s), RepairOptions{})
			s.Before, s.Change = nil, nil
			if diff := cmp.Diff(want, indexEntries(t, s)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestRepairNeverPassesOverAPackInSilence(t *testing.T) {
	s, m := newShop(), newModel()
	r := initRepository(t, s)
	m.fill(t, r, rand.New(rand.NewPCG(7, 1)), 5)
	before := indexEntries(t, s)
	key := dataPack(t, s)
	data := s.Bytes(key)
	data[len(data)-6] ^= 1
	s.Set(key, data)

	_, err := PlanIndexRepair(t.Context(), r, RepairOptions{})
	require.ErrorIs(t, err, ErrPacksUnreadable)
	var refused *PacksError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, key, repo.PackFile.Key(refused.Packs[0]))
	require.ErrorContains(t, err, refused.Packs[0].String())
	require.Zero(t, s.Count("delete"))

	t.Run("what an index says about it stays when asked to go on", func(t *testing.T) {
		s := s.clone()
		plan := repairIndex(t, reopen(t, s), RepairOptions{SkipUnreadable: true})
		require.Len(t, plan.Unreadable, 1)
		require.True(t, plan.Unreadable[0].Kept)
		require.Equal(t, before, indexEntries(t, s))
	})
	t.Run("without an index it is left out and reported", func(t *testing.T) {
		s := s.clone()
		for _, index := range s.Keys("index/") {
			s.Remove(index)
		}
		plan := repairIndex(t, reopen(t, s), RepairOptions{SkipUnreadable: true})
		require.Len(t, plan.Unreadable, 1)
		require.False(t, plan.Unreadable[0].Kept)
		require.Less(t, len(indexEntries(t, s)), len(before))
		require.NotNil(t, s.Bytes(key), "the pack remains")
	})
	t.Run("a store that does not answer is never taken for damage", func(t *testing.T) {
		s := s.clone()
		s.Before = func(op, k string) error {
			if op == "get" && k == key {
				return blobstore.ErrUnavailable
			}
			return nil
		}
		_, err := PlanIndexRepair(t.Context(), reopen(t, s), RepairOptions{SkipUnreadable: true})
		require.ErrorIs(t, err, blobstore.ErrUnavailable)
	})
}

func TestRepairDoesNotTrustAShortListing(t *testing.T) {
	s, m := newShop(), newModel()
	r := initRepository(t, s)
	m.fill(t, r, rand.New(rand.NewPCG(8, 1)), 5)
	before := indexEntries(t, s)
	hidden := dataPack(t, s)
	s.hide = func(key string) bool { return key == hidden }
	repairIndex(t, r, RepairOptions{DropMissing: true})
	require.Equal(t, before, indexEntries(t, s))

	lists := 0
	s.hide = func(key string) bool {
		if key == hidden {
			lists++
		}
		return key == hidden && lists == 1
	}
	_, err := PlanIndexRepair(t.Context(), r, RepairOptions{})
	require.ErrorIs(t, err, ErrDoubt)
}

// A store confirmed a pack and lost it. The index believes in it, and so does every backup, until it is repaired.
func TestRepairIsTheWayOutOfAnIndexThatListsALostPack(t *testing.T) {
	source, dir := t.TempDir(), t.TempDir()
	store, err := repotest.NewDir(dir)
	require.NoError(t, err)
	r := initRepository(t, store)
	rnd := rand.NewChaCha8([32]byte{1})
	for i := range 3 {
		data := make([]byte, 2<<20)
		_, _ = rnd.Read(data)
		require.NoError(t, os.WriteFile(filepath.Join(source, fmt.Sprint(i)), data, 0o644))
	}
	back := func(r *repo.Repository) (*archiver.Result, error) {
		return archiver.Backup(t.Context(), r, source, archiver.Options{Host: "cluster", Path: "/ns/a"})
	}
	first, err := back(r)
	require.NoError(t, err)
	require.NoError(t, r.LoadIndex(t.Context()))
	for id, blobs := range r.IndexPacks() {
		if blobs[0].Type == repo.DataBlob {
			require.NoError(t, os.Remove(filepath.Join(dir, repo.PackFile.Key(id))))
		}
	}
	_, err = PlanIndexRepair(t.Context(), r, RepairOptions{})
	require.ErrorIs(t, err, ErrPacksMissing)
	require.ErrorContains(t, err, "--drop-missing-packs")

	plan := repairIndex(t, r, RepairOptions{DropMissing: true})
	require.Len(t, plan.Missing, 1)
	report, err := Check(t.Context(), reopen(t, store), CheckOptions{})
	require.NoError(t, err)
	require.ErrorContains(t, report.Err(), "no index lists its blob")
	require.NoError(t, r.RemoveSnapshots(t.Context(), first.SnapshotID))
	again, err := back(reopen(t, store))
	require.NoError(t, err)
	require.GreaterOrEqual(t, again.Added, uint64(6<<20), "not all of what was lost is stored again")
	repotest.NewRestic(t, dir, password).Run("check", "--read-data")
	target := t.TempDir()
	_, err = restorer.Restore(t.Context(), reopen(t, store), again.SnapshotID, target, restorer.Options{})
	require.NoError(t, err)
	differences, err := treecmp.Compare(source, target, treecmp.Options{})
	require.NoError(t, err)
	require.Empty(t, differences)
}

func TestACrashAtAnyOperationOfARepairLosesNothing(t *testing.T) {
	s, m := newShop(), newModel()
	r := initRepository(t, s)
	m.fill(t, r, rand.New(rand.NewPCG(9, 1)), 4)
	run := func(s *shop) error {
		r, err := repo.Open(t.Context(), s, password, nil)
		if err != nil {
			return err
		}
		plan, err := PlanIndexRepair(t.Context(), r, RepairOptions{})
		if err != nil {
			return err
		}
		return plan.Execute(t.Context())
	}
	crashEverywhere(t, s, run, func(t *testing.T, s *shop) { m.verify(t, s) })
}

func TestWeRepairTheIndexOfWhatResticWrote(t *testing.T) {
	dir, source := t.TempDir(), t.TempDir()
	restic := repotest.NewRestic(t, dir, password)
	restic.Run("init")
	for i := range 3 {
		text := strings.Repeat(fmt.Sprint(i), 300_000)
		require.NoError(t, os.WriteFile(filepath.Join(source, fmt.Sprint(i)), []byte(text), 0o644))
		restic.Run("backup", source)
	}
	store, err := repotest.NewDir(dir)
	require.NoError(t, err)
	want := indexEntries(t, store)
	repairIndex(t, reopen(t, store), RepairOptions{})
	require.Equal(t, want, indexEntries(t, store))
	indexes, err := filepath.Glob(filepath.Join(dir, "index", "*"))
	require.NoError(t, err)
	require.Len(t, indexes, 1)
	require.NoError(t, os.Remove(indexes[0]))
	repairIndex(t, reopen(t, store), RepairOptions{})
	require.Equal(t, want, indexEntries(t, store))
	restic.Run("check", "--read-data")
	restic.Run("restore", "latest", "--target", t.TempDir())
}

func TestResticRepairsTheIndexOfWhatWeWrote(t *testing.T) {
	r, restic := backups(t, 3)
	dir := restic.URL()
	store, err := repotest.NewDir(dir)
	require.NoError(t, err)
	want := indexEntries(t, store)
	indexes, err := filepath.Glob(filepath.Join(dir, "index", "*"))
	require.NoError(t, err)
	require.NoError(t, os.Remove(indexes[0]))
	restic.Run("repair", "index")
	require.Equal(t, want, indexEntries(t, store))
	report, err := Check(t.Context(), r, CheckOptions{ReadData: true})
	require.NoError(t, err)
	require.NoError(t, report.Err())
}
