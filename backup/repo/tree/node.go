package tree

import (
	"encoding/json"
	"io/fs"
	"strings"
	"time"

	"example.com/pvcbackup/backup/repo/id"
)

// Type says what a node is. The zero value is not a type.
type Type string

// The types that the format knows. A socket is never written by this project; readers meet them in foreign trees.
const (
	File       Type = "file"
	Dir        Type = "dir"
	Symlink    Type = "symlink"
	Device     Type = "dev"
	CharDevice Type = "chardev"
	FIFO       Type = "fifo"
	Socket     Type = "socket"
)

func (t Type) known() bool {
	switch t {
	case File, Dir, Symlink, Device, CharDevice, FIFO, Socket:
		return true
	}
	return false
}

// Node is one entry of a directory. Fields that do not belong to the node's Type are zero.
type Node struct {
	// Name is the raw name: bytes, not necessarily UTF-8.
	Name string
	Type Type
	// Mode holds Go's mode bits, type bits included, not the kernel's st_mode.
	Mode fs.FileMode
	// Times keep nanoseconds and their zone. Years are clamped to 0…9999 when written.
	ModTime, AccessTime, ChangeTime time.Time
	UID, GID                        uint32
	// User and Group are names at backup time, empty when not recorded.
	User, Group string
	Inode       uint64
	// DeviceID tells hard links of different filesystems apart; it is meaningful only where Links > 1.
	DeviceID uint64
	// Size is in bytes, files only; it equals the sum of the plaintext lengths of Content.
	Size uint64
	// Links is the number of hard links; zero for directories.
	Links uint64
	// LinkTarget is the raw target of a symlink: bytes, not necessarily UTF-8.
	LinkTarget string
	Xattrs     []Xattr
	// GenericAttributes are attributes of other systems, kept as they were found.
	GenericAttributes map[string]json.RawMessage
	// Device is st_rdev of a device.
	Device uint64
	// Content lists the data blobs of a file; an empty file has an empty list, everything else nil.
	Content []id.ID
	// Subtree is the tree blob of a directory; zero for everything else.
	Subtree id.ID
	// Error is reserved by the format.
	Error string
}

// Xattr is one extended attribute. A nil Value is written as an empty one.
type Xattr struct {
	Name  string `json:"name"`
	Value []byte `json:"value"`
}

// ValidName reports whether name may stand in a tree: not empty, not "." or "..", no slash, no zero byte.
func ValidName(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.ContainsAny(name, "/\x00")
}

// problem says what keeps n out of a tree, or "".
func (n *Node) problem() string {
	switch {
	case !ValidName(n.Name):
		return "the name is not the name of a directory entry"
	case !n.Type.known():
		return "the type " + quoteShort(string(n.Type)) + " is unknown"
	case n.Type == Dir && n.Subtree.IsZero():
		return "the directory has no subtree"
	case n.Type != Dir && !n.Subtree.IsZero():
		return "it has a subtree and is no directory"
	case n.Type == File && n.Content == nil && n.Size != 0:
		return "the file has no content list"
	case n.Type != File && len(n.Content) != 0:
		return "it has content and is no file"
	}
	return ""
}
