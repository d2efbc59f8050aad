package repo

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"example.com/pvcbackup/backup/internal/chunker"
	"example.com/pvcbackup/backup/internal/fsmeta"
	"example.com/pvcbackup/backup/repo/id"
	"example.com/pvcbackup/backup/repo/internal/crypto"
	"example.com/pvcbackup/blobstore"
	"example.com/pvcbackup/blobstore/drivers/file"
)

// envStageSource names a directory whose files BenchmarkStage works on, all of them at once. The benchmark against other
// tools sets it to its corpus, and adds the stages up to what the machine allows.
const envStageSource = "PVCBACKUP_BENCH_SOURCE"

// BenchmarkStage measures each stage of a first backup alone: one operation is the whole corpus, on one core if it is
// run with -cpu 1.
func BenchmarkStage(b *testing.B) {
	if dir := os.Getenv(envStageSource); dir != "" {
		benchmarkStages(b, dir)
		return
	}
	for _, kind := range []string{"random", "text"} {
		b.Run(kind, func(b *testing.B) {
			dir := b.TempDir()
			require.NoError(b, os.WriteFile(filepath.Join(dir, "file"), stageContent(kind, 32<<20), 0o600))
			benchmarkStages(b, dir)
		})
	}
}

func stageContent(kind string, size int) []byte {
	random := rand.NewChaCha8([32]byte{1})
	if kind == "random" {
		content := make([]byte, size)
		_, _ = random.Read(content)
		return content
	}
	var text bytes.Buffer
	for source := rand.New(random); text.Len() < size; {
		fmt.Fprintf(&text, "line %d of a log with the value %d\n", source.IntN(1e6), source.IntN(100))
	}
	return text.Bytes()[:size]
}

// stages is a corpus in the forms that it goes through.
type stages struct {
	dir    string
	size   int64
	chunks [][]byte
	stored [][]byte // compressed, where that pays
	packs  [][]byte
	worker *scratch
	cipher *crypto.Cipher
}

func benchmarkStages(b *testing.B, dir string) {
	s := newStages(b, dir)
	for _, stage := range []struct {
		name string
		do   func(b *testing.B)
	}{
		{"read", s.read}, {"chunk", s.chunk}, {"hash", s.hash}, {"compress", s.compress}, {"verify", s.verify},
		{"encrypt", s.encrypt}, {"hash packs", s.hashPacks}, {"write", s.write},
	} {
		b.Run(stage.name, func(b *testing.B) {
			b.SetBytes(s.size)
			for b.Loop() {
				stage.do(b)
			}
		})
	}
}

func newStages(b *testing.B, dir string) *stages {
	master := crypto.NewKey()
	s := &stages{dir: dir, worker: newScratch(newCodec(), CompressFastest), cipher: master.Cipher()}
	splitter := stageSplitter(b)
	pack := newOpenPack(s.cipher, nil)
	s.files(b, math.MaxInt, func(content []byte) { // one read returns all of a file, as long as it has less than 2 GiB
		s.size += int64(len(content))
		for rest := bytes.Clone(content); len(rest) > 0; {
			n := stageCut(splitter, rest)
			chunk := rest[:n]
			rest = rest[n:]
			stored, plainLength, err := s.worker.encode(DataBlob, chunk, CompressFastest, false)
			require.NoError(b, err)
			if plainLength > 0 {
				stored = bytes.Clone(stored)
			}
			s.chunks, s.stored = append(s.chunks, chunk), append(s.stored, stored)
			if len(pack.buf) > 0 && !pack.fits(1, len(stored)+crypto.Overhead, defaultPackSize) {
				s.packs = append(s.packs, pack.buf)
				pack = newOpenPack(s.cipher, nil)
			}
			pack.add(BlobHandle{}, stored, plainLength, len(chunk))
		}
	})
	s.packs = append(s.packs, pack.buf)
	return s
}

func stageSplitter(b *testing.B) chunker.Splitter {
	splitter, err := chunker.New(chunker.Gear, 0x3DA3358B4DC173, 0)
	require.NoError(b, err)
	return splitter
}

