package browse_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"example.com/pvcbackup/backup/browse"
	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/backup/repo/repotest"
	"example.com/pvcbackup/backup/repo/tree"
)

// paths returns what Walk visits.
func paths(t testing.TB, r *repo.Repository, root *tree.Node, fn func(string, *tree.Node) error) (visited []string) {
	t.Helper()
	require.NoError(t, browse.Walk(t.Context(), r, "/", root, func(at string, n *tree.Node) error {
		visited = append(visited, at)
		return fn(at, n)
	}))
	return visited
}

func all(string, *tree.Node) error { return nil }

func TestWalkPassesOverWhatItIsToldTo(t *testing.T) {
	r := initRepository(t, repotest.NewMemory())
	s := newSaver(t, r)
	sub := s.tree(file("x", 0), file("y", 0))
	root := dir("/", s.tree(dir("a", sub), dir("b", sub), dir("c", sub)))
	s.flush()
	skip := func(at string, _ *tree.Node) error {
		switch at {
		case "/a", "/b/x": // to skip a file is to skip nothing
			return fs.SkipDir
		case "/c/x":
			return fs.SkipAll
		}
		return nil
	}
	want := []string{"/", "/a", "/b", "/b/x", "/b/y", "/c", "/c/x"}
	visit := func(at string, n *tree.Node) error {
		err := skip(at, n)
		if n.Type == tree.File && errors.Is(err, fs.SkipDir) {
			return nil
		}
		return err
	}
	if diff := cmp.Diff(want, paths(t, r, root, visit)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	stop := errors.New("stop")
	require.ErrorIs(t, browse.Walk(t.Context(), r, "/", root, func(string, *tree.Node) error { return stop }), stop)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, browse.Walk(ctx, r, "/", root, all), context.Canceled)
}

func TestWalkFetchesNeighboursTogether(t *testing.T) {
	source := t.TempDir()
	for i := range 20 {
		for j := range 20 {
			name := filepath.Join(source, fmt.Sprint(i), fmt.Sprint(j))
			require.NoError(t, os.MkdirAll(name, 0o755))
			write(t, filepath.Join(name, fmt.Sprint(i, j)), "")
		}
	}
	store := repotest.NewMemory()
	r := initRepository(t, store)
	root := base(t, r, backup(t, r, source), "/")
	before := store.Count("get")
	require.Len(t, paths(t, r, root, all), 1+20+400+400)
	if got := store.Count("get") - before; got > 30 {
		t.Errorf("421 folders took %d requests", got)
	}
}

func TestWalkNamesTheTreeThatIsDamagedAndReadsItsNeighbours(t *testing.T) {
	store := repotest.NewMemory()
	r := initRepository(t, store)
	s := newSaver(t, r)
	trees := []*tree.Node{}
	for i := range 9 {
		trees = append(trees, dir(fmt.Sprint(i), s.tree(file(fmt.Sprint("in", i), 0))))
	}
	root := dir("/", s.tree(trees...))
	s.flush()
	bad := r.Locations(repo.BlobHandle{Type: repo.TreeBlob, ID: trees[5].Subtree})[0]
	store.Change = func(key string, offset int64, data []byte) []byte {
		at := int64(bad.Offset) + 20 - offset
		if strings.HasSuffix(key, bad.Pack.String()) && at >= 0 && at < int64(len(data)) {
			data[at] ^= 1
		}
		return data
	}
	var visited []string
	err := browse.Walk(t.Context(), r, "/", root, func(at string, _ *tree.Node) error {
		visited = append(visited, at)
		return nil
	})
	require.ErrorIs(t, err, repo.ErrDamaged)
	require.ErrorContains(t, err, `"/5"`)
	require.Equal(t, "/5", visited[len(visited)-1])
	require.Len(t, visited, 1+2*5+1)
}

func TestFoldersWithoutEndAreRefused(t *testing.T) {
	r := initRepository(t, repotest.NewMemory())
	s := newSaver(t, r)
	at := s.tree()
	for range 70 {
		at = s.tree(dir(strings.Repeat("d", 250), at))
	}
	other := s.tree(dir("d", at), file("x", 0))
	s.flush()
	require.ErrorIs(t, browse.Walk(t.Context(), r, "/", dir("/", at), all), tree.ErrTooLarge)
	_, err := browse.Diff(t.Context(), r, dir("/", s.tree()), dir("/", at), func(browse.Change) error { return nil })
	require.ErrorIs(t, err, tree.ErrTooLarge)
	_, err = browse.Diff(t.Context(), r, dir("/", at), dir("/", other), func(browse.Change) error { return nil })
	require.ErrorIs(t, err, tree.ErrTooLarge)
}
