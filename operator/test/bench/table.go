package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// median returns the middle one; of an even number the lower.
func median[T int64 | time.Duration](values []T) T {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[(len(sorted)-1)/2]
}

func collect[T any](samples []sample, get func(sample) T) []T {
	var out []T
	for _, s := range samples {
		out = append(out, get(s))
	}
	return out
}

func wall(samples []sample) time.Duration {
	return median(collect(samples, func(s sample) time.Duration { return s.wall }))
}

func cpu(samples []sample) time.Duration {
	return median(collect(samples, func(s sample) time.Duration { return s.cpu }))
}

// peak is the most of all runs: a limit has to hold in every one.
func peak(samples []sample) int64 {
	most := int64(0)
	for _, s := range samples {
		most = max(most, s.rss)
	}
	return most
}

func repositorySize(samples []sample) int64 {
	return median(collect(samples, func(s sample) int64 { return s.size }))
}

// table is Markdown in the making.
type table struct {
	strings.Builder
	columns int
}

func newTable(header ...string) *table {
	t := &table{columns: len(header)}
	t.line(header...)
	rule := make([]string, len(header))
	for i := range rule {
		if rule[i] = "---:"; i == 0 {
			rule[i] = "---"
		}
	}
	t.line(rule...)
	return t
}

func (t *table) line(cells ...string) {
	fmt.Fprintf(t, "| %s |\n", strings.Join(cells, " | "))
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f", d.Seconds()) }

// times is wall and CPU time.
func times(samples []sample) string {
	if len(samples) == 0 {
		return "–"
	}
	return fmt.Sprintf("%s (%s)", seconds(wall(samples)), seconds(cpu(samples)))
}

// factor is how many times faster ours is, and whether that is enough.
func factor(ours, theirs []sample, target float64) string {
	if len(ours) == 0 || len(theirs) == 0 {
		return "–"
	}
	got := wall(theirs).Seconds() / wall(ours).Seconds()
	if target == 0 {
		return fmt.Sprintf("%.2f×", got)
	}
	return fmt.Sprintf("%.2f× of %.2f× %s", got, target, mark(got >= target))
}

func mark(met bool) string {
	if met {
		return "✓"
	}
	return "**missed**"
}

// timeTable compares the times of ours with those of the peers.
func timeTable(keys []string, got results, ours string) string {
	t := newTable("work", ours+", s (CPU s)", "restic", "kopia", "faster than restic", "faster than kopia")
	for _, key := range keys {
		samples, r := got[key], rowOf(key)
		if len(samples[ours]) == 0 {
			continue
		}
		t.line(r.title, times(samples[ours]), times(samples["restic"]), times(samples["kopia"]),
			factor(samples[ours], samples["restic"], r.overRestic), factor(samples[ours], samples["kopia"], r.overKopia))
	}
	return t.String()
}

// memoryTable shows the peaks of resident memory.
func memoryTable(keys []string, got results, ours string) string {
	t := newTable("peak resident memory, MiB", ours, "restic", "kopia", "at most 256", "at most kopia's")
	for _, key := range keys {
		samples := got[key]
		if len(samples[ours]) == 0 {
			continue
		}
		mine, theirs := peak(samples[ours]), peak(samples["kopia"])
		most := "–"
		if theirs > 0 {
			most = mark(mine <= theirs)
		}
		t.line(rowOf(key).title, mebibytes(mine), mebibytes(peak(samples["restic"])), mebibytes(theirs), mark(mine <= maxMemory), most)
	}
	return t.String()
}

// sizeTable shows the repositories after first backups.
func sizeTable(keys []string, got results, ours string) string {
	t := newTable("repository, MiB", ours, "restic", "kopia", "of restic's", "of kopia's")
	for _, key := range keys {
		samples, r := got[key], rowOf(key)
		if r.sizeOverRestic == 0 || len(samples[ours]) == 0 {
			continue
		}
		mine, restic, kopia := repositorySize(samples[ours]), repositorySize(samples["restic"]), repositorySize(samples["kopia"])
		t.line(r.title, mebibytes(mine), mebibytes(restic), mebibytes(kopia), share(mine, restic, r.sizeOverRestic), share(mine, kopia, sizeOverKopia))
	}
	return t.String()
}

func share(mine, theirs int64, most float64) string {
	if theirs == 0 {
		return "–"
	}
	got := float64(mine) / float64(theirs)
	return fmt.Sprintf("%.3f of %.2f %s", got, most, mark(got <= most))
}

func mebibytes(n int64) string {
	if n == 0 {
		return "–"
	}
	return fmt.Sprintf("%.0f", math.Ceil(float64(n)/mib))
}

// requestTable shows how many requests of each kind the tools sent.
func requestTable(keys []string, got results, tools []string) string {
	t := newTable(append([]string{"requests: " + strings.Join(verbs, " / ")}, tools...)...)
	for _, key := range keys {
		if len(got[key]) == 0 {
			continue
		}
		cells := []string{rowOf(key).title}
		for _, tool := range tools {
			cells = append(cells, requestCell(got[key][tool]))
		}
		t.line(cells...)
	}
	return t.String()
}

func requestCell(samples []sample) string {
	if len(samples) == 0 {
		return "–"
	}
	var counts []string
	for _, v := range verbs {
		n := median(collect(samples, func(s sample) int64 { return int64(s.requests[v]) }))
		counts = append(counts, fmt.Sprint(n))
	}
	return strings.Join(counts, " / ")
}