func stageCut(splitter chunker.Splitter, rest []byte) int {
	if len(rest) <= chunker.ZeroSize {
		return len(rest)
	}
	return splitter.Next(rest[:min(len(rest), splitter.Window())], 0).Length
}

// files reads every file below a directory as a backup does, with the calls that it makes, window by window.
func (s *stages) files(b *testing.B, window int, fn func([]byte)) {
	fd, err := unix.Open(s.dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	require.NoError(b, err)
	defer unix.Close(fd)
	var buf []byte
	s.walk(b, fd, func(dirfd int, name string, size int) {
		f, err := fsmeta.OpenQuiet(dirfd, name, 0)
		require.NoError(b, err)
		_, err = fsmeta.Fstat(f)
		require.NoError(b, err)
		_, err = fsmeta.FdXattrs(f)
		require.NoError(b, err)
		if len(buf) < min(size, window) {
			buf = make([]byte, min(size, window))
		}
		for done := 0; done < size; {
			n, err := unix.Pread(f, buf[:min(size-done, window)], int64(done))
			require.NoError(b, err)
			fn(buf[:n])
			done += n
		}
		_, err = fsmeta.Fstat(f)
		require.NoError(b, err)
		require.NoError(b, unix.Close(f))
	})
}

func (s *stages) walk(b *testing.B, dirfd int, fn func(dirfd int, name string, size int)) {
	names, err := fsmeta.Names(dirfd)
	require.NoError(b, err)
	for _, name := range names {
		st, err := fsmeta.Lstat(dirfd, name)
		require.NoError(b, err)
		if st.Mode&unix.S_IFMT != unix.S_IFDIR {
			fn(dirfd, name, int(st.Size))
			continue
		}
		sub, err := fsmeta.OpenQuiet(dirfd, name, unix.O_DIRECTORY)
		require.NoError(b, err)
		s.walk(b, sub, fn)
		require.NoError(b, unix.Close(sub))
	}
}

func (s *stages) read(b *testing.B) { s.files(b, 8<<20, func([]byte) {}) }

func (s *stages) chunk(b *testing.B) {
	splitter := stageSplitter(b)
	for _, c := range s.chunks {
		stageCut(splitter, c) // it goes through all of a chunk to find its end
	}
}

func (s *stages) hash(*testing.B) {
	for _, c := range s.chunks {
		id.Hash(c)
	}
}

func (s *stages) compress(b *testing.B) {
	for _, c := range s.chunks {
		_, _, err := s.worker.encode(DataBlob, c, CompressFastest, false)
		require.NoError(b, err)
	}
}

func (s *stages) verify(b *testing.B) {
	var buf []byte
	for i, stored := range s.stored {
		c := s.chunks[i]
		if &stored[0] == &c[0] {
			continue
		}
		plain, err := s.worker.codec.decompress(stored, uint32(len(c)), buf)
		require.NoError(b, err)
		if !bytes.Equal(plain, c) {
			b.Fatal("the content differs")
		}
		buf = plain
	}
}

func (s *stages) encrypt(*testing.B) {
	pack := make([]byte, 0, defaultPackSize)
	for _, stored := range s.stored {
		if len(pack)+len(stored)+crypto.Overhead > cap(pack) {
			pack = pack[:0]
		}
		pack = s.cipher.Seal(pack, stored)
	}
}

func (s *stages) hashPacks(*testing.B) {
	for _, p := range s.packs {
		sha256.Sum256(p)
	}
}

func (s *stages) write(b *testing.B) {
	store, err := blobstore.Open(b.Context(), "file://"+b.TempDir(), &blobstore.Options{Openers: file.Openers()})
	require.NoError(b, err)
	defer store.Close()
	for i, p := range s.packs {
		require.NoError(b, store.PutBytes(b.Context(), fmt.Sprint(i), p, &blobstore.PutOptions{OnlyIfAbsent: true}))
	}
}
