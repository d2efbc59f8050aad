package cli

import (
	"fmt"
	"sync/atomic"
)

const (
	defaultMemory = 256 << 20
	leastMemory   = 128 << 20
)

// memory divides what the process may take.
type memory struct {
	total int64 // bytes; 0: it is not divided yet
	flag  int   // MiB
	index atomic.Int64
	limit func(total int64)
}

// divide decides on the total: what the flag says, else what was given, else 256 MiB.
func (m *memory) divide(given int64) error {
	switch {
	case m.flag != 0 && m.flag < leastMemory>>20:
		return usage(fmt.Errorf("--memory is %d, and at least %d MiB are needed", m.flag, leastMemory>>20))
	case m.flag != 0:
		m.total = int64(m.flag) << 20
	case given > 0:
		m.total = min(given, defaultMemory)
	default:
		m.total = defaultMemory
	}
	m.apply(m.total)
	return nil
}

func (m *memory) apply(total int64) {
	if m.limit != nil {
		m.limit(total)
	}
}

// budget is what the buffers of an operation may have. The rest is for the program, an index of a million blobs, and
// garbage.
func (m *memory) budget() int64 {
	if m.total == 0 {
		return 0 // what the operations choose
	}
	return m.total / 16 * 11
}

// grown makes room for an index that does not fit in: working slowly beyond the limit helps nobody.
func (m *memory) grown(index int64) {
	m.index.Store(max(m.index.Load(), index))
	if room := m.total / 4; m.total > 0 && m.index.Load() > room {
		m.apply(m.total + m.index.Load() - room)
	}
}
