package blockdev

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"example.com/pvcbackup/backup/archiver"
	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/backup/repo/tree"
	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

// model is a disk with states, and with a storage system that knows what differs between two of them.
type model struct {
	*disk
	random *rand.Rand
	log    []Range // of all writes
	states []int   // how many of them each state has
}

func (m *model) handle(state int) string { return fmt.Sprintf("snap,%d", state) }

// change writes here and there, and sometimes grows the disk, and makes a state. What the disk has where it grew is not
// a write that the storage system knows of.
func (m *model) change() {
	if m.random.Intn(4) == 0 {
		grown := noise(m.random.Int63(), 1+m.random.Intn(2*testChunk))
		if m.random.Intn(2) == 0 {
			clear(grown)
		}
		m.data = append(m.data, grown...)
	}
	for range m.random.Intn(6) {
		length := 1 + m.random.Intn(3*testChunk)
		offset := m.random.Intn(len(m.data))
		if m.random.Intn(8) != 0 {
			length = min(length, len(m.data)-offset)
		}
		data := noise(m.random.Int63(), length)
		if m.random.Intn(4) == 0 {
			clear(data)
		}
		m.log = append(m.log, m.write(offset, data))
	}
	m.states = append(m.states, len(m.log))
}

// delta lists what was written since a state: exactly, or rounded out to blocks, or more than that.
func (m *model) delta(base int) *Changes {
	ranges := append([]Range(nil), m.log[m.states[base]:]...)
	block := int64(1) << (6 * m.random.Intn(3))
	for i, r := range ranges {
		end := min((r.Offset+r.Length+block-1)/block*block, m.Size())
		ranges[i].Offset = r.Offset / block * block
		ranges[i].Length = end - ranges[i].Offset
	}
	if m.random.Intn(3) == 0 {
		at := m.random.Int63n(m.Size())
		ranges = append(ranges, Range{at, 1 + m.random.Int63n(m.Size()-at)})
	}
	return &Changes{Kind: Delta, Base: m.handle(base), VolumeSize: m.Size(), Ranges: listed(merged(ranges)...)}
}

// histories is how many random histories are tried; PVCBACKUP_HISTORIES sets another number.
func histories(t *testing.T) int {
	if text := os.Getenv("PVCBACKUP_HISTORIES"); text != "" {
		n, err := strconv.Atoi(text)
		require.NoError(t, err)
		return n
	}
	return 12
}

func TestRunsWithChangedRangesStoreWhatAFullReadWould(t *testing.T) {
	for seed := range histories(t) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewSource(int64(seed)))
			m := &model{disk: newDisk(int64(seed), 1+random.Intn(5*testChunk)), random: random, states: []int{0}}
			r, _ := initRepository(t)
			run(t, r, m, options(0, m.handle(0)))
			last := 0
			for n := 1; n < 9; n++ {
				m.change()
				if random.Intn(4) == 0 {
					continue // a state that nobody backs up
				}
				state := len(m.states) - 1
				base := last
				if random.Intn(5) == 0 {
					base = random.Intn(state)
				}
				o := options(n, m.handle(state))
				o.Changes = func(context.Context, string) (*Changes, error) { return m.delta(base), nil }
				o.SampleShare = 0
				got := run(t, r, m, o)
				want := ReadChanged
				if base != last {
					want = ReadFull
				}
				require.Equal(t, want, got.Read, "%s %s", got.Reason, got.Detail)
				_, image := nodes(t, r, got.Tree)
				if diff := cmp.Diff(m.chunks(), image.Content); diff != "" {
					t.Fatalf("the list of chunks is not that of the disk: -want +got:\n%s", diff)
				}
				if !got.Empty { // a volume of zeros is nobody's parent
					last = state
				}
			}
			requireAsAFullRead(t, r, m)
		})
	}
}

// chunks are the hashes of what is on the disk.
func (m *model) chunks() (ids []repo.ID) {
	for data := range slices.Chunk(m.data, testChunk) {
		ids = append(ids, sha256.Sum256(data))
	}
	return ids
}

