package tree

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"example.com/pvcbackup/backup/repo/id"
	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

func mustID(t testing.TB, s string) id.ID {
	t.Helper()
	v, err := id.Parse(s)
	require.NoError(t, err)
	return v
}

func build(t testing.TB, nodes ...*Node) []byte {
	t.Helper()
	var b Builder
	for _, n := range nodes {
		require.NoError(t, b.Add(n))
	}
	return b.Bytes()
}

func read(encoded []byte) ([]*Node, error) {
	var nodes []*Node
	for n, err := range All(encoded) {
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, n)
	}
	return nodes, nil
}

const zeroChunk = "07854d2fef297a06ba81685e660c332de36d5d18d546927d30daad6d7fda1541"

func vectorNode(t testing.TB) *Node {
	m := time.Date(2024, 2, 3, 4, 5, 6, 700_000_000, time.UTC)
	return &Node{
		Name: "a\"b\\c\n\xff<&>é", Type: File, Mode: 0o644, ModTime: m, AccessTime: m,
		ChangeTime: time.Date(2024, 2, 3, 4, 5, 7, 0, time.FixedZone("", 3600)),
		UID:        1000, GID: 100, User: "u", Inode: 42, DeviceID: 7, Size: 524288, Links: 1,
		Content: []id.ID{mustID(t, zeroChunk)},
	}
}

