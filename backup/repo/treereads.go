package repo

import (
	"context"
	"slices"
	"sync"
)

const (
	firstTreeRead = 256 << 10 // bytes that are read for the first tree of a pack
	maxTreeRead   = 2 << 20
	treeStretches = 4 // kept, so that several directories can be read at once
)

// treeReads fetches trees in long stretches of their packs and keeps the latest ones: a directory's tree lies beside
// those of its neighbours, which are asked for next. It begins with a little and doubles as long as the guess is right.
type treeReads struct {
	mu     sync.Mutex
	recent []stretch // the latest last
}

type stretch struct {
	pack  ID
	start uint64
	data  []byte
}

func (s *stretch) end() uint64 { return s.start + uint64(len(s.data)) }

// sealed returns a copy of a tree as it is stored.
func (t *treeReads) sealed(ctx context.Context, r *Repository, place Location) ([]byte, error) {
	start, end := uint64(place.Offset), uint64(place.Offset)+uint64(place.Length)
	found, size := t.look(place.Pack, start, end)
	if found != nil {
		return found, nil
	}
	if last := r.index().treeEnd(place.Pack); end < last {
		data, err := r.readRange(ctx, place.Pack, place.Offset, uint32(max(min(start+size, last), end)-start))
		if err == nil {
			t.keep(stretch{place.Pack, start, data})
			return slices.Clone(data[:place.Length]), nil
		}
		if ctx.Err() != nil {
			return nil, err
		}
	}
	// The last one, or the pack is not what the index says: perhaps this tree is there all the same.
	return r.readRange(ctx, place.Pack, place.Offset, place.Length)
}

// look returns what is kept, or how much should be read.
func (t *treeReads) look(pack ID, start, end uint64) (found []byte, size uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	size = firstTreeRead
	for i := range t.recent {
		switch s := &t.recent[i]; {
		case s.pack != pack:
		case s.start <= start && end <= s.end():
			return slices.Clone(s.data[start-s.start : end-s.start]), 0
		case s.start < start && start <= s.end()+firstTreeRead:
			size = max(size, min(2*uint64(len(s.data)), maxTreeRead))
		}
	}
	return nil, size
}

func (t *treeReads) keep(s stretch) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.recent) == treeStretches {
		t.recent = slices.Delete(t.recent, 0, 1)
	}
	t.recent = append(t.recent, s)
}
