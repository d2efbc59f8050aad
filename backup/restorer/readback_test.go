package restorer

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/pvcbackup/backup/internal/chunker"
	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/backup/repo/repotest"
	"example.com/pvcbackup/backup/repo/tree"
)

// onDisk is a file being restored that has got this content.
func onDisk(t *testing.T, content []byte) *file {
	t.Helper()
	name := filepath.Join(t.TempDir(), "f")
	require.NoError(t, os.WriteFile(name, content, 0o600))
	open, err := os.Open(name)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, open.Close()) })
	return &file{rel: "f", fd: int(open.Fd()), ready: true, node: &tree.Node{Name: "f", Type: tree.File}}
}

func TestWhatTheFilesystemDidNotKeepIsAMismatch(t *testing.T) {
	want := bytes.Repeat([]byte("0123456789abcdef"), 50_000) // more than is read at once
	w := &worker{restore: &restore{}}
	require.NoError(t, w.readBack(onDisk(t, want), want, 0))
	require.NoError(t, w.readBack(onDisk(t, want), want[16:], 16))
	for name, got := range map[string][]byte{
		"another byte": append(bytes.Clone(want[:len(want)-1]), 'x'),
		"cut off":      want[:len(want)-1],
		"nothing":      {},
	} {
		t.Run(name, func(t *testing.T) {
			var mismatch *MismatchError
			require.ErrorAs(t, w.readBack(onDisk(t, got), want, 0), &mismatch)
			require.Equal(t, "f", mismatch.Path)
			require.NoError(t, (&worker{restore: &restore{o: Options{SkipVerify: true}}}).readBack(onDisk(t, got), want, 0))
		})
	}
}

func TestAHoleThatIsNoneIsAMismatch(t *testing.T) {
	r, err := repo.Init(t.Context(), repotest.NewMemory(), "password", &repo.InitOptions{KeyOptions: repo.KeyOptions{Scrypt: repo.ScryptParams(repotest.Cheap)}})
	require.NoError(t, err)
	writer := r.NewWriter(t.Context(), nil)
	defer writer.Abort()
	_, _, err = writer.SaveBlob(t.Context(), repo.DataBlob, make([]byte, chunker.ZeroSize))
	require.NoError(t, err)
	require.NoError(t, writer.Flush(t.Context()))
	w := &worker{restore: &restore{repo: r}}
	zeros := make([]byte, chunker.ZeroSize)
	for _, spoiled := range []bool{false, true} {
		content := bytes.Clone(zeros)
		if spoiled {
			content[1000] = 1
		}
		f := onDisk(t, content)
		f.node.Content = []repo.ID{zeroChunk}
		err := w.verifyHoles(part{f: f, to: 1})
		if !spoiled {
			require.NoError(t, err)
			continue
		}
		var mismatch *MismatchError
		require.ErrorAs(t, err, &mismatch)
	}
}