func TestAnEmptyDirectoryHasTheFormatsWellKnownID(t *testing.T) {
	got := build(t)
	require.Equal(t, "{\"nodes\":[]}\n", string(got))
	if diff := cmp.Diff("ac08ce34ba4f8123618661bef2425f7028ffb9ac740578a3ee88684d2523fee8", id.Hash(got).String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestATreeHasThePublishedBytesAndID(t *testing.T) {
	want := `{"nodes":[{"name":"a\\\"b\\\\c\\n\\xff\u003c\u0026\u003eé","type":"file","mode":420,` +
		`"mtime":"2024-02-03T04:05:06.7Z","atime":"2024-02-03T04:05:06.7Z","ctime":"2024-02-03T04:05:07+01:00",` +
		`"uid":1000,"gid":100,"user":"u","inode":42,"device_id":7,"size":524288,"links":1,` +
		`"content":["` + zeroChunk + `"]}]}` + "\n"
	got := build(t, vectorNode(t))
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff("1c13406f928e62022d112b3d40f623890b3928e60e4a55596a726fc445be04ad", id.Hash(got).String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	nodes, err := read(got)
	require.NoError(t, err)
	if diff := cmp.Diff([]*Node{vectorNode(t)}, nodes); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestNamesAreQuotedTwice(t *testing.T) {
	for raw, want := range map[string]string{
		`back\slash`:      `"back\\\\slash"`,
		"new\nline":       `"new\\nline"`,
		"\xff\xfe-bad":    `"\\xff\\xfe-bad"`,
		"html<&>tag":      `"html\u003c\u0026\u003etag"`,
		"\ufffd":          `"` + "\ufffd" + `"`,
		`q"uote`:          `"q\\\"uote"`,
		"nbsp\u00a0":      `"nbsp\\u00a0"`,
		"line\u2028":      `"line\\u2028"`,
		"joiner\u200d":    `"joiner\\u200d"`,
		"bell\a":          `"bell\\a"`,
		"\x01":            `"\\x01"`,
		"\x7f":            `"\\x7f"`,
		"tag\U000e0001":   `"tag\\U000e0001"`,
		"plain":           `"plain"`,
		"…dots":           `"…dots"`,
		"mixed \xc3 half": `"mixed \\xc3 half"`,
	} {
		t.Run(fmt.Sprintf("%q", raw), func(t *testing.T) {
			got := string(appendName(nil, raw))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			var s string
			require.NoError(t, json.Unmarshal([]byte(got), &s))
			back, err := unquoteName(s)
			require.NoError(t, err)
			if diff := cmp.Diff(raw, back); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestASymlinkKeepsItsRawTarget(t *testing.T) {
	n := &Node{Name: "l", Type: Symlink, Mode: fs.ModeSymlink | 0o777, LinkTarget: "\x00\x01\x02\xfa\xfb\xfc"}
	got := build(t, n)
	require.Contains(t, string(got), `"linktarget":"\u0000\u0001\u0002\ufffd\ufffd\ufffd","linktarget_raw":"AAEC+vv8"`)
	nodes, err := read(got)
	require.NoError(t, err)
	if diff := cmp.Diff(n.LinkTarget, nodes[0].LinkTarget); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestModesAreGosModeBits(t *testing.T) {
	for mode, want := range map[fs.FileMode]string{
		fs.ModeDir | 0o755:                        "2147484141",
		fs.ModeSymlink | 0o777:                    "134218239",
		fs.ModeSetuid | 0o755:                     "8389101",
		fs.ModeDevice | fs.ModeCharDevice | 0o644: "69206436",
		fs.ModeDevice | 0o644:                     "67109284",
		fs.ModeNamedPipe | 0o644:                  "33554852",
	} {
		got := build(t, &Node{Name: "n", Type: FIFO, Mode: mode})
		require.Contains(t, string(got), `"mode":`+want+`,`)
	}
}

func TestTimesAreClampedToYearsThatCanBeWritten(t *testing.T) {
	got := build(t, &Node{Name: "n", Type: FIFO, ModTime: time.Date(-5, 1, 1, 0, 0, 0, 0, time.UTC), ChangeTime: time.Date(12345, 1, 1, 0, 0, 0, 0, time.UTC)})
	require.Contains(t, string(got), `"mtime":"0000-01-01T00:00:00Z"`)
	require.Contains(t, string(got), `"ctime":"9999-12-31T23:59:59.999999999Z"`)
	_, err := read(got)
	require.NoError(t, err)
}

func TestABuilderRefusesWhatIsNoTree(t *testing.T) {
	sub := id.Hash(nil)
	file := func(name string) *Node { return &Node{Name: name, Type: File, Content: []id.ID{}} }
	for name, nodes := range map[string][]*Node{
		"empty name":             {file("")},
		"dot":                    {file(".")},
		"dot dot":                {file("..")},
		"slash":                  {file("a/b")},
		"zero byte":              {file("a\x00")},
		"duplicate":              {file("a"), file("a")},
		"unsorted":               {file("b"), file("a")},
		"sorted as text only":    {file("é"), file("z")},
		"unknown type":           {{Name: "a", Type: "door"}},
		"dir without subtree":    {{Name: "a", Type: Dir}},
		"file without list":      {{Name: "a", Type: File}},
		"fifo with content":      {{Name: "a", Type: FIFO, Content: []id.ID{sub}}},
		"file with subtree":      {{Name: "a", Type: File, Content: []id.ID{}, Subtree: sub}},
		"broken generic attribs": {{Name: "a", Type: FIFO, GenericAttributes: map[string]json.RawMessage{"k": []byte("{")}}},
	} {
		t.Run(name, func(t *testing.T) {
			var b Builder
			for _, n := range nodes[:len(nodes)-1] {
				require.NoError(t, b.Add(n))
			}
			before := bytes.Clone(b.Bytes())
			err := b.Add(nodes[len(nodes)-1])
			require.ErrorIs(t, err, ErrMalformed)
			var format *FormatError
			require.ErrorAs(t, err, &format)
			if diff := cmp.Diff(string(before), string(b.Bytes())); diff != "" {
				t.Errorf("the refused node left something behind: -want +got:\n%s", diff)
			}
		})
	}
}

func TestADecoderRefusesHostileTrees(t *testing.T) {
	file := func(name string) string {
		return `{"name":"` + name + `","type":"file","mtime":"2024-01-01T00:00:00Z","atime":"2024-01-01T00:00:00Z","ctime":"2024-01-01T00:00:00Z","uid":0,"gid":0,"content":[]}`
	}
	list := func(nodes ...string) string { return `{"nodes":[` + strings.Join(nodes, ",") + `]}` }
	for name, text := range map[string]string{
		"nothing":            ``,
		"not an object":      `[]`,
		"no list":            `{}`,
		"list is a string":   `{"nodes":"x"}`,
		"two lists":          `{"nodes":[],"nodes":[]}`,
		"unfinished":         `{"nodes":[` + file("a"),
		"unfinished node":    `{"nodes":[{"name":"a"`,
		"no comma":           list(file("a") + file("b")),
		"trailing comma":     list(file("a"), ""),
		"only a comma":       list("", ""),
		"field is not JSON":  `{"a":x,"nodes":[]}`,
		"key is not text":    `{1:2,"nodes":[]}`,
		"brackets crossed":   `{"a":[}],"nodes":[]}`,
		"something follows":  list(file("a")) + "{}",
		"garbage follows":    list(file("a")) + "x",
		"parent":             list(file("..")),
		"dot":                list(file(".")),
		"absolute":           list(file("/etc/passwd")),
		"climbing":           list(file("../../x")),
		"escaped slash":      list(file(`\\x2f`)),
		"escaped zero":       list(file(`a\\x00b`)),
		"empty":              list(file("")),
		"duplicate":          list(file("a"), file("a")),
		"duplicate spelling": list(file("a"), file(`\\x61`)),
		"unsorted":           list(file("b"), file("a")),
		"broken quoting":     list(file(`a\\q`)),
		"raw newline":        list(file(`a\n`)),
		"unknown type":       `{"nodes":[{"name":"a","type":"irregular"}]}`,
		"dir without tree":   `{"nodes":[{"name":"a","type":"dir"}]}`,
		"zero subtree":       `{"nodes":[{"name":"a","type":"dir","subtree":"` + strings.Repeat("0", 64) + `"}]}`,
		"short id":           `{"nodes":[{"name":"a","type":"file","content":["00"]}]}`,
		"negative size":      `{"nodes":[{"name":"a","type":"file","size":-1,"content":[]}]}`,
		"size, no list":      `{"nodes":[{"name":"a","type":"file","size":1,"content":null}]}`,
		"node is a number":   `{"nodes":[1]}`,
	} {
		t.Run(name, func(t *testing.T) {
			_, err := read([]byte(text))
			require.ErrorIs(t, err, ErrMalformed)
			require.NotErrorIs(t, err, io.EOF)
		})
	}
}

func TestADecoderIgnoresWhatItDoesNotKnow(t *testing.T) {
	text := `{"before":{"nodes":[1]},"nodes":[{"name":"a","type":"fifo","new":[{}],"mtime":"2024-01-01T00:00:00Z"}],"after":[{"nodes":2}]}`
	nodes, err := read([]byte(text))
	require.NoError(t, err)
	require.Len(t, nodes, 1)
	nodes, err = read([]byte(`{"nodes":null,"x":1}`))
	require.NoError(t, err)
	require.Empty(t, nodes)
}

func TestADecoderStopsAtItsLimits(t *testing.T) {
	encoded := build(t, &Node{Name: "a", Type: FIFO}, &Node{Name: "b", Type: FIFO})
	for name, limits := range map[string]Limits{"bytes": {Bytes: len(encoded) - 1}, "nodes": {Nodes: 1}} {
		t.Run(name, func(t *testing.T) {
			d := NewDecoder(encoded, limits)
			var err error
			for err == nil {
				_, err = d.Next()
			}
			require.ErrorIs(t, err, ErrTooLarge)
			require.ErrorIs(t, err, ErrMalformed)
			_, again := d.Next()
			require.Equal(t, err, again)
		})
	}
}

func TestABuilderCanBeUsedAgain(t *testing.T) {
	var b Builder
	require.NoError(t, b.Add(&Node{Name: "z", Type: FIFO}))
	b.Reset()
	require.Equal(t, 0, b.Len())
	require.NoError(t, b.Add(&Node{Name: "a", Type: FIFO}))
	if diff := cmp.Diff(string(build(t, &Node{Name: "a", Type: FIFO})), string(b.Bytes())); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// standard is the encoding that encoding/json gives the format's struct.
func standard(n *Node) ([]byte, error) {
	w := wireNode{
		Name: quoteName(n.Name), Type: n.Type, Mode: n.Mode,
		ModTime: clampTime(n.ModTime), AccessTime: clampTime(n.AccessTime), ChangeTime: clampTime(n.ChangeTime),
		UID: n.UID, GID: n.GID, User: n.User, Group: n.Group, Inode: n.Inode, DeviceID: n.DeviceID,
		Size: n.Size, Links: n.Links, LinkTarget: n.LinkTarget, GenericAttributes: n.GenericAttributes,
		Device: n.Device, Content: n.Content, Error: n.Error,
	}
	if !utf8.ValidString(n.LinkTarget) {
		w.LinkTargetRaw = []byte(n.LinkTarget)
	}
	for _, x := range n.Xattrs {
		w.Xattrs = append(w.Xattrs, Xattr{Name: x.Name, Value: append([]byte{}, x.Value...)})
	}
	if !n.Subtree.IsZero() {
		w.Subtree = &n.Subtree
	}
	return json.Marshal(w)
}

func FuzzNodesAreEncodedAsTheStandardLibraryWould(f *testing.F) {
	f.Add("a\"b\\c\n\xff<&>é", "target\xff", "user.\u2028", []byte{0, 1}, uint32(0o644), int64(1), int64(5), uint64(3))
	f.Add("", "", "", []byte(nil), uint32(0), int64(-1<<62), int64(1<<62), uint64(0))
	f.Fuzz(func(t *testing.T, name, target, attr string, value []byte, mode uint32, sec, nsec int64, number uint64) {
		n := &Node{
			Name: name, Type: Type(attr), Mode: fs.FileMode(mode), ModTime: time.Unix(sec, nsec).UTC(),
			AccessTime: time.Unix(nsec, sec).UTC(), ChangeTime: time.Unix(sec, 0).In(time.FixedZone("", int(nsec%80000)/60*60)),
			UID: uint32(number), GID: mode, User: attr, Group: name, Inode: number, DeviceID: uint64(sec), Size: number, Links: number,
			LinkTarget: target, Xattrs: []Xattr{{Name: attr, Value: value}}, Device: number, Error: target,
		}
		if len(value) > 0 {
			n.Content, n.Subtree = []id.ID{id.Hash(value), id.Hash([]byte(name))}, id.Hash(value)
			n.GenericAttributes = map[string]json.RawMessage{name: []byte(`{"a" : "<" }`), attr: []byte(`1`)}
		}
		want, err := standard(n)
		if err != nil {
			return // encoding/json cannot write this zone
		}
		got, err := appendNode(nil, n)
		require.NoError(t, err)
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
}

func FuzzANameSurvivesItsEncoding(f *testing.F) {
	for _, seed := range []string{"a", "\xff", "a\\", "\"", "\u2028", "\U0010ffff", "\xed\xa0\x80"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		n := &Node{Name: raw, Type: FIFO}
		var b Builder
		if err := b.Add(n); err != nil {
			require.False(t, ValidName(raw), "a valid name was refused: %v", err)
			return
		}
		nodes, err := read(b.Bytes())
		require.NoError(t, err)
		if diff := cmp.Diff(raw, nodes[0].Name); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
}

func FuzzADecoderReturnsOnlyTreesThatCanBeWrittenAgain(f *testing.F) {
	f.Add([]byte("{\"nodes\":[]}\n"))
	f.Add(build(f, vectorNode(f)))
	f.Add(build(f, &Node{Name: "d", Type: Dir, Subtree: id.Hash(nil), Xattrs: []Xattr{{Name: "user.a"}}}))
	f.Add([]byte(`{"a":1,"nodes":[{"name":"..","type":"file"}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		nodes, err := read(data)
		if err != nil {
			require.ErrorIs(t, err, ErrMalformed)
			return
		}
		var b Builder
		for _, n := range nodes {
			if n.Type == File && n.Content == nil {
				n.Content = []id.ID{}
			}
			require.NoError(t, b.Add(n))
		}
		_, err = read(b.Bytes())
		require.NoError(t, err)
	})
}

func FuzzTheFastReaderAgreesWithTheStandardLibrary(f *testing.F) {
	seed, err := appendNode(nil, &Node{
		Name: "plain", Type: Symlink, Mode: 1, User: "u", Group: "g", Inode: 1, DeviceID: 2, Size: 3, Links: 4,
		LinkTarget: "t", Device: 5, Content: []id.ID{id.Hash(nil), id.Hash([]byte("a"))}, Subtree: id.Hash(nil),
	})
	require.NoError(f, err)
	f.Add(seed)
	f.Add(bytes.Replace(seed, []byte(`"uid":0`), []byte(`"uid":00`), 1))
	f.Add(bytes.Replace(seed, []byte(`"uid":0`), []byte(`"uid":4294967296`), 1))
	f.Add(bytes.Replace(seed, []byte(`"inode":1`), []byte(`"inode":18446744073709551616`), 1))
	f.Add(bytes.Replace(seed, []byte(`Z"`), []byte(`+01:00"`), 2))
	f.Fuzz(func(t *testing.T, data []byte) {
		var got Node
		end, ok := parseNode(data, &got)
		if !ok {
			return
		}
		var w wireNode
		require.NoError(t, json.Unmarshal(data[:end], &w))
		want, err := w.node()
		require.NoError(t, err)
		if diff := cmp.Diff(want, &got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
}

func benchmarkTree(b *testing.B) []byte {
	var builder Builder
	now := time.Date(2024, 1, 2, 3, 4, 5, 678901234, time.UTC)
	for i := range 10_000 {
		require.NoError(b, builder.Add(&Node{
			Name: fmt.Sprintf("file-%08d.txt", i), Type: File, Mode: 0o644, ModTime: now, AccessTime: now, ChangeTime: now,
			UID: 1000, GID: 1000, Inode: uint64(i), Size: 4096, Links: 1, Content: []id.ID{id.Hash([]byte{byte(i)})},
		}))
	}
	return builder.Bytes()
}

func BenchmarkDecode(b *testing.B) {
	encoded := benchmarkTree(b)
	b.SetBytes(int64(len(encoded)))
	for b.Loop() {
		_, err := read(encoded)
		require.NoError(b, err)
	}
}

func BenchmarkEncode(b *testing.B) {
	nodes, err := read(benchmarkTree(b))
	require.NoError(b, err)
	var builder Builder
	b.SetBytes(int64(len(benchmarkTree(b))))
	for b.Loop() {
		builder.Reset()
		for _, n := range nodes {
			require.NoError(b, builder.Add(n))
		}
	}
}
