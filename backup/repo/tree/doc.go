// Package tree reads and writes the directory listings of a repository: trees and their nodes.
//
// # What it does
//
// A tree is one directory: a list of nodes in strictly ascending order of their raw names. Its encoding is, byte for
// byte, the one of the restic repository format, version 2, so that equal directories have equal blobs whoever
// wrote them. Builder writes a tree node by node, Decoder reads one node by node; neither holds more than it must.
//
// # Minimal use
//
//	var b tree.Builder
//	err := b.Add(&tree.Node{Name: "a", Type: tree.File, Mode: 0o644, Content: []id.ID{}})
//	blob := b.Bytes()
//
//	for node, err := range tree.All(blob) { … }
//
// # Guarantees
//
// A name is never empty, never "." or "..", and has no slash and no zero byte; names strictly ascend; a directory
// has a subtree; a file's content is a list. Builder refuses to write anything else and Decoder refuses to return it:
// both fail with an error that is ErrMalformed. No input makes Decoder panic, or read more than its limits allow.
//
// # What it never does
//
// It performs no I/O of its own, looks at no filesystem, and imports nothing of the repository but its IDs.
package tree
