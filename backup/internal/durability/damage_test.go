package durability

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"example.com/pvcbackup/backup/archiver"
	"example.com/pvcbackup/backup/internal/edgetree"
	"example.com/pvcbackup/backup/maintain"
	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/backup/repo/repotest"
	"example.com/pvcbackup/backup/restorer"
)

// envPositions says at how many places each object is damaged.
const envPositions = "DURABILITY_POSITIONS"

// treasure is a repository in memory, and what its snapshots hold.
type treasure struct {
	store     *repotest.Memory
	snapshots map[repo.ID]map[string]string
}

// newTreasure has two snapshots of different folders, several packs, two index files, and a run.
func newTreasure(t testing.TB) *treasure {
	t.Helper()
	tr := &treasure{store: repotest.NewMemory(), snapshots: map[repo.ID]map[string]string{}}
	_, err := repo.Init(t.Context(), tr.store, password, &repo.InitOptions{KeyOptions: repo.KeyOptions{Scrypt: repo.ScryptParams(repotest.Cheap)}})
	require.NoError(t, err)
	for i := range int64(2) {
		source := t.TempDir()
		fillFolder(t, source, 100*i, 300<<10)
		id := tr.backup(t, tr.store, source, fmt.Sprint("/ns/", i), fmt.Sprint("run-", i))
		tr.snapshots[id] = contents(t, source)
	}
	return tr
}

// fillFolder writes files of about a size, one of them with two names, and some small ones.
func fillFolder(t testing.TB, dir string, seed int64, size int) {
	t.Helper()
	for i := range int64(3) {
		sub := filepath.Join(dir, fmt.Sprint("dir", i))
		require.NoError(t, os.MkdirAll(sub, 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(sub, "large"), edgetree.Random(seed+i, size), 0o644))
		require.NoError(t, os.WriteFile(filepath.Join(sub, "small"), edgetree.Random(seed+i+10, 1000), 0o644))
		require.NoError(t, os.Link(filepath.Join(sub, "large"), filepath.Join(sub, "linked")))
	}
}

func (tr *treasure) backup(t testing.TB, s repo.Store, source, path, run string) repo.ID {
	t.Helper()
	r, err := repo.Open(t.Context(), s, password, nil)
	require.NoError(t, err)
	done, err := archiver.Backup(t.Context(), r, source, archiver.Options{Host: "cluster", Path: path, RunName: run})
	require.NoError(t, err)
	return done.SnapshotID
}

// check returns what an examination of everything finds wrong.
func check(t testing.TB, s repo.Store) error {
	r, err := repo.Open(t.Context(), s, password, nil)
	if err != nil {
		return err
	}
	report, err := maintain.Check(t.Context(), r, maintain.CheckOptions{ReadData: true})
	if err != nil {
		return err
	}
	return report.Err()
}

// restores restores a snapshot, and requires that only what the error names is missing.
func restores(t testing.TB, s repo.Store, id repo.ID, want map[string]string) error {
	t.Helper()
	r, err := repo.Open(t.Context(), s, password, nil)
	if err != nil {
		return err
	}
	target := t.TempDir()
	_, err = restorer.Restore(t.Context(), r, id, target, restorer.Options{})
	got := contents(t, target)
	require.NoError(t, os.RemoveAll(target))
	var lost *restorer.DamageError
	switch {
	case err == nil:
	case errors.As(err, &lost):
		want = maps.Clone(want)
		maps.DeleteFunc(want, func(path, _ string) bool {
			return slices.ContainsFunc(lost.First, func(l string) bool { return l == "." || path == "/"+l || strings.HasPrefix(path, "/"+l+"/") })
		})
		require.Less(t, lost.Count, 20)
	default:
		return err
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("restore (%v): -want +got:\n%s", err, diff)
	}
	return err
}

func TestDamageOfAnyByteOfAnyObjectIsFoundAndNamedAndTheRestRestores(t *testing.T) {
	tr := newTreasure(t)
	require.NoError(t, check(t, tr.store))
	rnd := rand.New(rand.NewPCG(1, 2))
	positions, cases := number(t, envPositions, 2), map[string]int{}
	for _, key := range tr.store.Keys("") {
		whole := tr.store.Bytes(key)
		kind, _, _ := strings.Cut(key, "/")
		harmed := map[string][]byte{"removed": nil}
		for _, n := range []int{0, len(whole) / 2, len(whole) - 1} {
			harmed[fmt.Sprint("truncated to ", n)] = whole[:n]
		}
		places := []int{0, len(whole) / 2, len(whole) - 1}
		for range positions {
			places = append(places, rnd.IntN(len(whole)))
		}
		for _, place := range places {
			data := slices.Clone(whole)
			data[place] ^= byte(1 << rnd.IntN(8))
			harmed[fmt.Sprint("flipped at ", place)] = data
		}
		for how, data := range harmed {
			if how == "removed" && kind != "data" {
				continue // a snapshot, key or index that is not there is none
			}
			cases[kind]++
			tr.store.Set(key, data)
			if data == nil {
				tr.store.Remove(key)
			}
			tr.judge(t, fmt.Sprintf("%s %s", key, how), key)
		}
		tr.store.Set(key, whole)
	}
	t.Logf("cases: %v", cases)
}

func TestObjectsThatAreSwappedAreFoundAndNamed(t *testing.T) {
	tr := newTreasure(t)
	keys := tr.store.Keys("")
	for i, a := range keys {
		for _, b := range keys[:i] {
			first, second := tr.store.Bytes(a), tr.store.Bytes(b)
			if slices.Equal(first, second) || strings.HasPrefix(a, "runs/") && strings.HasPrefix(b, "runs/") {
				continue // a run and its snapshot; runs do not say which one they are, and no data depends on them
			}
			tr.store.Set(a, second)
			tr.store.Set(b, first)
			tr.judge(t, a+" and "+b+" swapped", a, b)
			tr.store.Set(a, first)
			tr.store.Set(b, second)
		}
	}
}

// judge requires that a check names one of the objects that were damaged, and that a restore brings what it can.
func (tr *treasure) judge(t *testing.T, what string, keys ...string) {
	t.Helper()
	err := check(t, tr.store)
	if err == nil {
		t.Errorf("%s: a check finds nothing wrong", what)
		return
	}
	if !slices.ContainsFunc(keys, func(key string) bool { return names(err, key) }) {
		t.Errorf("%s: a check names something else: %v", what, err)
	}
	packs := true
	for _, key := range keys {
		packs = packs && strings.HasPrefix(key, "data/")
	}
	for id, want := range tr.snapshots {
		err := restores(t, tr.store, id, want)
		if err == nil {
			continue
		}
		if !slices.ContainsFunc(keys, func(key string) bool { return names(err, key) }) {
			t.Errorf("%s: a restore names something else: %v", what, err)
		}
		var lost *restorer.DamageError
		if packs && !errors.As(err, &lost) && !strings.Contains(err.Error(), "tree") {
			t.Errorf("%s: the restore stopped: %v", what, err)
		}
		if lost != nil && strings.Contains(what, "flipped") && strings.Contains(err.Error(), "data blob") && lost.Count > 2 {
			t.Errorf("%s: more than one file is lost: %v", what, err)
		}
	}
}

// names reports whether an error says which object is meant.
func names(err error, key string) bool {
	name := key[strings.LastIndex(key, "/")+1:]
	return strings.Contains(err.Error(), name[:min(len(name), 8)])
}
