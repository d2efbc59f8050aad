// Package id holds the identifier that everything in a repository is named by: a SHA-256.
//
// # What it does
//
// An ID names a stored object (the hash of its stored bytes) or a blob (the hash of its plaintext), as in the
// restic repository format, version 2. It is written as 64 lower-case hexadecimal characters.
//
// # Minimal use
//
//	blob := id.Hash(data)
//	parsed, err := id.Parse(blob.String())
//
// # Guarantees
//
// Parse accepts exactly what String writes, and nothing else.
//
// # What it never does
//
// It performs no I/O and allocates only the strings it returns.
package id
