package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
)

const (
	mib      = 1 << 20
	perDir   = 250
	bigFiles = 4 // per kind, of equal size
	seed     = 7
)

// corpus is a kind of data. make fills an empty directory.
type corpus struct {
	name string
	make func(dir string) error
}

// The corpora. Sizes are the ones that the targets were set for.
var corpora = []corpus{
	{"random", func(dir string) error { return makeBig(dir, 1024, randomBlocks) }},
	{"text", func(dir string) error { return makeBig(dir, 1024, textBlocks) }},
	{"small", func(dir string) error { return makeSmall(dir, 50_000, 1) }},
	{"many", func(dir string) error { return makeSmall(dir, 500_000, 16) }},
}

// generator makes the same bytes from the same seed.
type generator struct {
	*rand.Rand
	source *rand.ChaCha8
	words  [][]byte
}

func newGenerator(seed uint64) *generator {
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:], seed)
	source := rand.NewChaCha8(key)
	g := &generator{Rand: rand.New(source), source: source}
	for range 5000 {
		word := make([]byte, 2+g.IntN(9))
		for i := range word {
			word[i] = byte('a' + g.IntN(26))
		}
		g.words = append(g.words, word)
	}
	return g
}

func (g *generator) random(n int) []byte {
	b := make([]byte, n)
	_, _ = g.source.Read(b) // never fails
	return b
}

// text is lines of twelve words and a number.
func (g *generator) text(n int) []byte {
	b := make([]byte, 0, n+200)
	for len(b) < n {
		for range 12 {
			b = append(append(b, g.words[g.IntN(len(g.words))]...), ' ')
		}
		b = fmt.Appendf(b, "%d\n", g.IntN(1e9))
	}
	return b[:n]
}

// blocks yields a MiB at a time.
type blocks func(g *generator) func() []byte

func randomBlocks(g *generator) func() []byte {
	return func() []byte { return g.random(mib) }
}

// textBlocks repeats 64 blocks of text with 200 bytes of each changed at a time: alike, and never equal.
func textBlocks(g *generator) func() []byte {
	originals := make([][]byte, 64)
	for i := range originals {
		originals[i] = g.text(mib)
	}
	block := make([]byte, mib)
	return func() []byte {
		copy(block, originals[g.IntN(len(originals))])
		for range 200 {
			block[g.IntN(mib)] = byte(g.IntN(256))
		}
		return block
	}
}

func makeBig(dir string, size int, kind blocks) error {
	next := kind(newGenerator(seed))
	for i := range bigFiles {
		f, err := os.Create(filepath.Join(dir, fmt.Sprint(i)))
		if err != nil {
			return err
		}
		for range size / bigFiles {
			if _, err = f.Write(next()); err != nil {
				break
			}
		}
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return nil
}

// makeSmall makes files of log-normal size with a median of 3 KiB, divided by divisor; half text, half random.
func makeSmall(dir string, files, divisor int) error {
	g := newGenerator(seed)
	for k := range files {
		sub := filepath.Join(dir, fmt.Sprintf("%04d", k/perDir))
		if k%perDir == 0 {
			if err := os.Mkdir(sub, 0o755); err != nil {
				return err
			}
		}
		n := min(int(math.Exp(8+1.2*g.NormFloat64())), 200_000) / divisor
		content := g.random
		if k%2 == 1 {
			content = g.text
		}
		if err := os.WriteFile(filepath.Join(sub, fmt.Sprintf("f%d", k%perDir)), content(n), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// touch changes one in a hundred files in place: half of what is in it, at most 1 MiB, from a random place on.
func touch(dir string, round int) error {
	g := newGenerator(seed + 1 + uint64(round))
	var files []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		return err
	}
	g.Shuffle(len(files), func(i, j int) { files[i], files[j] = files[j], files[i] })
	for _, path := range files[:max(len(files)/100, 1)] {
		if err := overwrite(g, path); err != nil {
			return err
		}
	}
	return nil
}

func overwrite(g *generator, path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err == nil {
		n := int(info.Size())
		_, err = f.WriteAt(g.random(min(mib, max(n/2, 1))), int64(g.IntN(max(n, 1))))
	}
	return errors.Join(err, f.Close())
}
