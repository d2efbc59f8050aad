package restorer_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/pvcbackup/backup/internal/edgetree"
	"example.com/pvcbackup/backup/restorer"
	"example.com/pvcbackup/backup/restorer/treecmp"
)

func TestARestoreFetchesPacksInLongStretches(t *testing.T) {
	r, store := memoryRepository(t)
	source := t.TempDir()
	for i := range 3000 {
		name := filepath.Join(source, fmt.Sprint(i/100), fmt.Sprint(i))
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		require.NoError(t, os.WriteFile(name, edgetree.Random(int64(i), 8<<10), 0o644))
	}
	id := backup(t, r, source).SnapshotID
	packs := len(store.Keys("data/"))
	var gets, others atomic.Int64
	store.Before = func(op, key string) error {
		if op == "get" && strings.HasPrefix(key, "data/") {
			gets.Add(1)
		} else {
			others.Add(1)
		}
		return nil
	}
	target := t.TempDir()
	restore(t, r, id, target, restorer.Options{})
	store.Before = nil
	requireEqual(t, source, target, treecmp.Options{})
	// 24 MB in batches of 4, 8 and 16 MiB, each in two packs or three; and the trees, which lie together.
	require.LessOrEqual(t, gets.Load(), int64(3*3+packs))
	require.EqualValues(t, 3, others.Load(), "the snapshot, the list of index files, and the one that there is")
}
