package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// files is the program of the demo's workload Pod: "fill DIR SOURCE MIB" or "change DIR".
func files(args []string) error {
	switch {
	case len(args) == 4 && args[0] == "fill":
		mib, err := strconv.Atoi(args[3])
		if err != nil {
			return err
		}
		return fill(args[1], args[2], mib)
	case len(args) == 2 && args[0] == "change":
		return change(args[1])
	}
	return fmt.Errorf("usage: files fill DIR SOURCE MIB | files change DIR")
}

// fill copies the tree of sources, and adds made-up data and everything that is easily lost.
func fill(dir, source string, mib int) error {
	if err := copySources(source, filepath.Join(dir, "sources")); err != nil {
		return err
	}
	if err := makeData(filepath.Join(dir, "data"), mib); err != nil {
		return err
	}
	return makeOddities(filepath.Join(dir, "odd"))
}

func copySources(source, target string) error {
	return filepath.WalkDir(source, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(source, path)
		if err != nil {
			return err
		}
		to := filepath.Join(target, rel)
		switch {
		case entry.IsDir() && (rel == ".git" || rel == ".cache" || rel == "bin"):
			return fs.SkipDir
		case entry.IsDir():
			return os.MkdirAll(to, 0o755)
		case !entry.Type().IsRegular():
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(to, content, 0o644)
	})
}

// makeData writes files of 8 MiB, in turn random and text.
func makeData(dir string, mib int) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	random := rand.New(rand.NewPCG(1, 2))
	for i := range (mib + 7) / 8 {
		block := randomBytes(random, 8<<20)
		if i%2 == 1 {
			block = text(random, 8<<20)
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("block%03d", i)), block, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func randomBytes(random *rand.Rand, n int) []byte {
	block := make([]byte, 0, n+8)
	for len(block) < n {
		v := random.Uint64()
		block = append(block, byte(v), byte(v>>8), byte(v>>16), byte(v>>24), byte(v>>32), byte(v>>40), byte(v>>48), byte(v>>56))
	}
	return block[:n]
}

func text(random *rand.Rand, n int) []byte {
	words := bytes.Fields([]byte("a backup that was never restored is a hope and not a backup so restore it often and compare every byte"))
	var out bytes.Buffer
	for out.Len() < n {
		fmt.Fprintf(&out, "%s %d ", words[random.IntN(len(words))], random.IntN(1000))
	}
	return out.Bytes()[:n]
}

// makeOddities makes links, holes, modes, times and names that a copy easily gets wrong.
func makeOddities(dir string) error {
	if err := os.MkdirAll(filepath.Join(dir, "empty folder"), 0o755); err != nil {
		return err
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	return errors.Join(
		os.WriteFile(at("one"), []byte("linked\n"), 0o640),
		os.Link(at("one"), at("two")),
		os.Symlink("one", at("symlink")),
		os.Symlink("/nowhere/at/all", at("dangling")),
		os.WriteFile(at("latin\xe9 \"quoted\"\n"), []byte("name\n"), 0o600),
		os.WriteFile(at("script"), []byte("#!/bin/sh\n"), 0o755),
		os.Chmod(at("script"), 0o755|fs.ModeSetgid),
		makeSparse(at("sparse")),
		unix.Mkfifo(at("fifo"), 0o644),
		os.WriteFile(at("old"), []byte("old\n"), 0o444),
		os.Chtimes(at("old"), time.Time{}, time.Unix(1_234_567_890, 123_456_789)),
		os.Chmod(at("empty folder"), 0o770|fs.ModeSticky),
	)
}

func makeSparse(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = f.WriteAt([]byte("after a hole"), 64<<20)
	return errors.Join(err, f.Close())
}

// change edits, adds and removes some files.
func change(dir string) error {
	block := filepath.Join(dir, "data", "block000")
	f, err := os.OpenFile(block, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt([]byte("changed in the middle"), 3<<20)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	added, err := os.Create(filepath.Join(dir, "added"))
	if err != nil {
		return err
	}
	w := bufio.NewWriter(added)
	for i := range 10000 {
		fmt.Fprintf(w, "line %d\n", i)
	}
	return errors.Join(w.Flush(), added.Close(), os.Remove(filepath.Join(dir, "data", "block001")))
}
