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

	// TagBlockPrefix begins the tags that package blockdev sets on the snapshots of volumes.
	TagBlockPrefix = "block-"

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

// ChunkerTag is the tag that records a way of cutting.
func ChunkerTag(kind Chunker) string { return tagChunker + string(kind) }

// Reserved reports whether a tag is one that only the engine may set.
func Reserved(tag string) bool {
	return tag == TagEmpty || tag == TagPartial ||
		strings.HasPrefix(tag, tagChunker) || strings.HasPrefix(tag, TagBlockPrefix)
}

// ofFolder says which snapshots can be parents of a folder's: complete ones, and none of a volume.
func ofFolder(tags []string) bool {
	isBlock := func(tag string) bool { return strings.HasPrefix(tag, TagBlockPrefix) }
	return Complete(tags) && !slices.ContainsFunc(tags, isBlock)
}
