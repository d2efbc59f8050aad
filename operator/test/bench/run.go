package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// sample is what one run of a program cost.
type sample struct {
	wall, cpu time.Duration
	rss       int64 // peak resident memory in bytes
	size      int64 // of the repository afterwards, in bytes; 0: not looked at
	requests  map[string]int
}

// command is a program with its arguments and what it needs of the environment beyond the common part.
type command struct {
	args []string
	env  []string
	dir  string
}

// measure runs a program to its end. The peak memory of a child counts what its parent had when it was started, so this
// program hands everything that takes memory to children.
func measure(ctx context.Context, c command) (sample, error) {
	out, s, err := capture(ctx, c)
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, tail(out, 4000))
	}
	return s, err
}

// capture is measure that returns what the program printed.
func capture(ctx context.Context, c command) ([]byte, sample, error) {
	cmd := exec.CommandContext(ctx, c.args[0], c.args[1:]...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	cmd.Dir = c.dir
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "TZ=UTC"}, c.env...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	start := time.Now()
	err := cmd.Run()
	s := sample{wall: time.Since(start)}
	if state := cmd.ProcessState; state != nil {
		s.cpu = state.UserTime() + state.SystemTime()
		if usage, ok := state.SysUsage().(*syscall.Rusage); ok {
			s.rss = usage.Maxrss << 10
		}
	}
	if err != nil {
		err = fmt.Errorf("%s %v: %w", filepath.Base(c.args[0]), c.args[1:], err)
	}
	return out.Bytes(), s, err
}

func tail(b []byte, n int) []byte { return b[max(0, len(b)-n):] }

// self runs a part of this program as a child.
func self(ctx context.Context, args ...string) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	_, err = measure(ctx, command{args: append([]string{program}, args...)})
	return err
}
