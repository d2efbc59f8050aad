package repo

import (
	"encoding/binary"
	"iter"
	"slices"
	"sync"
	"unsafe"
)

// index knows where blobs are. It takes about 60 bytes per blob: hash tables of 32-bit numbers over entries that never
// move. A blob that is in several packs has several entries.
type index struct {
	tables [TreeBlob + 1]table
	packs  table // of entries with an id only; an entry's number is the pack's

	once sync.Once
	ends map[ID]uint64 // where the last tree of a pack ends, for the packs that there were at the first look
}

func newIndex() *index { return &index{} }

type entry struct {
	id                          ID
	pack, offset, length, plain uint32
}

func (x *index) add(pack ID, blobs []PackedBlob) {
	number := x.packs.add(entry{id: pack})
	for _, b := range blobs {
		x.tables[b.Type].add(entry{b.ID, number, b.Offset, b.Length, b.PlainLength})
	}
}

// memory is what the index takes, in bytes.
func (x *index) memory() int64 {
	return x.packs.memory() + x.tables[DataBlob].memory() + x.tables[TreeBlob].memory()
}

// Location is one place where a blob is.
type Location struct {
	Pack ID
	PackedBlob
}

// lookup returns all places of a blob, in the order in which they were added.
func (x *index) lookup(h BlobHandle) []Location {
	if h.Type > TreeBlob {
		return nil
	}
	entries := x.tables[h.Type].find(h.ID)
	if len(entries) == 0 {
		return nil
	}
	found := make([]Location, len(entries))
	for i, e := range entries {
		found[i] = Location{x.packs.get(e.pack).id, e.blob(h.Type)}
	}
	return found
}

func (x *index) first(h BlobHandle) (PackedBlob, bool) {
	if h.Type > TreeBlob {
		return PackedBlob{}, false
	}
	e, ok := x.tables[h.Type].first(h.ID)
	return e.blob(h.Type), ok
}

func (e entry) blob(t BlobType) PackedBlob {
	return PackedBlob{BlobHandle{t, e.id}, e.offset, e.length, e.plain}
}

// treeEnd returns where the last tree of a pack ends, or 0 if that is not known.
func (x *index) treeEnd(pack ID) uint64 {
	x.once.Do(func() {
		t := &x.tables[TreeBlob]
		t.mu.RLock()
		defer t.mu.RUnlock()
		ends := make([]uint64, x.packs.len())
		for n := range t.count {
			if e := t.at(n); int(e.pack) < len(ends) {
				ends[e.pack] = max(ends[e.pack], uint64(e.offset)+uint64(e.length))
			}
		}
		x.ends = map[ID]uint64{}
		for n, end := range ends {
			if end > 0 {
				x.ends[x.packs.get(uint32(n)).id] = end
			}
		}
	})
	return x.ends[pack]
}

// byPack yields the packs in the order in which they were added, each with its blobs by offset. Packs without blobs are
// yielded too.
func (x *index) byPack() iter.Seq2[ID, []PackedBlob] {
	return func(yield func(ID, []PackedBlob) bool) {
		packs := x.packs.len()
		var grouped [TreeBlob + 1]grouping
		for t := range grouped {
			grouped[t] = x.tables[t].group(packs)
		}
		for n := range packs {
			var blobs []PackedBlob
			for t := range grouped {
				for e := range grouped[t].of(n) {
					blobs = append(blobs, e.blob(BlobType(t)))
				}
			}
			slices.SortFunc(blobs, func(a, b PackedBlob) int { return int(int64(a.Offset) - int64(b.Offset)) })
			if !yield(x.packs.get(uint32(n)).id, blobs) {
				return
			}
		}
	}
}

const (
	blockShift = 10
	blockSize  = 1 << blockShift
)

// table is an open-addressed hash table. Slots hold entry numbers plus one; 0 is free. IDs are hashes, so their first
// bytes are hash enough.
type table struct {
	mu     sync.RWMutex
	blocks []*[blockSize]entry
	count  uint32
	slots  []uint32
}

func (t *table) at(n uint32) *entry { return &t.blocks[n>>blockShift][n&(blockSize-1)] }

func (t *table) slot(id *ID) uint64 {
	return binary.LittleEndian.Uint64(id[:8]) & uint64(len(t.slots)-1)
}

func (t *table) get(n uint32) entry {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return *t.at(n)
}

func (t *table) len() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return int(t.count)
}

func (t *table) memory() int64 {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return int64(len(t.blocks))*int64(unsafe.Sizeof([blockSize]entry{})) + 4*int64(cap(t.slots))
}

// add returns the number of the entry, which is an old one if there is an equal one.
func (t *table) add(e entry) uint32 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if uint64(t.count)+1 > uint64(len(t.slots))*3/4 {
		t.grow()
	}
	i := t.slot(&e.id)
	for ; t.slots[i] != 0; i = (i + 1) & uint64(len(t.slots)-1) {
		if n := t.slots[i] - 1; *t.at(n) == e {
			return n
		}
	}
	if t.count&(blockSize-1) == 0 {
		t.blocks = append(t.blocks, new([blockSize]entry))
	}
	*t.at(t.count) = e
	t.count++
	t.slots[i] = t.count
	return t.count - 1
}

func (t *table) grow() {
	t.slots = make([]uint32, max(1<<10, 2*len(t.slots)))
	for n := range t.count {
		i := t.slot(&t.at(n).id)
		for t.slots[i] != 0 {
			i = (i + 1) & uint64(len(t.slots)-1)
		}
		t.slots[i] = n + 1
	}
}

// find returns all entries of an ID.
func (t *table) find(id ID) []entry {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if len(t.slots) == 0 {
		return nil
	}
	var found []entry
	for i := t.slot(&id); t.slots[i] != 0; i = (i + 1) & uint64(len(t.slots)-1) {
		if e := t.at(t.slots[i] - 1); e.id == id {
			found = append(found, *e)
		}
	}
	return found
}

// first is find without an allocation.
func (t *table) first(id ID) (entry, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if len(t.slots) == 0 {
		return entry{}, false
	}
	for i := t.slot(&id); t.slots[i] != 0; i = (i + 1) & uint64(len(t.slots)-1) {
		if e := t.at(t.slots[i] - 1); e.id == id {
			return *e, true
		}
	}
	return entry{}, false
}

// grouping lists entry numbers by pack: those of pack n are order[ends[n-1]:ends[n]].
type grouping struct {
	table *table
	ends  []uint32
	order []uint32
}

// group considers the entries of the first packs packs, as of now.
func (t *table) group(packs int) grouping {
	t.mu.RLock()
	defer t.mu.RUnlock()
	g := grouping{table: t, ends: make([]uint32, packs+1)}
	for n := range t.count {
		if p := t.at(n).pack; int(p) < packs {
			g.ends[p+1]++
		}
	}
	for p := range packs {
		g.ends[p+1] += g.ends[p]
	}
	g.order = make([]uint32, g.ends[packs])
	next := slices.Clone(g.ends)
	for n := range t.count {
		if p := t.at(n).pack; int(p) < packs {
			g.order[next[p]] = n
			next[p]++
		}
	}
	return g
}

func (g grouping) of(pack int) iter.Seq[entry] {
	return func(yield func(entry) bool) {
		for _, n := range g.order[g.ends[pack]:g.ends[pack+1]] {
			if !yield(g.table.get(n)) {
				return
			}
		}
	}
}
