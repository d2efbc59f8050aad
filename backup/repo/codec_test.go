package repo

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"example.com/pvcbackup/backup/repo/id"
	"example.com/pvcbackup/backup/repo/internal/crypto"
)

const goodConfig = `{"version":2,"id":"` + hexID + `","chunker_polynomial":"3DA3358B4DC173"}`
const hexID = "5956a3f67a6230d4a92cefb29529f10196c7d92582ec305fd71ff6d331d6271b"

func TestParseConfig(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want error // nil: good
	}{
		"version 2":            {goodConfig, nil},
		"version 1":            {`{"version":1,"id":"` + hexID + `","chunker_polynomial":"25b468838dcb75"}`, nil},
		"unknown fields":       {`{"version":2,"id":"` + hexID + `","chunker_polynomial":"25b468838dcb75","is_hot":true}`, nil},
		"version 3":            {`{"version":3,"id":"` + hexID + `","chunker_polynomial":"25b468838dcb75"}`, ErrVersion},
		"no version":           {`{"id":"` + hexID + `","chunker_polynomial":"25b468838dcb75"}`, ErrVersion},
		"bad id":               {`{"version":2,"id":"xyz","chunker_polynomial":"25b468838dcb75"}`, ErrDamaged},
		"no polynomial":        {`{"version":2,"id":"` + hexID + `"}`, ErrDamaged},
		"reducible polynomial": {`{"version":2,"id":"` + hexID + `","chunker_polynomial":"25b468838dcb74"}`, ErrDamaged},
		"degree 63":            {`{"version":2,"id":"` + hexID + `","chunker_polynomial":"ffffffffffffffff"}`, ErrDamaged},
		"zero polynomial":      {`{"version":2,"id":"` + hexID + `","chunker_polynomial":"0"}`, ErrDamaged},
		"empty":                {``, ErrDamaged},
	} {
		t.Run(name, func(t *testing.T) {
			_, p, err := parseConfig([]byte(c.text))
			require.ErrorIs(t, err, c.want)
			if c.want == nil {
				require.NotZero(t, p)
			}
		})
	}
}

func FuzzParseConfig(f *testing.F) {
	f.Add([]byte(goodConfig))
	f.Add([]byte(`{"version":2}`))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, text []byte) {
		c, p, err := parseConfig(text)
		if err == nil && (c.Version < 1 || c.Version > 2 || checkPolynomial(p) != nil) {
			t.Fatalf("accepted %+v", c)
		}
	})
}

func TestKeyFileOpensOnlyWithItsPassword(t *testing.T) {
	master := crypto.NewKey()
	text, err := sealKey(master, "secret", KeyOptions{Username: "u", Scrypt: ScryptParams{2, 1, 1}}, time.Now())
	require.NoError(t, err)
	k, err := parseKeyFile(text)
	require.NoError(t, err)
	got, err := k.open("secret")
	require.NoError(t, err)
	require.Equal(t, master, got)
	_, err = k.open("Secret")
	require.ErrorIs(t, err, crypto.ErrUnauthenticated)
}

func TestKeyFileDefaultsToResticsParameters(t *testing.T) {
	text, err := sealKey(crypto.NewKey(), "secret", KeyOptions{}, time.Now())
	require.NoError(t, err)
	k, err := parseKeyFile(text)
	require.NoError(t, err)
	require.Equal(t, crypto.Params{N: 32768, R: 8, P: 1}, k.params())
}

func TestMasterKeyIsRefused(t *testing.T) {
	zeros, ones := make([]byte, 32), bytes.Repeat([]byte{1}, 32)
	encode := func(enc, k, r []byte) []byte {
		var m masterKey
		m.Encrypt, m.MAC.K, m.MAC.R = enc, k, r
		text, err := json.Marshal(m)
		require.NoError(t, err)
		return text
	}
	_, err := parseMasterKey(encode(ones, ones[:16], ones[:16]))
	require.NoError(t, err)
	for name, text := range map[string][]byte{
		"zero encryption key": encode(zeros, ones[:16], ones[:16]),
		"zero mac k":          encode(ones, zeros[:16], ones[:16]),
		"zero mac r":          encode(ones, ones[:16], zeros[:16]),
		"short key":           encode(ones[:31], ones[:16], ones[:16]),
		"long r":              encode(ones, ones[:16], ones),
		"not JSON":            []byte("x"),
		"empty":               {},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parseMasterKey(text)
			require.Error(t, err)
		})
	}
}

func FuzzParseKeyFile(f *testing.F) {
	text, err := sealKey(crypto.NewKey(), "secret", KeyOptions{Scrypt: ScryptParams{2, 1, 1}}, time.Unix(0, 0))
	require.NoError(f, err)
	f.Add(text)
	f.Add([]byte(`{"kdf":"scrypt","N":32768,"r":8,"p":1,"salt":"","data":""}`))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, text []byte) {
		k, err := parseKeyFile(text)
		if err != nil {
			return
		}
		if k.N*k.R*k.P > 64 {
			return // too slow to try
		}
		if _, err := k.open("another"); err == nil {
			t.Fatal("opened with a wrong password")
		}
	})
}

