package repo

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"example.com/pvcbackup/backup/repo/id"
)

func FuzzTheFastIndexReaderAgreesWithTheStandardLibrary(f *testing.F) {
	text := encodeIndex([]IndexedPack{{id.Hash(nil), blobs(3)}, {id.Hash([]byte("b")), []PackedBlob{}}})
	_, ok := scanIndex(text)
	require.True(f, ok, "what this project writes is read fast")
	_, ok = scanIndex(append(text, '\n'))
	require.True(f, ok, "and what restic writes")
	f.Add(text)
	f.Add([]byte(`{"packs":[{"id":"` + hexID + `","blobs":[{"id":"` + hexID + `","type":"data","offset":00,"length":4294967296}]}]}`))
	f.Add([]byte(`{"packs":[]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		got, ok := scanIndex(text)
		if !ok {
			return
		}
		var want indexJSON
		require.NoError(t, json.Unmarshal(text, &want))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		again, err := json.Marshal(want)
		require.NoError(t, err)
		if packs, err := parseIndex(text); err == nil {
			require.Equal(t, string(again), string(encodeIndex(packs)))
		}
	})
}

func BenchmarkParseIndex(b *testing.B) {
	packs := make([]IndexedPack, 20)
	for p := range packs {
		packs[p] = IndexedPack{numbered(-p - 1), make([]PackedBlob, 2500)}
		for i := range packs[p].Blobs {
			packs[p].Blobs[i] = PackedBlob{BlobHandle{DataBlob, numbered(i)}, uint32(i) << 10, 1 << 10, 2000}
		}
	}
	text := encodeIndex(packs)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		_, err := parseIndex(text)
		require.NoError(b, err)
	}
}
