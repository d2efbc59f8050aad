package tree

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"time"

	"example.com/pvcbackup/backup/repo/id"
)

// Limits bound what a Decoder accepts. A zero field takes its default.
type Limits struct {
	// Bytes is the largest encoded tree; default 2 GiB.
	Bytes int
	// Nodes is the largest number of entries; default 50 million.
	Nodes int
}

// Decoder reads one encoded tree, node by node, so that a directory of a million entries is never a million nodes.
type Decoder struct {
	in     scanner
	limits Limits
	opened bool
	last   string
	count  int
	err    error
}

// NewDecoder reads encoded, which must not change meanwhile. The nodes it returns do not refer to it.
func NewDecoder(encoded []byte, limits Limits) *Decoder {
	if limits.Bytes <= 0 {
		limits.Bytes = 2 << 30
	}
	if limits.Nodes <= 0 {
		limits.Nodes = 50_000_000
	}
	d := &Decoder{in: scanner{b: encoded}, limits: limits}
	if len(encoded) > limits.Bytes {
		d.err = &FormatError{Problem: fmt.Sprintf("more than %d bytes", limits.Bytes), Err: ErrTooLarge}
	}
	return d
}

// All yields the nodes of an encoded tree; an error ends it.
func All(encoded []byte) iter.Seq2[*Node, error] {
	return func(yield func(*Node, error) bool) {
		d := NewDecoder(encoded, Limits{})
		for {
			n, err := d.Next()
			if errors.Is(err, io.EOF) {
				return
			}
			if !yield(n, err) || err != nil {
				return
			}
		}
	}
}

// Next returns the next node, which the caller may keep, or io.EOF after the last one. Any other error is a
// *FormatError. Once there was an error, every later call returns it again.
func (d *Decoder) Next() (*Node, error) {
	if d.err != nil {
		return nil, d.err
	}
	n, err := d.next()
	if err != nil {
		d.err = err
		return nil, err
	}
	return n, nil
}

func (d *Decoder) next() (*Node, error) {
	switch {
	case !d.opened:
		if found, err := d.open(); err != nil || !found {
			return nil, orEOF(err)
		}
		d.opened = true
		if d.in.take(']') {
			return nil, orEOF(d.rest())
		}
	case d.in.take(']'):
		return nil, orEOF(d.rest())
	case !d.in.take(','):
		return nil, d.broken("the list goes on without a comma", nil)
	}
	if d.count >= d.limits.Nodes {
		return nil, d.broken(fmt.Sprintf("more than %d nodes", d.limits.Nodes), ErrTooLarge)
	}
	n, err := d.node()
	if err != nil {
		return nil, d.broken("it cannot be read", err)
	}
	if problem := n.problem(); problem != "" {
		return nil, &FormatError{Index: d.count, Name: n.Name, Problem: problem}
	}
	if d.count > 0 && n.Name <= d.last {
		return nil, &FormatError{Index: d.count, Name: n.Name, Problem: "the name does not ascend after " + quoteShort(d.last)}
	}
	d.last = n.Name
	d.count++
	return n, nil
}

// node reads one node: as this project and restic spell it if possible, else as any JSON.
func (d *Decoder) node() (*Node, error) {
	d.in.space()
	n := new(Node)
	if end, ok := parseNode(d.in.b[d.in.i:], n); ok {
		d.in.i += end
		return n, nil
	}
	text, err := d.in.value()
	if err != nil {
		return nil, err
	}
	var w wireNode
	if err := json.Unmarshal(text, &w); err != nil {
		return nil, err
	}
	return w.node()
}

func orEOF(err error) error {
	if err == nil {
		return io.EOF
	}
	return err
}

// open reads up to the first node and reports whether there is a list at all: null is an empty directory.
func (d *Decoder) open() (found bool, err error) {
	if !d.in.take('{') {
		return false, d.broken("it is not an object", nil)
	}
	for first := true; !d.in.take('}'); first = false {
		key, err := d.key(first)
		if err != nil {
			return false, err
		}
		if key != "nodes" {
			if _, err := d.in.checked(); err != nil {
				return false, d.broken("a field cannot be read", err)
			}
			continue
		}
		if d.in.take('[') {
			return true, nil
		}
		if text, err := d.in.checked(); err != nil || string(text) != "null" {
			return false, d.broken("nodes is not a list", err)
		}
		return false, d.rest()
	}
	return false, d.broken("there is no list of nodes", nil)
}

// rest reads what follows the list of nodes.
func (d *Decoder) rest() error {
	for !d.in.take('}') {
		key, err := d.key(false)
		if err != nil {
			return err
		}
		if key == "nodes" {
			return d.broken("there are two lists of nodes", nil)
		}
		if _, err := d.in.checked(); err != nil {
			return d.broken("a field cannot be read", err)
		}
	}
	if d.in.space(); d.in.i != len(d.in.b) {
		return d.broken("something follows the tree", nil)
	}
	return nil
}