func FuzzParseMasterKey(f *testing.F) {
	f.Add([]byte(`{"mac":{"k":"AQEBAQEBAQEBAQEBAQEBAQ==","r":"AQEBAQEBAQEBAQEBAQEBAQ=="},"encrypt":"AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE="}`))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, text []byte) {
		if k, err := parseMasterKey(text); err == nil && k.Check() != nil {
			t.Fatal("accepted a key with a zero part")
		}
	})
}

func TestUnpackedFilesAreCompressedInVersionTwoOnly(t *testing.T) {
	c, text := newCodec(), []byte(`{"packs":[]}`)
	require.Equal(t, text, c.encodeUnpacked(1, text))
	two := c.encodeUnpacked(2, text)
	require.EqualValues(t, formatZstd, two[0])
	for _, plain := range [][]byte{text, two, []byte(`[1]`), {}} {
		_, err := c.decodeUnpacked(plain)
		require.NoError(t, err)
	}
	got, err := c.decodeUnpacked(two)
	require.NoError(t, err)
	require.Equal(t, text, got)
	for name, plain := range map[string][]byte{"unknown encoding": {1, 2}, "bad frame": {2, 1, 2, 3}} {
		t.Run(name, func(t *testing.T) {
			_, err := c.decodeUnpacked(plain)
			require.Error(t, err)
		})
	}
}

func TestUnpackedFilesAreLimited(t *testing.T) {
	// A frame of one segment whose header claims a byte too much.
	bomb := []byte{formatZstd, 0x28, 0xb5, 0x2f, 0xfd, 0xe0}
	bomb = binary.LittleEndian.AppendUint64(bomb, maxUnpacked+1)
	_, err := newCodec().decodeUnpacked(append(bomb, 1, 0, 0))
	require.ErrorIs(t, err, zstd.ErrDecoderSizeExceeded)
}

func TestDecompressDemandsTheExactSize(t *testing.T) {
	c := newCodec()
	plain := make([]byte, 1000)
	packed := newScratch(c, CompressDefault).matches.EncodeAll(plain, nil)
	got, err := c.decompress(packed, 1000, nil)
	require.NoError(t, err)
	require.Equal(t, plain, got)
	for _, size := range []uint32{999, 1001, 1} {
		_, err := c.decompress(packed, size, nil)
		require.Error(t, err)
	}
}

func FuzzDecodeUnpacked(f *testing.F) {
	c := newCodec()
	f.Add([]byte(`{}`))
	f.Add(c.encodeUnpacked(2, []byte(`{"a":1}`)))
	f.Add([]byte{formatZstd})
	f.Add([]byte{0})
	f.Fuzz(func(t *testing.T, plain []byte) {
		_, _ = c.decodeUnpacked(plain) // must not panic
		got, err := c.decodeUnpacked(c.encodeUnpacked(2, plain))
		if err != nil || !bytes.Equal(got, plain) {
			t.Fatalf("round trip: %v", err)
		}
	})
}

func blobs(n int) []PackedBlob {
	var list []PackedBlob
	var offset uint32
	for i := range n {
		b := PackedBlob{BlobHandle{BlobType(i % 2), id.Hash([]byte{byte(i), byte(i >> 8)})}, offset, uint32(32 + i), 0}
		if i%3 == 0 {
			b.PlainLength = uint32(1 + 7*i)
		}
		offset += b.Length
		list = append(list, b)
	}
	return list
}

func TestPackHeaderRoundTrip(t *testing.T) {
	for _, n := range []int{0, 1, 15, 16, 1000} {
		want := blobs(n)
		text := appendHeader(nil, want)
		got, err := parseHeader(text)
		require.NoError(t, err)
		if diff := cmp.Diff(want, got[:len(got):len(got)]); diff != "" && n > 0 {
			t.Errorf("-want +got:\n%s", diff)
		}
		size := int64(len(text) + crypto.Overhead + packLengthSize)
		for _, b := range want {
			size += int64(b.Length)
		}
		require.Equal(t, size, PackSize(want))
		if len(text) > 0 {
			_, err = parseHeader(text[:len(text)-1])
			require.Error(t, err)
		}
	}
}

func FuzzParseHeader(f *testing.F) {
	f.Add(appendHeader(nil, blobs(5)))
	f.Add([]byte{4})
	f.Add([]byte{2, 255, 255, 255, 255})
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := parseHeader(text)
		if err == nil && !bytes.Equal(appendHeader(nil, got), text) {
			t.Fatal("the header is read and written differently")
		}
	})
}

