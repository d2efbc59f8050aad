package blockdev

import (
	"fmt"
	"iter"
)

// Range is a stretch of a volume, in bytes.
type Range struct{ Offset, Length int64 }

// Kind says what a list of ranges is relative to. The zero value is not one.
type Kind string

// The kinds of lists.
const (
	// Delta lists everything in which the volume differs from an earlier state of it.
	Delta Kind = "delta"
	// Allocated lists everything that was ever written. The rest of the volume reads as zeros.
	Allocated Kind = "allocated"
)

// Changes is what a storage system says about the content of a volume: the answer of GetMetadataDelta or
// GetMetadataAllocated of CSI SnapshotMetadata (KEP-3314), or of any other source.
type Changes struct {
	Kind Kind
	// Base names the state that a Delta is relative to, as Options.Handle named it when that state was backed up: the
	// CSI handle of the base snapshot. Empty for Allocated.
	Base string
	// VolumeSize is the size in bytes that the ranges are about. What the volume has beyond it is read.
	VolumeSize int64
	// Ranges ascend, do not overlap, are not empty, and end within VolumeSize. An error ends them, and makes them
	// useless as a whole. They are read once, up to the end, before the volume is.
	Ranges iter.Seq2[Range, error]
}

// touched returns the chunks that the ranges touch, and those that the volume has beyond what the ranges are about.
func (c *Changes) touched(g geometry) (*chunkSet, error) {
	if problem := c.problem(g.size); problem != "" {
		return nil, &ChangesError{Index: -1, Problem: problem}
	}
	set := newChunkSet(g.chunks())
	index, end := 0, int64(0)
	for r, err := range c.Ranges {
		if err != nil {
			return nil, &ChangesError{Index: -1, Problem: fmt.Sprintf("it broke off after %d ranges", index), Err: err}
		}
		if problem := r.problem(end, c.VolumeSize); problem != "" {
			return nil, &ChangesError{Index: index, Range: r, Problem: problem}
		}
		end = r.Offset + r.Length
		set.addRange(g.index(r.Offset), g.index(end-1))
		index++
	}
	if c.VolumeSize < g.size {
		set.addRange(g.index(c.VolumeSize), g.chunks()-1)
	}
	return set, nil
}

func (c *Changes) problem(size int64) string {
	switch {
	case c.Kind != Delta && c.Kind != Allocated:
		return fmt.Sprintf("its kind is %.64q and neither %s nor %s", string(c.Kind), Delta, Allocated)
	case c.Kind == Delta && c.Base == "":
		return "it does not say which state it is relative to"
	case c.Kind == Allocated && c.Base != "":
		return fmt.Sprintf("it lists what is allocated, and yet names a base %.200q", c.Base)
	case c.VolumeSize <= 0:
		return fmt.Sprintf("its volume has %d bytes", c.VolumeSize)
	case c.VolumeSize > size:
		return fmt.Sprintf("its volume has %d bytes, and the one that is read %d", c.VolumeSize, size)
	case c.Ranges == nil:
		return "it has no ranges"
	}
	return ""
}

// problem says what keeps a range from following one that ends at end, or "".
func (r Range) problem(end, size int64) string {
	switch {
	case r.Offset < 0:
		return "it begins before the volume"
	case r.Length <= 0:
		return "it is empty"
	case r.Offset < end:
		return fmt.Sprintf("it begins before the end of the one before it, at %d", end)
	case r.Offset > size || r.Length > size-r.Offset:
		return fmt.Sprintf("it ends beyond the volume's %d bytes", size)
	}
	return ""
}
