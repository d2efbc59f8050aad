package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// ourName is the column of the data tool, portableName that of the one with nothing but gocloud's interface.
const (
	ourName      = "pvcbackup"
	portableName = "portable"
)

// tables are what can be asked for.
var tables = []string{"memory", "portable", "s3", "floor"}

// needed is how much memory the corpora, repositories and targets take at most, in bytes.
const needed = 14 << 30

type flags struct {
	rows, tables    string
	runs            int
	budget          time.Duration
	dir, into, root string
	growth          bool
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := dispatch(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// dispatch does one of the parts that run as children, or everything.
func dispatch(ctx context.Context, args []string) error {
	if len(args) == 3 {
		switch args[0] {
		case "corpus":
			return corpora[slices.IndexFunc(corpora, func(c corpus) bool { return c.name == args[1] })].make(args[2])
		case "touch":
			round, err := strconv.Atoi(args[2])
			return errors.Join(err, touch(args[1], round))
		case "compare":
			return compare(args[1], args[2], false)
		case "compare-all":
			return compare(args[1], args[2], true)
		}
	}
	if len(args) == 4 && args[0] == "grow" {
		n, err := strconv.Atoi(args[3])
		return errors.Join(err, grow(args[1], args[2], n))
	}
	if len(args) == 3 && fillers[args[0]] != nil {
		n, err := strconv.Atoi(args[2])
		return errors.Join(err, fill(ctx, args[0], args[1], n))
	}
	var f flags
	set := flag.NewFlagSet("bench", flag.ContinueOnError)
	set.StringVar(&f.rows, "rows", "all", "rows to measure: "+strings.Join(keysOf(rows), ","))
	set.StringVar(&f.tables, "tables", "all", "tables to print: "+strings.Join(tables, ","))
	set.IntVar(&f.runs, "runs", 3, "how often everything is measured")
	set.DurationVar(&f.budget, "budget", 2*time.Hour, "no new round is begun after this time")
	set.StringVar(&f.dir, "dir", "", "folder for everything (default: /dev/shm if it has room)")
	set.StringVar(&f.into, "into", "", "Markdown file whose tables are replaced, between its markers")
	set.StringVar(&f.root, "root", ".", "root of the repository of sources")
	set.BoolVar(&f.growth, "growth", false, "measure how cost grows instead")
	if err := set.Parse(args); err != nil {
		return err
	}
	if f.runs < 1 {
		return fmt.Errorf("-runs is %d and must be at least 1", f.runs)
	}
	return run(ctx, f)
}

// list reads a list of names; all of them are known ones.
func list(flag, value string, known []string) ([]string, error) {
	if value == "all" || value == "" {
		return known, nil
	}
	names := strings.Split(value, ",")
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("-%s has %q, which is none of %s", flag, name, strings.Join(known, ","))
		}
	}
	return names, nil
}

func run(ctx context.Context, f flags) (err error) {
	b := &bench{runs: f.runs, made: map[string]bool{}, deadline: time.Now().Add(f.budget)}
	began := time.Now()
	b.log = func(format string, args ...any) {
		fmt.Fprintf(os.Stderr, "%5.0f s  %s\n", time.Since(began).Seconds(), fmt.Sprintf(format, args...))
	}
	if b.root, err = filepath.Abs(f.root); err != nil {
		return err
	}
	if b.rows, err = list("rows", f.rows, keysOf(rows)); err != nil {
		return err
	}
	wanted, err := list("tables", f.tables, tables)
	if err != nil {
		return err
	}
	if b.work, err = b.workFolder(f.dir); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.work)) }()
	name, report := "bench", b.compare
	if f.growth {
		name, report = "growth", b.growth
	}
	text, err := report(ctx, wanted)
	if err != nil {
		return err
	}
	text = b.conditions() + "\n" + text
	fmt.Print(text)
	if f.into != "" {
		return paste(f.into, name, text)
	}
	return nil
}

// workFolder makes one in memory, or says that it is not.
func (b *bench) workFolder(dir string) (string, error) {
	if dir == "" {
		dir = "/dev/shm"
		var st unix.Statfs_t
		if err := unix.Statfs(dir, &st); err != nil || int64(st.Bavail)*st.Bsize < needed {
			dir = os.TempDir()
			b.log("/dev/shm is not there or has no %d GiB left, so everything is in %s: the disk is measured too", needed>>30, dir)
		}
	}
	return os.MkdirTemp(dir, "pvcbackup-bench-")
}

