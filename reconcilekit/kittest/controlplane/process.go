//go:build unix

package controlplane

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
)

// process is a program that runs until the cluster is stopped.
type process struct {
	name   string
	log    string // path of what it writes
	cmd    *exec.Cmd
	exited chan struct{} // closed when it has ended and been waited for
}

// ProcessError says that a process of the control plane ended early.
type ProcessError struct {
	Name string // of the program
	Log  string // path of what it wrote; removed by Stop
	Tail string // the last lines of that
	Err  error  // how it ended; may be nil, for an exit code of 0
}

func (e *ProcessError) Error() string {
	how := "exit status 0"
	if e.Err != nil {
		how = e.Err.Error()
	}
	return fmt.Sprintf("%s ended early (%s); the end of its log, %s:\n%s", e.Name, how, e.Log, e.Tail)
}

// Unwrap returns how the process ended.
func (e *ProcessError) Unwrap() error { return e.Err }

// run starts a program, in the data directory, with its output in logs.
func (c *Cluster) run(name string, args ...string) error {
	p := &process{name: name, log: c.path("logs", name+".log"), exited: make(chan struct{})}
	log, err := os.Create(p.log)
	if err != nil {
		return err
	}
	defer log.Close()
	p.cmd = exec.Command(filepath.Join(c.options.Binaries, name), args...)
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = c.dir, log, log
	p.cmd.Env = []string{"HOME=" + c.dir, "TMPDIR=" + c.dir, "PATH=" + os.Getenv("PATH")}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(p.cmd.SysProcAttr)

	c.mu.Lock() // until it is in the list, so that Stop cannot miss it
	defer c.mu.Unlock()
	if c.stopping {
		return errors.New("the control plane is being stopped")
	}
	started := make(chan error)
	go c.supervise(p, started)
	if err := <-started; err != nil {
		return fmt.Errorf("starting %s: %w", name, err)
	}
	c.processes = append(c.processes, p)
	c.say("started %s", name)
	return nil
}

// supervise starts a process and waits for its end. It keeps its thread for itself: the kernel takes the end of the
// thread that started a process, which the runtime may bring about, for the end of the parent.
func (c *Cluster) supervise(p *process, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(p.exited)
	err := p.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	err = p.cmd.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopping || c.err != nil {
		return
	}
	c.err = &ProcessError{Name: p.name, Log: p.log, Tail: tail(p.log), Err: err}
	close(c.failed)
}

// kill kills a process and those it started.
func (p *process) kill() {
	select {
	case <-p.exited: // its number may be another's by now
	default:
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	}
}

// tail returns the last lines of a log, of at most 4 KiB.
func tail(file string) string {
	const most = 4 << 10
	f, err := os.Open(file)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	if size, err := f.Seek(0, io.SeekEnd); err == nil {
		_, _ = f.Seek(max(0, size-most), io.SeekStart)
	}
	data, err := io.ReadAll(f)
	if err != nil {
		return err.Error()
	}
	lines := bytes.Split(bytes.TrimSpace(data), []byte("\n"))
	return string(bytes.Join(lines[max(0, len(lines)-10):], []byte("\n")))
}
