// Package fsmeta reads what Linux knows of a file, besides its content, in the terms of a tree's nodes.
//
// # What it does
//
// It stats, lists directories, and reads links and extended attributes, always by the name of one entry relative to
// an open directory, and never through a symlink.
//
// # Minimal use
//
//	st, err := fsmeta.Lstat(dirfd, "name")
//	node := fsmeta.Node("name", &st)
//	node.Xattrs, err = fsmeta.Xattrs(dirfd, "name")
//
// # Guarantees
//
// Names are raw bytes. Times are in UTC with nanoseconds. Attributes are sorted by name. Interrupted calls are
// repeated.
//
// # What it never does
//
// It changes nothing, follows no symlink, and runs on Linux only.
package fsmeta
