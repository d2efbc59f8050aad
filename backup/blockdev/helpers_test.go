package blockdev

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/backup/repo/repotest"
	"example.com/pvcbackup/backup/repo/tree"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		os.Exit(child())
	}
	goleak.VerifyTestMain(m)
}

const (
	password = "correct horse"
	// testChunk is the least that can be chosen.
	testChunk = minChunk
)

func initRepository(t testing.TB) (*repo.Repository, *repotest.Memory) {
	t.Helper()
	store := repotest.NewMemory()
	return initIn(t, store), store
}

// initInFolder makes a repository that restic can open.
func initInFolder(t testing.TB) (*repo.Repository, string) {
	t.Helper()
	folder := t.TempDir()
	store, err := repotest.NewDir(folder)
	require.NoError(t, err)
	return initIn(t, store), folder
}

func initIn(t testing.TB, store repo.Store) *repo.Repository {
	t.Helper()
	r, err := repo.Init(t.Context(), store, password, &repo.InitOptions{KeyOptions: repo.KeyOptions{Scrypt: repo.ScryptParams(repotest.Cheap)}})
	require.NoError(t, err)
	return r
}

// noise is data that does not compress, made faster than with other generators.
func noise(seed int64, n int) []byte {
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:], uint64(seed))
	data := make([]byte, n)
	_, _ = rand.NewChaCha8(key).Read(data) // never fails
	return data
}

// disk is a stand-in for a device: a volume in memory that counts what is read of it.
type disk struct {
	data []byte
	// fail is the error of a read at this offset, if it is not nil.
	fail   error
	failAt int64

	mu    sync.Mutex
	reads []Range
}

func newDisk(seed int64, size int) *disk { return &disk{data: noise(seed, size)} }

func (d *disk) Size() int64 { return int64(len(d.data)) }

func (d *disk) NextData(offset int64) (int64, int64, error) { return offset, d.Size(), nil }

func (d *disk) ReadAt(p []byte, offset int64) (int, error) {
	d.mu.Lock()
	d.reads = append(d.reads, Range{offset, int64(len(p))})
	d.mu.Unlock()
	if d.fail != nil && offset <= d.failAt && d.failAt < offset+int64(len(p)) {
		return int(d.failAt - offset), d.fail
	}
	n := copy(p, d.data[min(offset, d.Size()):])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// read returns how many bytes were read since the last call.
func (d *disk) read() (total int64) {
	for _, r := range d.reads {
		total += r.Length
	}
	d.reads = nil
	return total
}

// write changes the disk, which grows if it has to, and returns the range.
func (d *disk) write(offset int, data []byte) Range {
	if grow := offset + len(data) - len(d.data); grow > 0 {
		d.data = append(d.data, make([]byte, grow)...)
	}
	copy(d.data[offset:], data)
	return Range{int64(offset), int64(len(data))}
}

var slot = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// options are for the n-th backup of a claim, of which the state is named.
func options(n int, handle string) Options {
	return Options{
		Host: "cluster", Path: "/ns/claim", Time: slot.Add(time.Duration(n) * time.Hour), ChunkSize: testChunk, Handle: handle,
		SampleShare: -1, PackSize: 4 * mib,
	}
}

// since makes options say what changed since a state.
func (o Options) since(base string, size int64, ranges ...Range) Options {
	o.Changes = func(context.Context, string) (*Changes, error) {
		return &Changes{Kind: Delta, Base: base, VolumeSize: size, Ranges: listed(ranges...)}, nil
	}
	return o
}

// listed yields ranges.
func listed(ranges ...Range) func(func(Range, error) bool) {
	return func(yield func(Range, error) bool) {
		for _, r := range ranges {
			if !yield(r, nil) {
				return
			}
		}
	}
}

func run(t testing.TB, r *repo.Repository, s Source, o Options) *Result {
	t.Helper()
	result, err := Backup(t.Context(), r, s, o)
	require.NoError(t, err)
	return result
}

// nodes returns the two nodes of a snapshot's tree.
func nodes(t testing.TB, r *repo.Repository, root repo.ID) (dir, image *tree.Node) {
	t.Helper()
	only := func(id repo.ID) *tree.Node {
		text, err := r.LoadBlob(t.Context(), repo.BlobHandle{Type: repo.TreeBlob, ID: id}, nil)
		require.NoError(t, err)
		var all []*tree.Node
		for n, err := range tree.All(text) {
			require.NoError(t, err)
			all = append(all, n)
		}
		require.Len(t, all, 1)
		return all[0]
	}
	dir = only(root)
	return dir, only(dir.Subtree)
}

// content returns what is stored of a volume.
func content(t testing.TB, r *repo.Repository, result *Result) []byte {
	t.Helper()
	_, image := nodes(t, r, result.Tree)
	out := bytes.NewBuffer(make([]byte, 0, image.Size))
	for _, c := range image.Content {
		data, err := r.LoadBlob(t.Context(), repo.BlobHandle{Type: repo.DataBlob, ID: c}, nil)
		require.NoError(t, err)
		out.Write(data)
	}
	require.EqualValues(t, image.Size, out.Len())
	return out.Bytes()
}

// requireStored compares the disk with what is stored of it, without printing either.
func requireStored(t testing.TB, r *repo.Repository, result *Result, want []byte) {
	t.Helper()
	require.True(t, bytes.Equal(want, content(t, r, result)), "what is stored is not what is on the disk")
}

// rounded is how many bytes the chunks have that the ranges touch.
func rounded(g geometry, ranges ...Range) (total int64) {
	touched := map[int]bool{}
	for _, r := range ranges {
		for k := g.index(r.Offset); k <= g.index(r.Offset+r.Length-1); k++ {
			if !touched[k] {
				touched[k] = true
				total += g.length(k)
			}
		}
	}
	return total
}

// merged sorts ranges and joins those that overlap.
func merged(ranges []Range) []Range {
	slices.SortFunc(ranges, func(a, b Range) int { return int(a.Offset - b.Offset) })
	var out []Range
	for _, r := range ranges {
		if n := len(out); n > 0 && r.Offset <= out[n-1].Offset+out[n-1].Length {
			out[n-1].Length = max(out[n-1].Length, r.Offset+r.Length-out[n-1].Offset)
			continue
		}
		out = append(out, r)
	}
	return out
}