func TestIndexFileIsWhatResticWrites(t *testing.T) {
	a, b, p := id.Hash([]byte("a")), id.Hash([]byte("b")), id.Hash([]byte("p"))
	packs := []IndexedPack{{p, []PackedBlob{
		{BlobHandle{DataBlob, a}, 0, 38, 0},
		{BlobHandle{TreeBlob, b}, 38, 112, 511},
	}}}
	text := encodeIndex(packs)
	want := `{"packs":[{"id":"` + p.String() + `","blobs":[` +
		`{"id":"` + a.String() + `","type":"data","offset":0,"length":38},` +
		`{"id":"` + b.String() + `","type":"tree","offset":38,"length":112,"uncompressed_length":511}]}]}`
	require.Equal(t, want, string(text))
	got, err := parseIndex([]byte(`{"supersedes":["` + p.String() + `"],` + want[1:]))
	require.NoError(t, err)
	if diff := cmp.Diff(packs, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestParseIndexRefuses(t *testing.T) {
	blob := func(fields string) string {
		return `{"packs":[{"id":"` + hexID + `","blobs":[{"id":"` + hexID + `",` + fields + `}]}]}`
	}
	for name, text := range map[string]string{
		"unknown type":   blob(`"type":"other","offset":0,"length":38`),
		"short blob":     blob(`"type":"data","offset":0,"length":31`),
		"negative":       blob(`"type":"data","offset":-1,"length":38`),
		"beyond 4 GiB":   blob(`"type":"data","offset":4294967295,"length":38`),
		"huge":           blob(`"type":"data","offset":0,"length":38,"uncompressed_length":4000000000`),
		"no pack":        `{"packs":[{"blobs":[]}]}`,
		"not JSON":       `{"packs":`,
		"empty":          ``,
		"upper-case hex": `{"packs":[{"id":"5956A3F67A6230D4A92CEFB29529F10196C7D92582EC305FD71FF6D331D6271B"}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parseIndex([]byte(text))
			require.Error(t, err)
		})
	}
}

func FuzzParseIndex(f *testing.F) {
	text := encodeIndex([]IndexedPack{{id.Hash(nil), blobs(3)}})
	f.Add(text)
	f.Add([]byte(`{"packs":[{"id":"` + hexID + `","blobs":null}],"supersedes":[],"packs_to_delete":[{}]}`))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, text []byte) {
		packs, err := parseIndex(text)
		if err != nil {
			return
		}
		got, err := parseIndex(encodeIndex(packs))
		require.NoError(t, err)
		if diff := cmp.Diff(packs, got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
}

func TestSnapshotHasResticsFieldsInOrder(t *testing.T) {
	a := id.Hash([]byte("a"))
	at := time.Date(2024, 2, 3, 4, 5, 6, 700000000, time.UTC)
	text, err := json.Marshal(&Snapshot{
		Time: at, Parent: &a, Tree: &a, Paths: []string{"/data"}, Hostname: "h", Username: "u", UID: 1, GID: 2,
		Excludes: []string{"e"}, Tags: []string{"t"}, Original: &a, ProgramVersion: "p 1",
		Summary: &SnapshotSummary{BackupStart: at, BackupEnd: at, FilesNew: 1, DataAdded: 2},
	})
	require.NoError(t, err)
	s := `"` + a.String() + `"`
	want := `{"time":"2024-02-03T04:05:06.7Z","parent":` + s + `,"tree":` + s + `,"paths":["/data"],"hostname":"h","username":"u",` +
		`"uid":1,"gid":2,"excludes":["e"],"tags":["t"],"original":` + s + `,"program_version":"p 1","summary":{` +
		`"backup_start":"2024-02-03T04:05:06.7Z","backup_end":"2024-02-03T04:05:06.7Z","files_new":1,"files_changed":0,` +
		`"files_unmodified":0,"dirs_new":0,"dirs_changed":0,"dirs_unmodified":0,"data_blobs":0,"tree_blobs":0,"data_added":2,` +
		`"data_added_packed":0,"total_files_processed":0,"total_bytes_processed":0}}`
	require.Equal(t, want, string(text))
	text, err = json.Marshal(&Snapshot{Time: at, Tree: &a, Paths: []string{"/data"}})
	require.NoError(t, err)
	require.Equal(t, `{"time":"2024-02-03T04:05:06.7Z","tree":`+s+`,"paths":["/data"]}`, string(text))
}

func FuzzParseSnapshot(f *testing.F) {
	f.Add([]byte(`{"time":"2024-02-03T04:05:06.7Z","tree":"` + hexID + `","paths":["/data"],"summary":{}}`))
	f.Add([]byte(`{"tree":null}`))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, text []byte) {
		if sn, err := parseSnapshot(text); err == nil && (sn.Tree == nil || sn.Tree.IsZero()) {
			t.Fatal("accepted a snapshot without a tree")
		}
	})
}

func FuzzParseLock(f *testing.F) {
	f.Add([]byte(`{"time":"2024-02-03T04:05:06.7Z","exclusive":true,"hostname":"h","username":"u","pid":1,"uid":1,"gid":1}`))
	f.Add([]byte{})
	f.Fuzz(func(_ *testing.T, text []byte) { _, _ = parseLock(text) }) // must not panic
}

func FuzzParseOwner(f *testing.F) {
	f.Add([]byte(`{"repository_id":"x","owner":"y"}`))
	f.Add([]byte{})
	f.Fuzz(func(_ *testing.T, text []byte) { _, _ = parseOwner(text) }) // must not panic
}
