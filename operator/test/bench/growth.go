package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// dimension is something that cost may grow with.
type dimension struct {
	name  string
	sizes []int
	// source makes what is backed up; nil: a few small files.
	source func(dir string, n int) error
	// fill brings the repository to the size after its first backup; nil: the source did.
	fill string
}

var dimensions = []dimension{
	{name: "files", sizes: []int{10_000, 50_000, 250_000}, source: func(dir string, n int) error { return makeSmall(dir, n, 16) }},
	{name: "MiB in large files", sizes: []int{256, 1024, 4096}, source: func(dir string, n int) error { return makeBig(dir, n, randomBlocks) }},
	{name: "snapshots", sizes: []int{10, 100, 1000}, fill: "add-snapshots"},
	{name: "blobs in the index", sizes: []int{100_000, 500_000, 2_500_000}, fill: "add-index"},
}

// growth measures the data tool alone, at three sizes of everything that its cost may depend on.
func (b *bench) growth(ctx context.Context, _ []string) (string, error) {
	tools, err := b.tools(ctx)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	for _, d := range dimensions {
		t := newTable(d.name, "first backup, s (CPU s)", "again, s (CPU s)", "peak MiB of both", "bytes added again")
		for _, n := range d.sizes {
			line, err := b.grown(ctx, tools[0], d, n)
			if err != nil {
				return "", fmt.Errorf("%d %s: %w", n, d.name, err)
			}
			t.line(line...)
		}
		fmt.Fprintf(&text, "%s\n", t.String())
	}
	return strings.TrimSuffix(text.String(), "\n"), nil
}

func (b *bench) grown(ctx context.Context, t *tool, d dimension, n int) ([]string, error) {
	b.log("%d %s", n, d.name)
	source := b.corpus("growth")
	defer os.RemoveAll(source)
	at := place{dir: filepath.Join(b.work, "growth")}
	defer os.RemoveAll(at.dir)
	if err := self(ctx, "grow", source, d.name, strconv.Itoa(n)); err != nil {
		return nil, err
	}
	var first, again []sample
	for range b.runs {
		if err := os.RemoveAll(at.dir); err != nil {
			return nil, err
		}
		if err := at.make(); err != nil {
			return nil, err
		}
		if _, err := measure(ctx, t.command(at, t.init(at)[0])); err != nil {
			return nil, err
		}
		s, err := b.one(ctx, doBackup, t, at, source)
		if err != nil {
			return nil, err
		}
		first = append(first, s)
		if d.fill != "" {
			if err := self(ctx, d.fill, at.repository(), strconv.Itoa(n)); err != nil {
				return nil, err
			}
		}
		before, err := b.size(at)
		if err != nil {
			return nil, err
		}
		if s, err = b.one(ctx, doBackup, t, at, source); err != nil {
			return nil, err
		}
		s.size -= before
		again = append(again, s)
	}
	return []string{
		strconv.Itoa(n), times(first), times(again), mebibytes(peak(first)) + ", " + mebibytes(peak(again)),
		strconv.FormatInt(repositorySize(again), 10),
	}, nil
}

// grow makes the source of a dimension at a size.
func grow(dir, name string, n int) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, d := range dimensions {
		if d.name == name && d.source != nil {
			return d.source(dir, n)
		}
	}
	return makeSmall(dir, 100, 1)
}
