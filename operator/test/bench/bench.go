package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// bench is one run of the program.
type bench struct {
	root     string // of the repository of sources
	work     string // in memory; everything is below it
	runs     int
	rows     []string
	deadline time.Time
	restic   string
	s3       *server // nil: repositories are folders
	log      func(format string, args ...any)
	made     map[string]bool // corpora
	wants    int             // places made so far, for their names
}

// results has the samples by row and tool.
type results map[string]map[string][]sample

func (r results) add(row, tool string, s sample) {
	if r[row] == nil {
		r[row] = map[string][]sample{}
	}
	r[row][tool] = append(r[row][tool], s)
}

var errBudget = errors.New("the time budget is used up")

// measure does all phases with the tools.
func (b *bench) measure(ctx context.Context, tools []*tool) (results, error) {
	out := results{}
	for _, p := range phases {
		if !p.wanted(b.rows) {
			continue
		}
		if err := b.phase(ctx, p, tools, out); err != nil {
			return out, err
		}
	}
	return out, nil
}

func (b *bench) phase(ctx context.Context, p phase, tools []*tool, out results) error {
	if err := b.corpora(ctx, p.sources); err != nil {
		return err
	}
	defer b.forget(p.sources)
	var places map[string]place
	defer func() { b.clear(places) }()
	for round := range b.runs {
		if time.Now().After(b.deadline) {
			b.log("%v: %v gets %d of %d runs", errBudget, p.rows, round, b.runs)
			return nil
		}
		// The first of one round is the last of the next.
		order := append(slices.Clone(tools[round%len(tools):]), tools[:round%len(tools)]...)
		if p.fresh || round == 0 {
			b.clear(places)
			var err error
			if places, err = b.prepare(ctx, p, order); err != nil {
				return err
			}
		}
		for _, s := range p.steps[:p.last(b.rows)] {
			if err := b.step(ctx, p, s, round, order, places, out); err != nil {
				return err
			}
		}
		if err := b.checkAll(ctx, order, places, round == 0); err != nil {
			return err
		}
	}
	return nil
}

// prepare makes an empty repository for every tool, and a first backup if that is not to be measured.
func (b *bench) prepare(ctx context.Context, p phase, tools []*tool) (map[string]place, error) {
	places := map[string]place{}
	for _, t := range tools {
		b.wants++
		key := fmt.Sprintf("%s-%d", t.name, b.wants)
		at := place{dir: filepath.Join(b.work, key), s3: b.s3, key: key}
		places[t.name] = at
		if err := at.make(); err != nil {
			return places, err
		}
		for _, args := range t.init(at) {
			if _, err := measure(ctx, t.command(at, args)); err != nil {
				return places, err
			}
		}
		if p.fresh {
			continue
		}
		b.log("%-14s %-10s preparing", p.rows[0], t.name)
		if _, err := measure(ctx, t.command(at, t.backup(at, b.corpus(p.source)))); err != nil {
			return places, err
		}
	}
	return places, nil
}

func (b *bench) step(ctx context.Context, p phase, s step, round int, order []*tool, places map[string]place, out results) error {
	source := b.corpus(p.source)
	if s.do == doTouch {
		return self(ctx, "touch", source, fmt.Sprint(round))
	}
	for _, t := range order {
		got, err := b.one(ctx, s.do, t, places[t.name], source)
		if err != nil {
			return fmt.Errorf("%s, %s: %w", s.row, t.name, err)
		}
		if got.wall == 0 || !slices.Contains(b.rows, s.row) {
			continue
		}
		out.add(s.row, t.name, got)
		b.log("%-14s %-10s run %d: %6.2f s, %6.2f CPU s, %4d MiB", s.row, t.name, round+1, got.wall.Seconds(), got.cpu.Seconds(), got.rss/mib)
	}
	return nil
}

// one lets a tool do one thing. It returns a zero sample if the tool cannot.
func (b *bench) one(ctx context.Context, do action, t *tool, at place, source string) (sample, error) {
	logged, err := b.logged()
	if err != nil {
		return sample{}, err
	}
	var got sample
	switch do {
	case doBackup:
		got, err = measure(ctx, t.command(at, t.backup(at, source)))
	case doRestore:
		got, err = b.restore(ctx, t, at, source)
	case doCheck:
		if t.check == nil {
			return sample{}, nil
		}
		got, err = measure(ctx, t.command(at, t.check(at)))
	}
	if err != nil {
		return got, err
	}
	if b.s3 != nil {
		if got.requests, _, err = b.s3.requests(logged); err != nil {
			return got, err
		}
	}
	got.size, err = b.size(at)
	return got, err
}

// logged is how much the log of the S3 server has.
func (b *bench) logged() (int, error) {
	if b.s3 == nil {
		return 0, nil
	}
	_, n, err := b.s3.requests(0)
	return n, err
}

func (b *bench) size(at place) (int64, error) {
	if at.s3 == nil {
		return size(at.repository())
	}
	return size(filepath.Join(at.s3.data, at.key))
}

// restore restores into an empty directory, and compares what is there with the source.
func (b *bench) restore(ctx context.Context, t *tool, at place, source string) (sample, error) {
	target := filepath.Join(b.work, "target")
	defer os.RemoveAll(target)
	if err := os.Mkdir(target, 0o700); err != nil {
		return sample{}, err
	}
	got, err := measure(ctx, t.command(at, t.restore(at, source, target)))
	if err != nil {
		return got, err
	}
	how := "compare"
	if t.ours {
		how = "compare-all"
	}
	return got, self(ctx, how, source, target)
}

// checkAll has restic check what is in its format; data too if whole.
func (b *bench) checkAll(ctx context.Context, tools []*tool, places map[string]place, whole bool) error {
	for _, t := range tools {
		if !t.ours {
			continue
		}
		args := []string{b.restic, "check"}
		if whole {
			args = append(args, "--read-data")
		}
		judge := &tool{env: resticEnv}
		if _, err := measure(ctx, judge.command(places[t.name], args)); err != nil {
			return fmt.Errorf("the repository of %s does not pass restic's check: %w", t.name, err)
		}
	}
	return nil
}

// clear removes the repositories.
func (b *bench) clear(places map[string]place) {
	for _, at := range places {
		_ = os.RemoveAll(at.dir) // what is left is removed at the end
		if at.s3 != nil {
			_ = os.RemoveAll(filepath.Join(at.s3.data, at.key))
		}
	}
}

func (b *bench) corpus(name string) string { return filepath.Join(b.work, "corpus", name) }

// folders are where the corpora are.
var folders = map[string]string{"random": "big/random", "text": "big/text", "small": "small", "many": "many"}

// corpora makes what is not there yet.
func (b *bench) corpora(ctx context.Context, names []string) error {
	for _, name := range names {
		if b.made[name] {
			continue
		}
		b.log("making the corpus %q", name)
		dir := b.corpus(folders[name])
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		if err := self(ctx, "corpus", name, dir); err != nil {
			return err
		}
		b.made[name] = true
	}
	return nil
}

// forget removes corpora that were changed, or that take too much memory to be kept.
func (b *bench) forget(names []string) {
	for _, name := range names {
		if name == "small" || name == "many" {
			_ = os.RemoveAll(b.corpus(folders[name])) // what is left is removed at the end
			b.made[name] = false
		}
	}
}
