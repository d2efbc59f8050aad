package repotest

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// resticDeadline is for one command on a small repository on a busy machine.
const resticDeadline = 2 * time.Minute

// Restic is the stock restic program on one repository.
type Restic struct {
	tb       testing.TB
	program  string
	url      string
	password string
}

// NewRestic finds the program in $PVCBACKUP_TOOLS or in .cache/tools above the working directory; without it the test
// fails. url is a folder, or what restic's -r takes.
func NewRestic(tb testing.TB, url, password string) *Restic {
	tb.Helper()
	return NewResticOf(tb, "restic", url, password)
}

// NewResticOf is NewRestic for another version, by the name of the tool: "restic-0.14".
func NewResticOf(tb testing.TB, name, url, password string) *Restic {
	tb.Helper()
	program, err := findTool(name)
	if err != nil {
		tb.Fatalf("the stock program %s is needed, in $PVCBACKUP_TOOLS or .cache/tools: %v", name, err)
	}
	return &Restic{tb: tb, program: program, url: url, password: password}
}

// URL returns what the program is told of the repository.
func (r *Restic) URL() string { return r.url }

func findTool(name string) (string, error) {
	if folder := os.Getenv("PVCBACKUP_TOOLS"); folder != "" {
		return exec.LookPath(filepath.Join(folder, name))
	}
	folder, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		program := filepath.Join(folder, ".cache", "tools", name)
		if _, err := os.Stat(program); err == nil {
			return program, nil
		}
		if filepath.Dir(folder) == folder {
			return "", errors.New("not found")
		}
		folder = filepath.Dir(folder)
	}
}

// Command prepares a call without running it.
func (r *Restic) Command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, r.program, append([]string{"-r", r.url, "--no-cache"}, args...)...)
	cmd.Env = append(os.Environ(), "RESTIC_PASSWORD="+r.password, "RESTIC_PROGRESS_FPS=0")
	return cmd
}

// Try runs a command and returns what it printed.
func (r *Restic) Try(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(r.tb.Context(), resticDeadline)
	defer cancel()
	out, err := r.Command(ctx, args...).CombinedOutput()
	return string(out), err
}

// Run runs a command, which must succeed, and returns what it printed.
func (r *Restic) Run(args ...string) string {
	r.tb.Helper()
	out, err := r.Try(args...)
	if err != nil {
		r.tb.Fatalf("restic %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// Output runs a command, which must succeed, and returns what it printed on standard output alone.
func (r *Restic) Output(args ...string) string {
	r.tb.Helper()
	ctx, cancel := context.WithTimeout(r.tb.Context(), resticDeadline)
	defer cancel()
	out, err := r.Command(ctx, args...).Output()
	if err != nil {
		r.tb.Fatalf("restic %s: %v", strings.Join(args, " "), err)
	}
	return string(out)
}
