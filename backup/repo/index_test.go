package repo

import (
	"encoding/binary"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"example.com/pvcbackup/backup/repo/id"
)

func numbered(n int) ID {
	return id.Hash(binary.LittleEndian.AppendUint64(nil, uint64(n)))
}

func TestIndexTakesAtMost64BytesPerBlob(t *testing.T) {
	const packs, perPack = 30_000, 16
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	x := newIndex()
	list := make([]PackedBlob, perPack)
	for p := range packs {
		for i := range list {
			list[i] = PackedBlob{BlobHandle{DataBlob, numbered(p*perPack + i)}, uint32(i) << 20, 1 << 20, 0}
		}
		x.add(numbered(-p-1), list)
	}
	per := float64(heap()-before) / (packs * perPack)
	t.Logf("%.1f bytes per blob", per)
	if per > 64 {
		t.Errorf("the index takes %.1f bytes per blob", per)
	}
	runtime.KeepAlive(x)
}

// The reference is a plain map; blobs repeat within and across packs.
func TestIndexAgreesWithAMap(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	x := newIndex()
	want := map[BlobHandle][]Location{}
	byPack := map[ID][]PackedBlob{}
	for p := range 300 {
		pack := numbered(-p%200 - 1) // some packs come twice
		list := blobs(rng.IntN(20))
		for i := range list {
			list[i].ID = numbered(rng.IntN(1500))
		}
		x.add(pack, list)
		for _, b := range list {
			place := Location{pack, b}
			if !slices.Contains(want[b.BlobHandle], place) {
				want[b.BlobHandle] = append(want[b.BlobHandle], place)
				byPack[pack] = append(byPack[pack], b)
			}
		}
		if _, ok := byPack[pack]; !ok {
			byPack[pack] = nil
		}
	}
	for n := range 1600 {
		for _, kind := range []BlobType{DataBlob, TreeBlob} {
			h := BlobHandle{kind, numbered(n)}
			if diff := cmp.Diff(want[h], x.lookup(h)); diff != "" {
				t.Fatalf("%v -want +got:\n%s", h, diff)
			}
			first, ok := x.first(h)
			require.Equal(t, len(want[h]) > 0, ok)
			if ok {
				require.Equal(t, want[h][0].PackedBlob, first)
			}
		}
	}
	got := map[ID][]PackedBlob{}
	for pack, list := range x.byPack() {
		require.True(t, slices.IsSortedFunc(list, func(a, b PackedBlob) int { return int(a.Offset) - int(b.Offset) }))
		got[pack] = list
	}
	order := cmp.Transformer("sorted", func(list []PackedBlob) []string {
		var s []string
		for _, b := range list {
			s = append(s, b.String()+string(binary.BigEndian.AppendUint32(nil, b.Offset))+string(rune(b.Length))+string(rune(b.PlainLength)))
		}
		slices.Sort(s)
		return s
	})
	if diff := cmp.Diff(byPack, got, order); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestPlanKeepsTheMemoryBudget(t *testing.T) {
	for name, c := range map[string]struct {
		o    WriterOptions
		cpus int
		want plan
	}{
		"default on 2 cores":  {WriterOptions{}, 2, plan{defaultPackSize, 4, 2}},
		"default on 64 cores": {WriterOptions{}, 64, plan{defaultPackSize, 3, 6}},
		"96 MiB":              {WriterOptions{MemoryBudget: 96 << 20}, 2, plan{defaultPackSize, 2, 2}},
		"32 MiB":              {WriterOptions{MemoryBudget: 32 << 20}, 2, plan{minPackSize, 1, 1}},
		"1 byte":              {WriterOptions{MemoryBudget: 1}, 8, plan{minPackSize, 1, 1}},
		"plenty":              {WriterOptions{MemoryBudget: 1 << 30, Uploads: 8}, 4, plan{defaultPackSize, 8, 4}},
		"tiny packs":          {WriterOptions{PackSize: 1}, 2, plan{minPackSize, 4, 2}},
		"giant packs":         {WriterOptions{PackSize: 1 << 30, MemoryBudget: 4 << 30}, 2, plan{maxPackSize, 4, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			got := makePlan(&c.o, c.cpus)
			require.Equal(t, c.want, got)
			budget := max(c.o.MemoryBudget, 32<<20)
			if c.o.MemoryBudget == 0 {
				budget = defaultBudget
			}
			require.LessOrEqual(t, got.memory(), budget)
		})
	}
}

func TestMergeReads(t *testing.T) {
	at := func(list ...uint32) []PackedBlob {
		var out []PackedBlob
		for i := 0; i < len(list); i += 2 {
			out = append(out, PackedBlob{Offset: list[i], Length: list[i+1]})
		}
		return out
	}
	for name, c := range map[string]struct {
		blobs []PackedBlob
		n     int
		end   uint64
	}{
		"one":            {at(5, 10), 1, 15},
		"adjacent":       {at(0, 10, 10, 10), 2, 20},
		"small gap":      {at(0, 10, 10+readGap, 10), 2, 20 + readGap},
		"large gap":      {at(0, 10, 11+readGap, 10), 1, 10},
		"too much":       {at(0, readMax, readMax, 1), 1, readMax},
		"large alone":    {at(0, 2*readMax, 2*readMax, 1), 1, 2 * readMax},
		"overlap":        {at(0, 100, 50, 10, 60, 50), 3, 110},
		"unsorted stops": {at(10, 10, 0, 5), 1, 20},
	} {
		t.Run(name, func(t *testing.T) {
			n, end := mergeReads(c.blobs)
			require.Equal(t, c.n, n)
			require.Equal(t, c.end, end)
		})
	}
}
