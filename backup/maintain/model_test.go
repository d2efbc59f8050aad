package maintain

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"example.com/pvcbackup/backup/archiver"
	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/backup/repo/id"
	"example.com/pvcbackup/backup/repo/repotest"
	"example.com/pvcbackup/backup/repo/tree"
	"example.com/pvcbackup/blobstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const password = "correct horse"

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// shop is a store in memory that can list less than it holds.
type shop struct {
	*repotest.Memory
	// hide leaves an object out of listings.
	hide func(key string) bool
}

func newShop() *shop { return &shop{Memory: repotest.NewMemory()} }

func (s *shop) List(ctx context.Context, prefix string) iter.Seq2[blobstore.Object, error] {
	return func(yield func(blobstore.Object, error) bool) {
		for object, err := range s.Memory.List(ctx, prefix) {
			if err == nil && s.hide != nil && s.hide(object.Key) {
				continue
			}
			if !yield(object, err) {
				return
			}
		}
	}
}

func (s *shop) DeleteAll(ctx context.Context, prefix string) (n int, err error) {
	for object, err := range s.List(ctx, prefix) {
		if err != nil {
			return n, err
		}
		if err := s.Delete(ctx, object.Key); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

func (s *shop) clone() *shop {
	other := newShop()
	for _, key := range s.Keys("") {
		other.Set(key, s.Bytes(key))
	}
	return other
}

func initRepository(t testing.TB, s repo.Store) *repo.Repository {
	t.Helper()
	r, err := repo.Init(t.Context(), s, password, &repo.InitOptions{KeyOptions: repo.KeyOptions{Scrypt: repo.ScryptParams(repotest.Cheap)}})
	require.NoError(t, err)
	return r
}

func reopen(t testing.TB, s repo.Store) *repo.Repository {
	t.Helper()
	r, err := repo.Open(t.Context(), s, password, nil)
	require.NoError(t, err)
	return r
}

// model is what a repository is known to hold, from what was put into it.
type model struct {
	snapshots map[repo.ID]saved
	content   map[repo.BlobHandle]string
	at        time.Time // of the newest snapshot
}

type saved struct {
	repo.Snapshot
	needs map[repo.BlobHandle]bool
}

func newModel() *model {
	return &model{snapshots: map[repo.ID]saved{}, content: map[repo.BlobHandle]string{}, at: start}
}

// needed returns every blob that the remaining snapshots need.
func (m *model) needed() map[repo.BlobHandle]bool {
	all := map[repo.BlobHandle]bool{}
	for _, s := range m.snapshots {
		maps.Copy(all, s.needs)
	}
	return all
}

// writer saves the blobs of one snapshot.
type writer struct {
	t     testing.TB
	m     *model
	w     *repo.Writer
	rnd   *rand.Rand
	needs map[repo.BlobHandle]bool
}

func (w *writer) blob(kind repo.BlobType, text string) repo.ID {
	name, _, err := w.w.SaveBlob(w.t.Context(), kind, []byte(text))
	require.NoError(w.t, err)
	h := repo.BlobHandle{Type: kind, ID: name}
	w.m.content[h], w.needs[h] = text, true
	return name
}

// dir saves a random directory. There are few different contents, so that many blobs are shared.
func (w *writer) dir(depth int) repo.ID {
	var b tree.Builder
	for i := range w.rnd.IntN(4) {
		node := tree.Node{Name: fmt.Sprintf("n%d", i), Type: tree.File, Mode: 0o644, ModTime: start, Content: []id.ID{}}
		if depth > 0 && w.rnd.IntN(3) == 0 {
			node = tree.Node{Name: node.Name, Type: tree.Dir, Mode: 0o755, ModTime: start, Subtree: w.dir(depth - 1)}
		} else {
			for range w.rnd.IntN(3) {
				text := content(w.rnd.IntN(40))
				node.Content, node.Size = append(node.Content, w.blob(repo.DataBlob, text)), node.Size+uint64(len(text))
			}
		}
		require.NoError(w.t, b.Add(&node))
	}
	return w.blob(repo.TreeBlob, string(b.Bytes()))
}

func content(n int) string { return strings.Repeat(fmt.Sprintf("content %d ", n), 20+n) }

// backup saves a random snapshot.
func (m *model) backup(t testing.TB, r *repo.Repository, rnd *rand.Rand, sn repo.Snapshot) repo.ID {
	t.Helper()
	require.NoError(t, r.LoadIndex(t.Context()))
	w := &writer{t: t, m: m, w: r.NewWriter(t.Context(), &repo.WriterOptions{MemoryBudget: 32 << 20}), rnd: rnd, needs: map[repo.BlobHandle]bool{}}
	defer w.w.Abort()
	root := w.dir(3)
	require.NoError(t, w.w.Flush(t.Context()))
	sn.Tree = &root
	name, err := r.SaveSnapshot(t.Context(), &sn)
	require.NoError(t, err)
	m.snapshots[name] = saved{sn, w.needs}
	return name
}

// fill makes snapshots of two series, some of them partial or empty.
func (m *model) fill(t testing.TB, r *repo.Repository, rnd *rand.Rand, n int) {
	t.Helper()
	for range n {
		m.at = m.at.Add(time.Duration(1+rnd.IntN(20)) * time.Hour)
		sn := repo.Snapshot{Time: m.at, Hostname: "cluster", Paths: []string{[]string{"/ns/a", "/ns/b"}[rnd.IntN(2)]}}
		switch rnd.IntN(6) {
		case 0:
			sn.Tags = []string{archiver.TagPartial}
		case 1:
			sn.Tags = []string{archiver.TagEmpty}
		}
		m.backup(t, r, rnd, sn)
	}
}

// verify checks that the repository is sound, and that everything that the remaining snapshots need is there.
func (m *model) verify(t testing.TB, s repo.Store) *CheckReport {
	t.Helper()
	r := reopen(t, s)
	report, err := Check(t.Context(), r, CheckOptions{ReadData: true})
	require.NoError(t, err)
	require.NoError(t, report.Err())
	for h := range m.needed() {
		got, err := r.LoadBlob(t.Context(), h, nil)
		require.NoError(t, err)
		require.Equal(t, m.content[h], string(got))
	}
	return report
}

func ids[V any](m map[repo.ID]V) []string {
	out := []string{}
	for name := range m {
		out = append(out, name.String())
	}
	slices.Sort(out)
	return out
}

func stored(t testing.TB, r *repo.Repository) []string {
	t.Helper()
	all, err := r.Snapshots(t.Context())
	require.NoError(t, err)
	names := map[repo.ID]bool{}
	for _, s := range all {
		names[s.ID] = true
	}
	return ids(names)
}
