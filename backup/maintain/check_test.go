package maintain

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/backup/repo/id"
	"example.com/pvcbackup/backup/repo/tree"
	"example.com/pvcbackup/blobstore"
)

func TestCheckFindsWhatIsWrong(t *testing.T) {
	s, m := newShop(), newModel()
	r := initRepository(t, s)
	m.fill(t, r, rand.New(rand.NewPCG(2, 2)), 5)
	change := func(s *shop, key string, at func(data []byte) int) {
		data := s.Bytes(key)
		data[at(data)] ^= 1
		s.Set(key, data)
	}
	first := func([]byte) int { return 0 }
	last := func(data []byte) int { return len(data) - 6 }
	saveFile := func(t *testing.T, s *shop, node tree.Node) {
		r := reopen(t, s)
		require.NoError(t, r.LoadIndex(t.Context()))
		w := r.NewWriter(t.Context(), nil)
		defer w.Abort()
		var b tree.Builder
		require.NoError(t, b.Add(&node))
		root, _, err := w.SaveBlob(t.Context(), repo.TreeBlob, b.Bytes())
		require.NoError(t, err)
		require.NoError(t, w.Flush(t.Context()))
		_, err = r.SaveSnapshot(t.Context(), &repo.Snapshot{Time: start, Tree: &root, Paths: []string{"/x"}})
		require.NoError(t, err)
	}
	for name, tc := range map[string]struct {
		harm     func(*testing.T, *shop)
		problem  string // of a check without reading; empty: none
		readData string // of a check that reads everything
	}{
		"nothing":                  {func(*testing.T, *shop) {}, "", ""},
		"a pack is gone":           {func(t *testing.T, s *shop) { s.Remove(s.Keys("data/")[0]) }, "the store does not have it", "the store does not have it"},
		"a pack is longer":         {func(t *testing.T, s *shop) { k := s.Keys("data/")[0]; s.Set(k, append(s.Bytes(k), 0)) }, "the index says", "the index says"},
		"a bit of a pack's data":   {func(t *testing.T, s *shop) { change(s, dataPack(t, s), first) }, "", "hash"},
		"a bit of a pack's header": {func(t *testing.T, s *shop) { change(s, dataPack(t, s), last) }, "", "hash"},
		"an index file":            {func(t *testing.T, s *shop) { change(s, s.Keys("index/")[0], first) }, "index ", "index "},
		"a snapshot":               {func(t *testing.T, s *shop) { change(s, s.Keys("snapshots/")[0], first) }, "snapshots", "snapshots"},
		"a file's size": {func(t *testing.T, s *shop) {
			saveFile(t, s, tree.Node{Name: "f", Type: tree.File, ModTime: start, Size: 7, Content: []id.ID{}})
		}, "the file 7", "the file 7"},
		"a file's blob is unlisted": {func(t *testing.T, s *shop) {
			saveFile(t, s, tree.Node{Name: "f", Type: tree.File, ModTime: start, Size: 7, Content: []id.ID{{1}}})
		}, "no index lists its blob", "no index lists its blob"},
		"a subtree is unlisted": {func(t *testing.T, s *shop) {
			saveFile(t, s, tree.Node{Name: "sub", Type: tree.Dir, ModTime: start, Subtree: id.ID{1}})
		}, `"/sub" in snapshot`, `"/sub" in snapshot`},
	} {
		t.Run(name, func(t *testing.T) {
			s := s.clone()
			tc.harm(t, s)
			for want, o := range map[string]CheckOptions{tc.problem: {}, tc.readData: {ReadData: true}} {
				if want == tc.problem && tc.problem != tc.readData && o.ReadData {
					continue
				}
				report, err := Check(t.Context(), reopen(t, s), o)
				require.NoError(t, err)
				if want == "" {
					require.NoError(t, report.Err())
				} else {
					require.ErrorContains(t, report.Err(), want)
				}
			}
		})
	}
}

// dataPack returns the key of a pack without trees.
func dataPack(t *testing.T, s *shop) string {
	r := reopen(t, s)
	require.NoError(t, r.LoadIndex(t.Context()))
	for name, blobs := range r.IndexPacks() {
		if blobs[0].Type == repo.DataBlob {
			return repo.PackFile.Key(name)
		}
	}
	t.Fatal("there is no pack of data")
	return ""
}

func TestCheckReadsTheShareThatWasAskedFor(t *testing.T) {
	s, m := newShop(), newModel()
	r := initRepository(t, s)
	m.fill(t, r, rand.New(rand.NewPCG(2, 2)), 8)
	for fraction, want := range map[float64]func(read, all int) bool{
		0:   func(read, _ int) bool { return read == 0 },
		0.5: func(read, all int) bool { return read <= all },
		1:   func(read, all int) bool { return read == all },
	} {
		var last, total int
		report, err := Check(t.Context(), r, CheckOptions{ReadFraction: fraction, Progress: func(done, all int) { last, total = done, all }})
		require.NoError(t, err)
		require.NoError(t, report.Err())
		require.Equal(t, report.PacksRead, last)
		require.Equal(t, report.PacksRead, total)
		require.True(t, want(report.PacksRead, report.Packs), "%g of %d: %d", fraction, report.Packs, report.PacksRead)
	}
}

func TestAStoreThatDoesNotAnswerIsAnErrorOfTheCheckAndNotAProblem(t *testing.T) {
	s, m := newShop(), newModel()
	r := initRepository(t, s)
	m.fill(t, r, rand.New(rand.NewPCG(2, 2)), 2)
	for _, folder := range []string{"index", "data", "runs"} {
		s.Before = func(_, key string) error {
			if strings.HasPrefix(key, folder) {
				return blobstore.ErrUnavailable
			}
			return nil
		}
		report, err := Check(t.Context(), r, CheckOptions{ReadData: true})
		require.ErrorIs(t, err, blobstore.ErrUnavailable, folder)
		if report != nil {
			require.Empty(t, report.Problems, folder)
		}
	}
}