func (d *Decoder) key(first bool) (string, error) {
	if !first && !d.in.take(',') {
		return "", d.broken("the tree ends early or is not JSON", nil)
	}
	d.in.space()
	text, err := d.in.value()
	if err != nil {
		return "", d.broken("a key cannot be read", err)
	}
	var key string
	if err := json.Unmarshal(text, &key); err != nil || !d.in.take(':') {
		return "", d.broken("a key cannot be read", err)
	}
	return key, nil
}

func (d *Decoder) broken(problem string, err error) error {
	return &FormatError{Index: d.count, Problem: problem, Err: err}
}

// scanner finds the extent of JSON values; what is inside them is checked by encoding/json.
type scanner struct {
	b []byte
	i int
}

func (s *scanner) space() {
	for s.i < len(s.b) && (s.b[s.i] == ' ' || s.b[s.i] == '\n' || s.b[s.i] == '\t' || s.b[s.i] == '\r') {
		s.i++
	}
}

// take skips white space and then c, and reports whether c was there.
func (s *scanner) take(c byte) bool {
	s.space()
	if s.i < len(s.b) && s.b[s.i] == c {
		s.i++
		return true
	}
	return false
}

var errEnds = errors.New("it ends early or is not JSON")

// value returns the next value without looking into it.
func (s *scanner) value() ([]byte, error) {
	s.space()
	start, depth := s.i, 0
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case '"':
			if !s.text() {
				return nil, errEnds
			}
		case '{', '[':
			depth++
			s.i++
		case '}', ']':
			if depth == 0 {
				return s.scalar(start)
			}
			depth--
			s.i++
		case ',', ':', ' ', '\n', '\t', '\r':
			if depth == 0 {
				return s.scalar(start)
			}
			s.i++
			continue
		default:
			s.i++
			if depth == 0 {
				continue
			}
		}
		if c := s.b[s.i-1]; depth == 0 && (c == '"' || c == '}' || c == ']') {
			return s.b[start:s.i], nil
		}
	}
	return nil, errEnds
}

func (s *scanner) scalar(start int) ([]byte, error) {
	if s.i == start {
		return nil, errEnds
	}
	return s.b[start:s.i], nil
}

func (s *scanner) text() bool {
	for s.i++; s.i < len(s.b); s.i++ {
		switch s.b[s.i] {
		case '\\':
			s.i++
		case '"':
			s.i++
			return true
		}
	}
	return false
}

// checked returns the next value, which is valid JSON.
func (s *scanner) checked() ([]byte, error) {
	text, err := s.value()
	if err == nil && !json.Valid(text) {
		err = errEnds
	}
	return bytes.TrimSpace(text), err
}

// wireNode is the format's struct: its order and its omissions are what appendNode writes.
type wireNode struct {
	Name              string                     `json:"name"`
	Type              Type                       `json:"type"`
	Mode              fs.FileMode                `json:"mode,omitempty"`
	ModTime           time.Time                  `json:"mtime"`
	AccessTime        time.Time                  `json:"atime"`
	ChangeTime        time.Time                  `json:"ctime"`
	UID               uint32                     `json:"uid"`
	GID               uint32                     `json:"gid"`
	User              string                     `json:"user,omitempty"`
	Group             string                     `json:"group,omitempty"`
	Inode             uint64                     `json:"inode,omitempty"`
	DeviceID          uint64                     `json:"device_id,omitempty"`
	Size              uint64                     `json:"size,omitempty"`
	Links             uint64                     `json:"links,omitempty"`
	LinkTarget        string                     `json:"linktarget,omitempty"`
	LinkTargetRaw     []byte                     `json:"linktarget_raw,omitempty"`
	Xattrs            []Xattr                    `json:"extended_attributes,omitempty"`
	GenericAttributes map[string]json.RawMessage `json:"generic_attributes,omitempty"`
	Device            uint64                     `json:"device,omitempty"`
	Content           []id.ID                    `json:"content"`
	Subtree           *id.ID                     `json:"subtree,omitempty"`
	Error             string                     `json:"error,omitempty"`
}

func (w *wireNode) node() (*Node, error) {
	name, err := unquoteName(w.Name)
	if err != nil {
		return nil, err
	}
	n := &Node{
		Name: name, Type: w.Type, Mode: w.Mode,
		ModTime: w.ModTime, AccessTime: w.AccessTime, ChangeTime: w.ChangeTime,
		UID: w.UID, GID: w.GID, User: w.User, Group: w.Group,
		Inode: w.Inode, DeviceID: w.DeviceID, Size: w.Size, Links: w.Links,
		LinkTarget: w.LinkTarget, Xattrs: w.Xattrs, GenericAttributes: w.GenericAttributes,
		Device: w.Device, Content: w.Content, Error: w.Error,
	}
	if w.LinkTargetRaw != nil {
		n.LinkTarget = string(w.LinkTargetRaw)
	}
	if w.Subtree != nil {
		n.Subtree = *w.Subtree
	}
	return n, nil
}
