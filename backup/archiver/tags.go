package archiver

import (
	"slices"
	"strings"
)

// Tags that this package sets on snapshots.
const (
	// TagEmpty marks the snapshot of a source with nothing in it.
	TagEmpty = "empty"
	// TagPartial marks the snapshot of a source that could not be read completely.
	TagPartial = "partial"

	tagChunker = "chunker="
)

// Complete reports whether a snapshot with these tags stands for a whole, non-empty source. Only such snapshots are
// parents, count in retention, and are what "latest" means.
func Complete(tags []string) bool {
	return !slices.Contains(tags, TagEmpty) && !slices.Contains(tags, TagPartial)
}

// ChunkerOf returns the way of cutting that a snapshot's tags record; Rabin if none, which is how restic cuts.
func ChunkerOf(tags []string) Chunker {
	for _, t := range tags {
		if kind, ok := strings.CutPrefix(t, tagChunker); ok {
			return Chunker(kind)
		}
	}
	return Rabin
}

func reserved(tag string) bool {
	return tag == TagEmpty || tag == TagPartial || strings.HasPrefix(tag, tagChunker)
}
