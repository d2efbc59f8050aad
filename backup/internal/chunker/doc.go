// Package chunker decides where the content of a file is cut into blobs.
//
// # What it does
//
// A Splitter looks at the beginning of what is left of a file and says how long the next chunk is. Gear cuts by
// content, with a table keyed by the repository's polynomial, so that copies made with the same polynomial
// deduplicate and chunk sizes tell an outsider little; Rabin cuts exactly where restic does; Fixed cuts at multiples
// of a size, for block volumes.
//
// # Minimal use
//
//	s, err := chunker.New(chunker.Gear, repository.Polynomial(), 0)
//	cut := s.Next(data, offset) // data holds at least s.Window() bytes, or all that is left of the file
//
// # Guarantees
//
// Where 512 KiB of zeros begin at a chunk's start, the chunk is exactly those: stock restic restores such chunks as
// holes. A file of at most 512 KiB is one chunk. Equal content under an equal polynomial is cut equally.
//
// # What it never does
//
// It reads nothing, copies nothing and keeps nothing of the data.
package chunker
