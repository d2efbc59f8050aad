package snapshot

import "example.com/pvcbackup/snapshot/internal/naming"

// Name builds an object name from a prefix and what identifies the object. It
// is a valid DNS label of at most 63 bytes: a readable stem, cut where needed,
// and a hash over all that was given, with its boundaries. Equal input gives
// the equal name in every process; different input gives different names, as
// far as 80 bits of SHA-256 can tell them apart.
func Name(prefix string, parts ...string) string { return naming.Name(prefix, parts...) }