// requireAsAFullRead compares the latest snapshot of the disk with one that a full read makes.
func requireAsAFullRead(t *testing.T, r *repo.Repository, m *model) {
	t.Helper()
	o := options(100, "").since(m.handle(len(m.states)-1), m.Size())
	latest := run(t, r, m, o) // of which nothing is read if the last state was backed up
	o = options(101, "")
	o.NoParent = true
	full := run(t, r, m, o)
	_, a := nodes(t, r, latest.Tree)
	_, b := nodes(t, r, full.Tree)
	if diff := cmp.Diff(b.Content, a.Content); diff != "" {
		t.Fatalf("a full read and the changes differ: -full +changes:\n%s", diff)
	}
	requireStored(t, r, latest, m.data)
}

func TestBytesReadAreThoseOfTheTouchedChunks(t *testing.T) {
	r, _ := initRepository(t)
	// What the chunks have does not matter here, and equal ones are stored once.
	d := &disk{data: bytes.Repeat(noise(1, testChunk), 500)}
	d.data = append(d.data, 1, 2, 3, 4, 5)
	g := geometry{size: d.Size(), chunk: testChunk}
	run(t, r, d, options(0, "a"))
	d.read()
	var ranges []Range
	for k := range 230 {
		ranges = append(ranges, d.write(k*2*testChunk+k, []byte("changed")))
	}
	ranges = append(ranges, d.write(len(d.data)-4, []byte("tail")))
	want := rounded(g, ranges...)

	got := run(t, r, d, options(1, "b").since("a", d.Size(), ranges...))
	require.Equal(t, want, got.BytesRead)
	require.Equal(t, want, d.read(), "without a sample")
	requireStored(t, r, got, d.data)

	o := options(2, "c").since("b", d.Size(), ranges...)
	o.SampleShare = 0
	got = run(t, r, d, o)
	require.Equal(t, want, got.BytesRead)
	require.EqualValues(t, minSample*testChunk, got.BytesSampled)
	total := d.read()
	require.Equal(t, got.BytesRead+got.BytesSampled, total)
	require.LessOrEqual(t, float64(total), 1.02*float64(want), "with a sample")
}

func TestEveryChunkIsReadOnce(t *testing.T) {
	r, _ := initRepository(t)
	d := newDisk(1, 50*testChunk)
	run(t, r, d, options(0, "a"))
	seen := map[int64]int{}
	for _, read := range d.reads {
		require.Zero(t, read.Offset%testChunk)
		seen[read.Offset]++
	}
	require.Len(t, seen, 50)
	for at, n := range seen {
		require.Equal(t, 1, n, "the chunk at %d", at)
	}
}

func TestWhatIsNotAllocatedIsTakenToBeZeros(t *testing.T) {
	r, _ := initRepository(t)
	d := &disk{data: make([]byte, 30*testChunk)}
	written := d.write(3*testChunk-5, noise(1, testChunk))
	o := options(0, "a")
	o.SampleShare = 0
	asked := "nothing"
	o.Changes = func(_ context.Context, base string) (*Changes, error) {
		asked = base
		return &Changes{Kind: Allocated, VolumeSize: d.Size(), Ranges: listed(written)}, nil
	}
	got := run(t, r, d, o)
	require.Empty(t, asked)
	require.Equal(t, ReadAllocated, got.Read)
	require.Equal(t, NoParent, got.Reason)
	require.EqualValues(t, 2*testChunk, got.BytesRead)
	require.Equal(t, 1, got.SinceFull)
	requireStored(t, r, got, d.data)
}

func TestAStorageSystemThatLiesIsFoundOutByTheSample(t *testing.T) {
	for _, kind := range []Kind{Delta, Allocated} {
		t.Run(string(kind), func(t *testing.T) {
			r, _ := initRepository(t)
			d := newDisk(1, 20*testChunk)
			run(t, r, d, options(0, "a"))
			d.write(7*testChunk+9, []byte("not in the list"))
			d.read()
			o := options(1, "b")
			o.SampleShare = 1
			o.Changes = func(context.Context, string) (*Changes, error) {
				c := &Changes{Kind: kind, VolumeSize: d.Size(), Ranges: listed(Range{0, 7 * testChunk}, Range{8 * testChunk, 12 * testChunk})}
				if kind == Delta {
					c.Base = "a"
				}
				return c, nil
			}
			got := run(t, r, d, o)
			require.Equal(t, ReadFull, got.Read)
			require.Equal(t, SampleMismatch, got.Reason)
			require.EqualValues(t, 7*testChunk, got.Mismatch)
			require.EqualValues(t, 20*testChunk, got.BytesRead)
			require.EqualValues(t, testChunk, got.BytesSampled)
			requireStored(t, r, got, d.data)
			sn, err := r.LoadSnapshot(t.Context(), got.SnapshotID)
			require.NoError(t, err)
			info, _ := InfoOf(sn.Tags)
			require.Equal(t, SampleMismatch, info.Reason)
		})
	}
}