// compare prints the tables of the comparison.
func (b *bench) compare(ctx context.Context, wanted []string) (string, error) {
	tools, err := b.tools(ctx)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	has := func(table string) bool { return slices.Contains(wanted, table) }
	got := results{}
	if has("memory") || has("portable") || has("floor") {
		used := tools
		if !has("portable") {
			used = slices.DeleteFunc(slices.Clone(tools), func(t *tool) bool { return t.name == portableName })
		}
		if got, err = b.measure(ctx, used); err != nil {
			return "", err
		}
	}
	if has("memory") {
		fmt.Fprintf(&text, "%s\n%s\n%s", timeTable(b.rows, got, ourName), memoryTable(b.rows, got, ourName), sizeTable(b.rows, got, ourName))
	}
	if has("floor") {
		floors, err := b.floors(ctx)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&text, "\nHow far the first backups are from their stages, each measured alone:\n\n%s", floorTable(floors, got, ourName))
	}
	if has("portable") {
		fmt.Fprintf(&text, "\nThrough gocloud's portable interface alone, into gocloud's own files:\n\n%s", timeTable(b.rows, got, portableName))
	}
	if has("s3") {
		if got, err = b.measureS3(ctx, tools); err != nil {
			return "", err
		}
		fmt.Fprintf(&text, "\nAgainst a local S3 server, which has to share the processors:\n\n%s\n%s\n%s",
			timeTable(b.rows, got, ourName), timeTable(b.rows, got, portableName), requestTable(b.rows, got, namesOf(tools)))
	}
	return text.String(), nil
}

// measureS3 is measure with repositories in a bucket.
func (b *bench) measureS3(ctx context.Context, tools []*tool) (results, error) {
	program, err := pinned(b.root, "versitygw")
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(b.work, "s3")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	if b.s3, err = startServer(ctx, program, dir); err != nil {
		return nil, err
	}
	defer func() {
		b.s3.stop()
		b.s3 = nil
	}()
	b.log("against a local S3 server:")
	return b.measure(ctx, tools)
}

// tools builds the data tool, twice, and finds the peers.
func (b *bench) tools(ctx context.Context) ([]*tool, error) {
	ours, portable := filepath.Join(b.work, ourName), filepath.Join(b.work, portableName)
	b.log("building the data tool")
	if err := b.build(ctx, "build", "-o", ours, "./operator/cmd/pvcbackup"); err != nil {
		return nil, err
	}
	if err := goCommand(ctx, filepath.Join(b.root, "operator", "test", "bench"), "build", "-o", portable, "./portable"); err != nil {
		return nil, err
	}
	resticPath, err := pinned(b.root, "restic")
	if err != nil {
		return nil, err
	}
	kopiaPath, err := pinned(b.root, "kopia")
	if err != nil {
		return nil, err
	}
	b.restic = resticPath
	return []*tool{dataTool(ourName, ours), restic(resticPath), kopia(kopiaPath), dataTool(portableName, portable)}, nil
}

func namesOf(tools []*tool) []string {
	var names []string
	for _, t := range tools {
		names = append(names, t.name)
	}
	return names
}

// conditions says what was measured, and on what.
func (b *bench) conditions() string {
	commit := "an unknown commit"
	if out, err := exec.Command("git", "-C", b.root, "describe", "--always", "--dirty", "--abbrev=12").Output(); err == nil {
		commit = "commit " + strings.TrimSpace(string(out))
	}
	return fmt.Sprintf("Measured on %s at %s: %s, %d cores, %s, restic %s, kopia %s; medians of %d runs; everything in %s.\n",
		time.Now().UTC().Format("2 January 2006"), commit, processor(), runtime.NumCPU(), runtime.Version(),
		version(b.root, "restic"), version(b.root, "kopia"), b.runs, filesystem(b.work))
}

func processor() string {
	text, _ := os.ReadFile("/proc/cpuinfo") // without it the processor has no name
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown processor, " + runtime.GOARCH
}

func filesystem(dir string) string {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err == nil && st.Type == unix.TMPFS_MAGIC {
		return "memory (tmpfs)"
	}
	return "a disk or an unknown filesystem"
}
