package archiver

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"example.com/pvcbackup/backup/internal/edgetree"
	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/backup/repo/repotest"
)

// traffic counts what is asked of a store.
type traffic struct {
	mu       sync.Mutex
	requests map[string]int // by operation and folder
	written  int            // bytes
}

// watch counts from now on.
func watch(store *repotest.Memory) *traffic {
	c := &traffic{requests: map[string]int{}}
	store.After = func(op, key string) error {
		folder, _, _ := strings.Cut(key, "/")
		c.mu.Lock()
		defer c.mu.Unlock()
		c.requests[op+" "+folder]++
		if op == "put" {
			c.written += len(store.Bytes(key))
		}
		return nil
	}
	return c
}

// whole is a run as a program makes it: open, lock, back up, unlock.
func whole(t *testing.T, store *repotest.Memory, source string, o Options) (*Result, *traffic) {
	t.Helper()
	counted := watch(store)
	defer func() { store.After = nil }()
	r, err := repo.Open(t.Context(), store, password, nil)
	require.NoError(t, err)
	lock, err := r.Lock(t.Context(), repo.LockOptions{Host: "test", Early: true})
	require.NoError(t, err)
	result, err := Backup(lock.Context(), r, source, o)
	require.NoError(t, err)
	require.NoError(t, lock.Unlock(t.Context()))
	return result, counted
}

// thousandFiles makes files of 1 to 8 KiB in four folders, and one of 40 MiB, that do not compress.
func thousandFiles(t *testing.T) string {
	t.Helper()
	source := t.TempDir()
	for i := range 1000 {
		name := filepath.Join(source, fmt.Sprint(i%4), fmt.Sprint(i))
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		require.NoError(t, os.WriteFile(name, edgetree.Random(int64(i), 1024+i*7), 0o644))
	}
	require.NoError(t, os.WriteFile(filepath.Join(source, "large"), edgetree.Random(-1, 40<<20), 0o644))
	return source
}

func TestARunAsksNoMoreOfTheStoreThanItNeeds(t *testing.T) {
	source := thousandFiles(t)
	_, store := initRepository(t)
	common := map[string]int{
		"get config": 1, "list keys": 1, "get keys": 1, // open
		"list locks": 2, "put locks": 1, "get locks": 1, "delete locks": 1, // look, write, look again; unlock
		"list snapshots": 1, "list index": 1, // parent, and what is there already
		"put snapshots": 1, "get snapshots": 1, // commit, and read it back
	}
	with := func(more map[string]int) map[string]int {
		sum := maps.Clone(common)
		for k, n := range more {
			sum[k] += n
		}
		return sum
	}

	// 45 MB are three packs of 16 MiB; trees are one more. What was written is looked for, and of every pack a header and
	// a blob are read back; the trees with one request.
	_, first := whole(t, store, source, options(0))
	if diff := cmp.Diff(with(map[string]int{
		"put data": 4, "put index": 1, "stat data": 4, "stat index": 1, "get index": 1, "get data": first.requests["get data"],
	}), first.requests); diff != "" {
		t.Errorf("first backup: -want +got:\n%s", diff)
	}
	require.LessOrEqual(t, first.requests["get data"], 4*3+1+8)

	result, again := whole(t, store, source, options(1))
	require.Zero(t, result.Added)
	if diff := cmp.Diff(with(map[string]int{
		"get snapshots": 1, "get index": 1, "get data": again.requests["get data"],
	}), again.requests); diff != "" {
		t.Errorf("again: -want +got:\n%s", diff)
	}
	require.LessOrEqual(t, again.requests["get data"], 4+8, "the trees of the parent, together, and a sample")
}

// oneRequest is a store in memory that takes objects of any size in one request, as S3 does.
type oneRequest struct{ *repotest.Memory }

func (oneRequest) MaxSingle() int64 { return 5 << 30 }

func TestARunWritesNoMoreObjectsThanRestic(t *testing.T) {
	source := thousandFiles(t)
	require.NoError(t, os.WriteFile(filepath.Join(source, "larger"), edgetree.Random(-2, 64<<20), 0o644))
	_, store := initRepository(t)
	first := watch(store)
	r, err := repo.Open(t.Context(), oneRequest{store}, password, nil)
	require.NoError(t, err)
	lock, err := r.Lock(t.Context(), repo.LockOptions{Host: "test"})
	require.NoError(t, err)
	run(t, r, source, options(0))
	require.NoError(t, lock.Unlock(t.Context()))

	folder := t.TempDir()
	restic := repotest.NewRestic(t, folder, password)
	restic.Run("init")
	restic.Run("backup", source)
	theirs := 1 // the lock
	for _, name := range []string{"data", "index", "snapshots"} {
		require.NoError(t, filepath.WalkDir(filepath.Join(folder, name), func(_ string, d os.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				theirs++
			}
			return err
		}))
	}
	ours := 0
	for kind, n := range first.requests {
		if strings.HasPrefix(kind, "put ") {
			ours += n
		}
	}
	t.Logf("%d objects, restic has %d", ours, theirs)
	require.LessOrEqual(t, ours, theirs)
}

func TestARunAddsNoMoreBytesThanChanged(t *testing.T) {
	source := thousandFiles(t)
	_, store := initRepository(t)
	whole(t, store, source, options(0))

	_, again := whole(t, store, source, options(1))
	require.Less(t, again.written, 2<<10, "a lock and a snapshot")

	changed := 0
	for i := range 10 {
		n := i*100 + i%4
		name := filepath.Join(source, fmt.Sprint(n%4), fmt.Sprint(n))
		data, err := os.ReadFile(name)
		require.NoError(t, err)
		data[rand.IntN(len(data))] ^= 1
		require.NoError(t, os.WriteFile(name, data, 0o644))
		changed += len(data)
	}
	result, one := whole(t, store, source, options(2))
	require.EqualValues(t, 10, result.Files.Changed)
	// The trees of four folders, with 1,000 entries of about 60 bytes that do not compress, and of two above.
	require.Less(t, one.written, changed+1000*80+8<<10)
}
