// Package treecmp compares two directories, entry by entry.
//
// # What it does
//
// It compares names, types, contents, modes, modification times, link targets, hard links, device numbers and extended
// attributes, and, when asked, owners and holes. It is how restores are proven, in tests and in rehearsals.
//
// # Minimal use
//
//	differences, err := treecmp.Compare("/source", "/restored", treecmp.Options{Owners: true})
//
// # Guarantees
//
// What is left out is exactly this: access times, change times, and sockets; an empty lost+found at the root; and owners
// and holes unless asked for. Two directories without differences are equal in everything else.
//
// # What it never does
//
// It changes nothing, follows no symlink, and runs on Linux only.
package treecmp