func TestTheSampleIsAShareButAtLeastAFewChunks(t *testing.T) {
	set := newChunkSet(10_000)
	set.addRange(1000, 8999)
	for share, want := range map[float64]int{-1: 0, 0.0001: minSample, 0.01: 80, 1: 8000} {
		got := sample(set, share)
		require.Equal(t, want, got.count(), "%v", share)
		require.Zero(t, got.without(set).count(), "%v", share)
	}
	require.Equal(t, 2, sample(allChunks(2), 0.001).count())
	require.Zero(t, sample(newChunkSet(5), 0.5).count())
	seen := newChunkSet(10_000)
	for range 2000 {
		for k := range sample(set, 0.001).all() {
			seen.addRange(k, k)
		}
	}
	require.Greater(t, seen.count(), 6000, "every chunk has its chance")
}

// TestWheneverInDoubtTheWholeVolumeIsRead goes through everything that must keep the parent from being used.
func TestWheneverInDoubtTheWholeVolumeIsRead(t *testing.T) {
	const size = 4*testChunk + 10
	r, _ := initRepository(t)
	first := options(0, "a")
	first.Volume = "v"
	list := func(c Changes) func(context.Context, string) (*Changes, error) {
		return func(context.Context, string) (*Changes, error) { return &c, nil }
	}
	good := Changes{Kind: Delta, Base: "a", VolumeSize: size, Ranges: listed(Range{0, 5})}
	with := func(change func(*Changes)) func(*Options, *disk) {
		return func(o *Options, _ *disk) {
			c := good
			change(&c)
			o.Changes = list(c)
		}
	}
	for name, c := range map[string]struct {
		want   Reason
		first  func(*Options)
		second func(*Options, *disk)
	}{
		"no parent":        {want: NoParent, second: func(o *Options, _ *disk) { o.NoParent = true }},
		"other path":       {want: NoParent, second: func(o *Options, _ *disk) { o.Path = "/ns/other" }},
		"other chunk size": {want: ChunkSizeChanged, second: func(o *Options, _ *disk) { o.ChunkSize = 2 * testChunk }},
		"other volume":     {want: VolumeChanged, second: func(o *Options, _ *disk) { o.Volume = "w" }},
		"unknown volume":   {want: VolumeChanged, second: func(o *Options, _ *disk) { o.Volume = "" }},
		"shrunk":           {want: VolumeShrunk, second: func(_ *Options, d *disk) { d.data = d.data[:size-1] }},
		"parent's state":   {want: NoHandle, first: func(o *Options) { o.Handle = "" }},
		"full due":         {want: FullDue, second: func(o *Options, _ *disk) { o.FullEvery = 1 }},
		"none": {want: ChangesUnavailable, second: func(o *Options, _ *disk) {
			o.Changes = func(context.Context, string) (*Changes, error) { return nil, nil }
		}},
		"refused": {want: ChangesUnavailable, second: func(o *Options, _ *disk) {
			o.Changes = func(context.Context, string) (*Changes, error) { return nil, errors.New("no delta") }
		}},
		"wrong base":      {want: WrongBase, second: with(func(c *Changes) { c.Base = "b" })},
		"no base":         {want: ChangesInvalid, second: with(func(c *Changes) { c.Base = "" })},
		"no kind":         {want: ChangesInvalid, second: with(func(c *Changes) { c.Kind = "" })},
		"allocated+base":  {want: ChangesInvalid, second: with(func(c *Changes) { c.Kind = Allocated })},
		"size of another": {want: ChangesInvalid, second: with(func(c *Changes) { c.VolumeSize = size + 1 })},
		"no size":         {want: ChangesInvalid, second: with(func(c *Changes) { c.VolumeSize = 0 })},
		"no ranges":       {want: ChangesInvalid, second: with(func(c *Changes) { c.Ranges = nil })},
		"broken off":      {want: ChangesInvalid, second: with(func(c *Changes) { c.Ranges = broken(Range{0, 5}) })},
		"descending":      {want: ChangesInvalid, second: with(func(c *Changes) { c.Ranges = listed(Range{10, 5}, Range{0, 5}) })},
		"overlapping":     {want: ChangesInvalid, second: with(func(c *Changes) { c.Ranges = listed(Range{0, 5}, Range{4, 5}) })},
		"beyond the end":  {want: ChangesInvalid, second: with(func(c *Changes) { c.Ranges = listed(Range{size - 1, 2}) })},
		"negative":        {want: ChangesInvalid, second: with(func(c *Changes) { c.Ranges = listed(Range{-1, 2}) })},
		"empty range":     {want: ChangesInvalid, second: with(func(c *Changes) { c.Ranges = listed(Range{3, 0}) })},
		"overflowing":     {want: ChangesInvalid, second: with(func(c *Changes) { c.Ranges = listed(Range{5, 1<<63 - 1}) })},
		"offset beyond":   {want: ChangesInvalid, second: with(func(c *Changes) { c.Ranges = listed(Range{1<<63 - 1, 1}) })},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDisk(1, size)
			o := first
			o.Host = name
			if c.first != nil {
				c.first(&o)
			}
			run(t, r, d, o)
			d.write(0, []byte("there"))
			d.write(3*testChunk, []byte("what the list does not say"))
			o = options(1, "next")
			o.Host, o.Volume, o.Changes = name, "v", list(good)
			if c.second != nil {
				c.second(&o, d)
			}
			got := run(t, r, d, o)
			require.Equal(t, ReadFull, got.Read)
			require.Equal(t, c.want, got.Reason, got.Detail)
			require.NotEmpty(t, got.Detail)
			require.Equal(t, d.Size(), got.BytesRead)
			require.Zero(t, got.SinceFull)
			requireStored(t, r, got, d.data)
			sn, err := r.LoadSnapshot(t.Context(), got.SnapshotID)
			require.NoError(t, err)
			info, _ := InfoOf(sn.Tags)
			require.Equal(t, c.want, info.Reason)
		})
	}
}

