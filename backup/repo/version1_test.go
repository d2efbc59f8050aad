package repo

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/pvcbackup/backup/repo/id"
	"example.com/pvcbackup/backup/repo/repotest"
)

func TestVersionOneIsReadAndNeverWritten(t *testing.T) {
	s := repotest.NewMemory()
	r, err := Init(t.Context(), s, "secret", &InitOptions{KeyOptions: KeyOptions{Scrypt: repotest.Cheap}, version: 1})
	require.NoError(t, err)
	require.Equal(t, 1, r.Version())

	w := r.NewWriter(t.Context(), nil)
	defer w.Abort()
	_, _, err = w.SaveBlob(t.Context(), DataBlob, []byte("x"))
	require.ErrorIs(t, err, ErrVersion)
	require.ErrorIs(t, w.Flush(t.Context()), ErrVersion)
	tree := id.Hash(nil)
	_, err = r.SaveSnapshot(t.Context(), &Snapshot{Tree: &tree})
	require.ErrorIs(t, err, ErrVersion)

	// A lock is written even so: reading needs one.
	l, err := r.Lock(t.Context(), LockOptions{Host: "pod"})
	require.NoError(t, err)
	stored := s.Bytes(s.Keys("locks/")[0])
	plain, err := r.cipher.OpenInPlace(stored)
	require.NoError(t, err)
	require.EqualValues(t, '{', plain[0], "version 1 does not know compression")
	require.NoError(t, l.Unlock(t.Context()))
}

func TestAnIndexIsWrittenFor50000Blobs(t *testing.T) {
	s := repotest.NewMemory()
	r, err := Init(t.Context(), s, "secret", &InitOptions{KeyOptions: KeyOptions{Scrypt: repotest.Cheap}})
	require.NoError(t, err)
	w := r.NewWriter(t.Context(), nil)
	defer w.Abort()
	list := make([]PackedBlob, maxIndexBlobs-1)
	for i := range list {
		list[i] = PackedBlob{BlobHandle{DataBlob, numbered(i)}, uint32(i * 40), 40, 0}
	}
	require.NoError(t, w.confirm(FileInfo{ID: numbered(-1), Size: 1}, &openPack{blobs: list}))
	require.Empty(t, s.Keys("index/"))
	require.NoError(t, w.confirm(FileInfo{ID: numbered(-2), Size: 1}, &openPack{blobs: blobs(1)}))
	require.Len(t, s.Keys("index/"), 1)
	require.NoError(t, r.LoadIndex(t.Context()))
	require.True(t, r.Has(list[0].BlobHandle))
	require.True(t, r.Has(blobs(1)[0].BlobHandle))
}
