package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// stages are the steps of a first backup in their order, as BenchmarkStage of backup/repo names them.
var stages = []string{"read", "chunk", "hash", "compress", "verify", "encrypt", "hash_packs", "write"}

// floorRows are the rows whose distance to the floor is shown, with the names of their corpora.
var floorRows = []string{"random", "text", "small"}

// floorTarget is how many times the floor a first backup may take.
const floorTarget = 1.3

// floors measures every stage of the first backups alone, on one core.
func (b *bench) floors(ctx context.Context) (map[string]map[string]time.Duration, error) {
	program := filepath.Join(b.work, "stages.test")
	if err := b.build(ctx, "test", "-c", "-o", program, "./backup/repo"); err != nil {
		return nil, err
	}
	out := map[string]map[string]time.Duration{}
	for _, name := range floorRows {
		if err := b.corpora(ctx, []string{name}); err != nil {
			return nil, err
		}
		b.log("measuring the stages of %q", name)
		text, _, err := capture(ctx, command{
			args: []string{program, "-test.run", "^$", "-test.bench", "^BenchmarkStage$", "-test.benchtime", "2x", "-test.cpu", "1"},
			env:  []string{"PVCBACKUP_BENCH_SOURCE=" + b.corpus(folders[name]), "TMPDIR=" + b.work, "HOME=" + b.work},
		})
		if err != nil {
			return nil, fmt.Errorf("%w\n%s", err, tail(text, 4000))
		}
		if out[name], err = parseStages(text); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// parseStages reads lines such as "BenchmarkStage/hash_packs  2  1234567 ns/op  800 MB/s".
func parseStages(text []byte) (map[string]time.Duration, error) {
	found := map[string]time.Duration{}
	for line := range bytes.Lines(text) {
		fields := strings.Fields(string(line))
		if len(fields) < 4 || fields[3] != "ns/op" {
			continue
		}
		nanoseconds, err := strconv.ParseFloat(fields[2], 64)
		if err != nil {
			return nil, fmt.Errorf("a benchmark printed %q: %w", line, err)
		}
		found[strings.TrimPrefix(fields[0], "BenchmarkStage/")] = time.Duration(nanoseconds)
	}
	for _, s := range stages {
		if found[s] == 0 {
			return nil, errors.New("no benchmark measured the stage " + s)
		}
	}
	return found, nil
}

// floorTable shows the stages, their sum over the cores, and how far the first backups are from it.
func floorTable(floors map[string]map[string]time.Duration, got results, ours string) string {
	t := newTable("stage alone, CPU s", "random", "text", "small")
	for _, s := range stages {
		t.line(floorLine(s, func(name string) string { return seconds(floors[name][s]) })...)
	}
	sum := func(name string) time.Duration {
		total := time.Duration(0)
		for _, d := range floors[name] {
			total += d
		}
		return total / time.Duration(runtime.NumCPU())
	}
	t.line(floorLine(fmt.Sprintf("sum over %d cores: the floor", runtime.NumCPU()), func(name string) string { return seconds(sum(name)) })...)
	t.line(floorLine("wall time of the first backup", func(name string) string { return seconds(wall(got[name][ours])) })...)
	t.line(floorLine(fmt.Sprintf("wall ÷ floor, at most %.1f", floorTarget), func(name string) string {
		if len(got[name][ours]) == 0 {
			return "–"
		}
		ratio := wall(got[name][ours]).Seconds() / sum(name).Seconds()
		return fmt.Sprintf("%.2f %s", ratio, mark(ratio <= floorTarget))
	})...)
	return t.String()
}

func floorLine(title string, cell func(name string) string) []string {
	line := []string{title}
	for _, name := range floorRows {
		line = append(line, cell(name))
	}
	return line
}

// build runs the go command in the root of the repository of sources.
func (b *bench) build(ctx context.Context, args ...string) error {
	return goCommand(ctx, b.root, args...)
}

func goCommand(ctx context.Context, dir string, args ...string) error {
	_, err := measure(ctx, command{
		args: append([]string{"go"}, args...), dir: dir,
		env: append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS="),
	})
	return err
}