// broken yields ranges and then an error.
func broken(ranges ...Range) func(func(Range, error) bool) {
	return func(yield func(Range, error) bool) {
		for _, r := range ranges {
			if !yield(r, nil) {
				return
			}
		}
		yield(Range{}, errors.New("stream reset"))
	}
}

// forge commits a snapshot with these nodes in its inner directory.
func forge(t *testing.T, r *repo.Repository, host string, info Info, inner ...*tree.Node) {
	t.Helper()
	require.NoError(t, r.LoadIndex(t.Context()))
	w := r.NewWriter(t.Context(), nil)
	defer w.Abort()
	save := func(all ...*tree.Node) repo.ID {
		var b tree.Builder
		for _, n := range all {
			require.NoError(t, b.Add(n))
		}
		id, _, err := w.SaveBlob(t.Context(), repo.TreeBlob, b.Bytes())
		require.NoError(t, err)
		return id
	}
	root := save(&tree.Node{Name: dirName, Type: tree.Dir, Mode: dirMode, Subtree: save(inner...)})
	require.NoError(t, w.Flush(t.Context()))
	_, err := r.SaveSnapshot(t.Context(), &repo.Snapshot{
		Time: slot, Tree: &root, Paths: []string{"/ns/claim"}, Hostname: host, Tags: info.tags(),
	})
	require.NoError(t, err)
}

