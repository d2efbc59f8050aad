package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"example.com/pvcbackup/backup"
	"example.com/pvcbackup/backup/contract"
	"example.com/pvcbackup/reconcilekit"
	"example.com/pvcbackup/schedule"
)

func main() {
	dir := flag.String("spool", "", "the folder between operator and agent")
	source := flag.String("source", "", "the folder to back up")
	target := flag.String("target", "", "the folder of the copies")
	flag.Parse()
	if err := run(context.Background(), *dir, *source, *target, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "mover:", err)
		os.Exit(1)
	}
}

// run makes one run, with an agent in this process.
func run(ctx context.Context, dir, source, target string, out io.Writer) (err error) {
	ctx, stop := context.WithCancel(ctx)
	stopped := make(chan error, 1)
	go func() { stopped <- agent(ctx, dir, source, target) }()
	defer func() { stop(); err = errors.Join(err, <-stopped) }()

	slot := schedule.SlotID(time.Now())
	task := backup.Task{
		Owner: backup.Owner{Namespace: "default", Name: "example", UID: "1"}, Role: backup.RoleBackup, Slot: slot,
		Request: contract.Request{Operation: contract.OperationBackup, Backup: &contract.Backup{Run: slot}},
	}
	mover := spool(dir)
	for {
		// This is what a reconcile does. It never waits: its error says when to come again.
		state, err := backup.Advance(ctx, mover, task, backup.Attempts{}, time.Now())
		switch {
		case state.Result != nil:
			fmt.Fprintf(out, "attempt %d: %s %s\n", state.Attempt, state.Result.Outcome, state.Result.Message)
			_, err = mover.Stop(ctx, task)
			return err
		case reconcilekit.Classify(err) != reconcilekit.ClassWaiting:
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond): // in an operator an event, or reconcilekit's requeue
		}
	}
}
