package tree

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"example.com/pvcbackup/backup/repo/id"
)

const (
	head = `{"nodes":[`
	tail = "]}\n"
)

// Builder writes one tree. The zero value is an empty directory, ready to use.
type Builder struct {
	buf   []byte
	last  string
	count int
}

// Add appends n. Its name must be greater, byte by byte, than that of the node before it; a violation is a
// *FormatError and leaves the tree as it was.
func (b *Builder) Add(n *Node) error {
	if problem := n.problem(); problem != "" {
		return b.fail(n, problem)
	}
	if n.Type == File && n.Content == nil {
		return b.fail(n, "the file has no content list")
	}
	if b.count > 0 && n.Name <= b.last {
		return b.fail(n, "the name does not ascend after "+quoteShort(b.last))
	}
	if b.count == 0 {
		b.buf = append(b.buf[:0], head...)
	} else {
		b.buf = append(b.buf, ',')
	}
	before := len(b.buf)
	buf, err := appendNode(b.buf, n)
	if err != nil {
		b.buf = b.buf[:max(before-1, 0)]
		return &FormatError{Index: b.count, Name: n.Name, Problem: "it cannot be encoded", Err: err}
	}
	b.buf, b.last = buf, n.Name
	b.count++
	return nil
}

func (b *Builder) fail(n *Node, problem string) error {
	return &FormatError{Index: b.count, Name: n.Name, Problem: problem}
}

// Len returns the number of nodes added.
func (b *Builder) Len() int { return b.count }

// Bytes returns the finished tree, which shares the builder's memory and is valid until the next call of Add or Reset.
func (b *Builder) Bytes() []byte {
	if b.count == 0 {
		return append(append(b.buf[:0], head...), tail...)
	}
	return append(b.buf, tail...)
}

// Reset empties the builder and keeps its memory.
func (b *Builder) Reset() { b.buf, b.last, b.count = b.buf[:0], "", 0 }

// appendNode writes what encoding/json would write for the format's struct. It is written out because trees are
// encoded once for every file of every run; a fuzz test holds the two equal.
func appendNode(b []byte, n *Node) ([]byte, error) {
	b = append(b, `{"name":`...)
	b = appendName(b, n.Name)
	b = append(b, `,"type":`...)
	b = appendString(b, string(n.Type))
	b = appendUint(b, `,"mode":`, uint64(n.Mode), true)
	b = append(b, `,"mtime":`...)
	start := len(b)
	b = appendTime(b, n.ModTime)
	modified := b[start:]
	b = append(b, `,"atime":`...)
	if n.AccessTime == n.ModTime { // nearly always, and formatting is dear
		b = append(b, modified...)
	} else {
		b = appendTime(b, n.AccessTime)
	}
	b = appendTime(append(b, `,"ctime":`...), n.ChangeTime)
	b = appendUint(b, `,"uid":`, uint64(n.UID), false)
	b = appendUint(b, `,"gid":`, uint64(n.GID), false)
	b = appendText(b, `,"user":`, n.User)
	b = appendText(b, `,"group":`, n.Group)
	b = appendUint(b, `,"inode":`, n.Inode, true)
	b = appendUint(b, `,"device_id":`, n.DeviceID, true)
	b = appendUint(b, `,"size":`, n.Size, true)
	b = appendUint(b, `,"links":`, n.Links, true)
	b = appendText(b, `,"linktarget":`, n.LinkTarget)
	if !utf8.ValidString(n.LinkTarget) {
		b = append(b, `,"linktarget_raw":`...)
		b = appendBase64(b, []byte(n.LinkTarget))
	}
	b = appendXattrs(b, n.Xattrs)
	if len(n.GenericAttributes) > 0 {
		text, err := json.Marshal(n.GenericAttributes)
		if err != nil {
			return b, fmt.Errorf("generic attributes: %w", err)
		}
		b = append(append(b, `,"generic_attributes":`...), text...)
	}
	b = appendUint(b, `,"device":`, n.Device, true)
	b = appendContent(b, n.Content)
	if !n.Subtree.IsZero() {
		b = append(b, `,"subtree":`...)
		b = appendID(b, n.Subtree)
	}
	b = appendText(b, `,"error":`, n.Error)
	return append(b, '}'), nil
}

func appendTime(b []byte, t time.Time) []byte {
	return append(clampTime(t).AppendFormat(append(b, '"'), time.RFC3339Nano), '"')
}

func appendUint(b []byte, key string, v uint64, omitZero bool) []byte {
	if v == 0 && omitZero {
		return b
	}
	return strconv.AppendUint(append(b, key...), v, 10)
}

func appendText(b []byte, key, v string) []byte {
	if v == "" {
		return b
	}
	return appendString(append(b, key...), v)
}

func appendXattrs(b []byte, xattrs []Xattr) []byte {
	if len(xattrs) == 0 {
		return b
	}
	b = append(b, `,"extended_attributes":[`...)
	for i, x := range xattrs {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(append(b, `{"name":`...), x.Name)
		b = appendBase64(append(b, `,"value":`...), x.Value)
		b = append(b, '}')
	}
	return append(b, ']')
}

func appendContent(b []byte, content []id.ID) []byte {
	b = append(b, `,"content":`...)
	if content == nil {
		return append(b, "null"...)
	}
	b = slices.Grow(b, len(content)*(2*id.Size+len(`"",`))+len("[]")) // a volume has a long list
	b = append(b, '[')
	for i, c := range content {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendID(b, c)
	}
	return append(b, ']')
}

func appendID(b []byte, v id.ID) []byte {
	return append(hex.AppendEncode(append(b, '"'), v[:]), '"')
}

func appendBase64(b, v []byte) []byte {
	return append(base64.StdEncoding.AppendEncode(append(b, '"'), v), '"')
}

// appendString writes s as encoding/json does, with its escapes of <, > and &.
func appendString(b []byte, s string) []byte {
	if plain(s) {
		return append(append(append(b, '"'), s...), '"')
	}
	text, err := json.Marshal(s)
	if err != nil { // a string always marshals
		panic(err)
	}
	return append(b, text...)
}

// appendName writes a raw name: quoted as Go source, without the quotes, and that as a JSON string.
func appendName(b []byte, raw string) []byte {
	if plain(raw) {
		return append(append(append(b, '"'), raw...), '"')
	}
	return appendString(b, quoteName(raw))
}

func quoteName(raw string) string {
	q := strconv.Quote(raw)
	return q[1 : len(q)-1]
}

func unquoteName(s string) (string, error) {
	raw, err := strconv.Unquote(`"` + s + `"`)
	if err != nil {
		return "", fmt.Errorf("name %s: %w", quoteShort(s), err)
	}
	return raw, nil
}

// plain reports whether neither quoting nor JSON changes s.
func plain(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case c < 0x20, c >= 0x7f, c == '"', c == '\\', c == '<', c == '>', c == '&':
			return false
		}
	}
	return true
}

// clampTime moves t into the years that RFC 3339 can write.
func clampTime(t time.Time) time.Time {
	switch y := t.Year(); {
	case y < 0:
		return time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC)
	case y > 9999:
		return time.Date(9999, 12, 31, 23, 59, 59, 999999999, time.UTC)
	}
	return t
}