func TestAParentThatIsNotWhatItsTagsSayIsNotTakenOver(t *testing.T) {
	const size = 2 * testChunk
	file := func(name string, size uint64, content ...repo.ID) *tree.Node {
		return &tree.Node{Name: name, Type: tree.File, Size: size, Content: content}
	}
	d := newDisk(1, size)
	whole := repo.ID(sha256.Sum256(d.data[:testChunk]))
	r, _ := initRepository(t)
	run(t, r, d, options(0, "")) // stores the chunks
	for name, c := range map[string]struct {
		want  Reason
		inner []*tree.Node
	}{
		"unknown chunk":  {ParentIncomplete, []*tree.Node{file(ImageName, size, whole, repo.ID{1})}},
		"few chunks":     {ParentIncomplete, []*tree.Node{file(ImageName, size, whole)}},
		"many chunks":    {ParentIncomplete, []*tree.Node{file(ImageName, size, whole, whole, whole)}},
		"another size":   {ParentUnreadable, []*tree.Node{file(ImageName, size+1, whole, whole)}},
		"another name":   {ParentUnreadable, []*tree.Node{file("disk", size, whole, whole)}},
		"something else": {ParentUnreadable, []*tree.Node{{Name: ImageName, Type: tree.FIFO}}},
		"nothing":        {ParentUnreadable, nil},
		"two files":      {ParentUnreadable, []*tree.Node{file(ImageName, size, whole, whole), file("z", size, whole, whole)}},
	} {
		t.Run(name, func(t *testing.T) {
			forge(t, r, name, Info{ChunkSize: testChunk, Size: size, Read: ReadFull, Handle: "a"}, c.inner...)
			o := options(1, "b").since("a", size)
			o.Host = name
			got := run(t, r, d, o)
			require.Equal(t, c.want, got.Reason, got.Detail)
			require.Equal(t, ReadFull, got.Read)
			requireStored(t, r, got, d.data)
		})
	}
}

func TestADamagedParentTreeOnlyMeansReadingEverything(t *testing.T) {
	r, store := initRepository(t)
	d := newDisk(1, 2*testChunk)
	run(t, r, d, options(0, "a"))
	r, err := repo.Open(t.Context(), store, password, nil) // one that has not read the trees yet
	require.NoError(t, err)
	var damaged, writing atomic.Bool
	store.Before = func(op, _ string) error {
		if op == "put" {
			writing.Store(true) // what is read from now on is what the run wrote
		}
		return nil
	}
	store.Change = func(key string, _ int64, data []byte) []byte {
		if strings.HasPrefix(key, "data/") && !writing.Load() {
			damaged.Store(true)
			for i := range data {
				data[i] ^= 1
			}
		}
		return data
	}
	got := run(t, r, d, options(1, "b").since("a", d.Size()))
	require.True(t, damaged.Load())
	require.Equal(t, ParentUnreadable, got.Reason)
	require.Equal(t, ReadFull, got.Read)
	requireStored(t, r, got, d.data)
}

