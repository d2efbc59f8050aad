// Command demo shows the main job on this machine: a claim is backed up on a schedule by the real operator in a real
// Kubernetes control plane, its data is lost, and it comes back, once by a PVCRestore and once by the stock restic.
//
// Run it with "make demo". Only the node is a stand-in (package devkubelet): Pods are local processes.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "files" {
		os.Exit(report(files(os.Args[2:])))
	}
	var o options
	flag.StringVar(&o.url, "url", "", "back up to this store instead of the demo's own S3 server; file: for a volume")
	flag.StringVar(&o.root, "root", ".", "the root of the repository")
	flag.IntVar(&o.mib, "mib", 256, "how many MiB of made-up files to add")
	flag.BoolVar(&o.keep, "keep", false, "leave the folder with all logs behind")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(report(run(ctx, o)))
}

type options struct {
	url, root string
	mib       int
	keep      bool
}

func report(err error) int {
	if err == nil {
		return 0
	}
	fmt.Fprintf(os.Stderr, "\ndemo: %s\n", err)
	return 1
}

// budget is how long the demo may take once everything is built.
const budget = 3 * time.Minute

// run is the demo. Whatever it started is stopped when it returns, however it ends.
func run(ctx context.Context, o options) (err error) {
	ctx, cancel := context.WithTimeout(ctx, 3*budget)
	defer cancel()
	d := &demo{options: o, start: time.Now()}
	defer func() { err = errors.Join(err, d.close(err != nil)) }()
	fmt.Printf("This takes about two minutes; most of it is waiting for full minutes. Budget: %s.\n", budget)
	for i, step := range []struct {
		title string
		do    func(context.Context) error
	}{
		{"Start a control plane, a node, a store and the operator", d.setUp},
		{"Make a claim and fill it with files", d.fill},
		{"Ask for backups: the whole manifest", d.apply},
		{"The first backup is taken at once", d.first},
		{"Change files; the next backup comes at the full minute", d.second},
		{"Ask for one now, by annotation", d.third},
		{"What the operator tells about itself", d.metrics},
		{"Lose the data", d.lose},
		{"Restore it into a new claim", d.restore},
		{"Prove it: compare every file with what was lost", d.prove},
		{"Prove it again, with the stock restic", d.restic},
	} {
		fmt.Printf("\n[%4.0fs] %d. %s\n", time.Since(d.start).Seconds(), i+1, step.title)
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("step %d (%s): %w", i+1, step.title, err)
		}
	}
	d.summary()
	return nil
}
