// Package hardlink finds the further names of files that have several.
//
// # What it does
//
// A snapshot lists a file with several names once under each of them. Key tells which entries are one file, and Names
// remembers the first name of each.
//
// # Minimal use
//
//	var names hardlink.Names
//	if first, found := names.First("dir/b", node); found { … } // node is the file that was listed as first
//
// # Guarantees
//
// What a file holds belongs to its key, so that reused or forged inode numbers do not merge different files.
//
// # What it never does
//
// It looks at no file system.
package hardlink

import (
	"crypto/sha256"
	"fmt"

	"example.com/pvcbackup/backup/repo/tree"
)

// Key is equal for the entries of one file.
type Key struct {
	inode, device uint64
	kind          tree.Type
	content       [sha256.Size]byte
}

// KeyOf returns the key of an entry, and false if it has no other name. Inode 0 is no inode.
func KeyOf(n *tree.Node) (Key, bool) {
	if n.Links < 2 || n.Inode == 0 || n.Type == tree.Dir {
		return Key{}, false
	}
	h := sha256.New()
	fmt.Fprintf(h, "%q %d %d\n", n.LinkTarget, n.Device, n.Size)
	for _, c := range n.Content {
		h.Write(c[:])
	}
	return Key{inode: n.Inode, device: n.DeviceID, kind: n.Type, content: [sha256.Size]byte(h.Sum(nil))}, true
}

// Names are the first names of files. The zero value knows none.
type Names struct{ first map[Key]string }

// First returns the name under which the file was given before. If there is none, name is its first one from now on.
func (s *Names) First(name string, n *tree.Node) (first string, found bool) {
	key, linked := KeyOf(n)
	if !linked {
		return "", false
	}
	if first, found = s.first[key]; found {
		return first, true
	}
	if s.first == nil {
		s.first = map[Key]string{}
	}
	s.first[key] = name
	return "", false
}