func TestAFullReadIsDueEverySoManyRuns(t *testing.T) {
	r, _ := initRepository(t)
	d := newDisk(1, 3*testChunk)
	run(t, r, d, options(0, "0"))
	var got []Read
	for n := 1; n <= 7; n++ {
		o := options(n, fmt.Sprint(n)).since(fmt.Sprint(n-1), d.Size())
		o.FullEvery = 3
		got = append(got, run(t, r, d, o).Read)
	}
	want := []Read{ReadChanged, ReadChanged, ReadFull, ReadChanged, ReadChanged, ReadFull, ReadChanged}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestWhatTheRangesAreNotAboutIsRead(t *testing.T) {
	r, _ := initRepository(t)
	d := newDisk(1, 3*testChunk+7)
	run(t, r, d, options(0, "a"))
	d.write(3*testChunk+3, noise(2, 2*testChunk)) // beyond the size that the list is about
	got := run(t, r, d, options(1, "b").since("a", 3*testChunk+3))
	require.Equal(t, ReadChanged, got.Read)
	require.EqualValues(t, 2*testChunk+3, got.BytesRead)
	requireStored(t, r, got, d.data)
	require.Equal(t, archiver.Counts{New: testChunk + 3, Changed: testChunk, Unmodified: 3 * testChunk}, got.Bytes)
}

func TestCancellingWhileTheRangesComeEndsTheRun(t *testing.T) {
	r, store := initRepository(t)
	d := newDisk(1, 3*testChunk)
	run(t, r, d, options(0, "a"))
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("the lock was lost")
	o := options(1, "b")
	o.Changes = func(context.Context, string) (*Changes, error) {
		return &Changes{Kind: Delta, Base: "a", VolumeSize: d.Size(), Ranges: func(yield func(Range, error) bool) {
			cancel(stop)
			yield(Range{}, context.Canceled)
		}}, nil
	}
	_, err := Backup(ctx, r, d, o)
	require.ErrorIs(t, err, stop)
	require.Len(t, store.Keys("snapshots/"), 1)
}

func TestChunkSetsHoldWhatWasAdded(t *testing.T) {
	random := rand.New(rand.NewSource(1))
	for range 300 {
		n := 1 + random.Intn(300)
		set, want := newChunkSet(n), make([]bool, n)
		for range random.Intn(5) {
			first := random.Intn(n)
			last := first + random.Intn(n-first)
			set.addRange(first, last)
			for k := first; k <= last; k++ {
				want[k] = true
			}
		}
		got := make([]bool, n)
		count := 0
		for k := range set.all() {
			got[k] = true
			count++
		}
		require.Equal(t, want, got)
		require.Equal(t, count, set.count())
		for k := range n {
			require.Equal(t, want[k], set.has(k))
		}
		require.Equal(t, n-count, allChunks(n).without(set).count())
		require.Equal(t, count, allChunks(n).and(set).count())
	}
}

func TestAListOfChangesIsReadFromJSONLines(t *testing.T) {
	c, err := ReadChanges(strings.NewReader(`{"kind": "delta", "base": "a", "size": 100}

{"offset": 0, "length": 10}
{"offset": 20, "length": 1}
`))
	require.NoError(t, err)
	require.Equal(t, Delta, c.Kind)
	require.Equal(t, "a", c.Base)
	require.EqualValues(t, 100, c.VolumeSize)
	var got []Range
	for r, err := range c.Ranges {
		require.NoError(t, err)
		got = append(got, r)
	}
	if diff := cmp.Diff([]Range{{0, 10}, {20, 1}}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for name, text := range map[string]string{
		"nothing": "", "no JSON": "x", "unknown field": `{"kind":"delta","from":"a"}`, "two values": `{"kind":"delta"} {}`, "array": `[]`,
	} {
		_, err := ReadChanges(strings.NewReader(text))
		var wrong *ChangesError
		require.ErrorAs(t, err, &wrong, name)
	}
	for name, text := range map[string]string{
		"no JSON": "x", "no length": `{"offset": 1}`, "no offset": `{"length": 1}`, "text": `{"offset": "1", "length": 1}`,
		"fraction": `{"offset": 1.5, "length": 1}`, "too large": `{"offset": 9223372036854775808, "length": 1}`, "unknown": `{"offset":1,"length":1,"x":1}`,
		"long": `{"offset": 1, "length":` + strings.Repeat(" ", 1<<17) + `1}`,
	} {
		c, err := ReadChanges(strings.NewReader(`{"kind":"delta","base":"a","size":100}` + "\n" + text))
		require.NoError(t, err)
		_, err = c.touched(geometry{size: 100, chunk: 10})
		var wrong *ChangesError
		require.ErrorAs(t, err, &wrong, name)
		require.Error(t, wrong.Err, name)
	}
}

func FuzzAListOfChangesIsRefusedOrCovered(f *testing.F) {
	f.Add([]byte(`{"kind":"delta","base":"a","size":100}`+"\n"+`{"offset":0,"length":1}`+"\n"+`{"offset":99,"length":1}`), uint16(100), uint8(10))
	f.Add([]byte(`{"kind":"allocated","size":50}`+"\n"+`{"offset":5,"length":1}`), uint16(60), uint8(1))
	f.Add([]byte(`{"kind":"delta","base":"a","size":100}`+"\n"+`{"offset":9223372036854775807,"length":9223372036854775807}`), uint16(100), uint8(7))
	f.Fuzz(func(t *testing.T, text []byte, size uint16, chunk uint8) {
		g := geometry{size: int64(size) + 1, chunk: int64(chunk) + 1}
		c, err := ReadChanges(strings.NewReader(string(text)))
		if err != nil {
			return
		}
		set, err := c.touched(g)
		if err != nil {
			var wrong *ChangesError
			require.ErrorAs(t, err, &wrong)
			return
		}
		// The ranges were used up; they are read anew.
		c, err = ReadChanges(strings.NewReader(string(text)))
		require.NoError(t, err)
		for r, err := range c.Ranges {
			require.NoError(t, err)
			require.True(t, set.has(g.index(r.Offset)))
			require.True(t, set.has(g.index(r.Offset+r.Length-1)))
		}
		for at := c.VolumeSize; at < g.size; at++ {
			require.True(t, set.has(g.index(at)))
		}
	})
}
