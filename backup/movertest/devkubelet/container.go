package devkubelet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/pvcbackup/backup/contract"
)

// container runs one container until it ended for good.
func (w *worker) container(ctx, run context.Context, spec *corev1.Container, mounted folders) {
	for run.Err() == nil {
		command, err := w.command(run, spec, mounted)
		if err != nil {
			reason := "CreateContainerConfigError"
			if errors.Is(err, errNoImage) {
				reason = "ImagePullBackOff"
			}
			w.change(ctx, func(s *podStatus) { s.wait(spec.Name, reason, err.Error()) })
			w.pause(run)
			continue
		}
		end := w.execute(ctx, run, spec, command)
		if ctx.Err() != nil {
			return // as on a node that lost its power
		}
		again := run.Err() == nil && restarts(w.pod().Spec.RestartPolicy, end.ExitCode)
		w.change(ctx, func(s *podStatus) { s.terminated(spec.Name, end, again, context.Cause(run)) })
		if !again {
			return
		}
		w.pause(run)
	}
}

func restarts(policy corev1.RestartPolicy, exitCode int32) bool {
	return policy == corev1.RestartPolicyAlways || policy == "" || policy == corev1.RestartPolicyOnFailure && exitCode != 0
}

var errNoImage = errors.New("the development kubelet has no such image")

// command makes the local process of a container, or tells what is missing for it.
func (w *worker) command(ctx context.Context, spec *corev1.Container, mounted folders) (*exec.Cmd, error) {
	entrypoint, known := w.kubelet.options.Images[spec.Image]
	if !known {
		return nil, fmt.Errorf("Back-off pulling image %q: %w", spec.Image, errNoImage) // a kubelet's own words
	}
	vars, err := w.kubelet.environment(ctx, w.pod(), spec)
	if err != nil {
		return nil, err
	}
	dir := w.containerDir(spec.Name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	paths, err := mounted.of(spec)
	if err != nil {
		return nil, err
	}
	message := filepath.Join(dir, "termination-message")
	if spec.TerminationMessagePath != "" {
		paths[spec.TerminationMessagePath] = message
	}
	argv := append([]string(nil), entrypoint...)
	if len(spec.Command) > 0 {
		argv = paths.rewriteAll(vars.expandAll(spec.Command))
	}
	argv = append(argv, paths.rewriteAll(vars.expandAll(spec.Args))...)
	if len(argv) == 0 {
		return nil, fmt.Errorf("image %q has no entrypoint and the container no command", spec.Image)
	}
	command := exec.Command(argv[0], argv[1:]...) //nolint:noctx // ended by signals, with a grace period
	command.Dir = paths.rewrite(spec.WorkingDir)
	if command.Dir == "" {
		command.Dir = dir
	}
	command.Env = w.processEnv(vars, paths, message)
	return command, nil
}

// processEnv is what every process gets, then the Pod's own variables, then where its result goes.
func (w *worker) processEnv(vars *variables, paths paths, message string) []string {
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + w.dir()}
	if tmp, ok := paths["/tmp"]; ok {
		env = append(env, "TMPDIR="+tmp)
	}
	env = append(env, w.kubelet.options.Env...)
	for _, name := range vars.names {
		env = append(env, name+"="+paths.rewrite(vars.values[name]))
	}
	return append(env, contract.EnvResultFile+"="+message)
}

// execute runs a process to its end.
func (w *worker) execute(ctx, run context.Context, spec *corev1.Container, command *exec.Cmd) corev1.ContainerStateTerminated {
	// The kernel ends the process with the thread that made it: the thread must live as long as this process does.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	started := metav1.Now()
	message := filepath.Join(w.containerDir(spec.Name), "termination-message")
	log, err := w.start(command, spec, message)
	if err != nil {
		return corev1.ContainerStateTerminated{
			ExitCode: 128, Reason: "StartError", Message: err.Error(), StartedAt: started, FinishedAt: metav1.Now(),
		}
	}
	defer log.Close()
	w.setProcess(spec.Name, command.Process)
	exited := make(chan struct{})
	go w.endProcess(ctx, run, command.Process, exited)
	w.change(ctx, func(s *podStatus) { s.running(spec.Name, started) })
	_ = command.Wait() // what it tells is in ProcessState
	w.setProcess(spec.Name, nil)
	close(exited)
	signalGroup(command.Process, syscall.SIGKILL) // what the process left behind ends with its container
	end := howItEnded(command.ProcessState)
	end.StartedAt, end.FinishedAt = started, metav1.Now()
	end.Message = terminationMessage(spec.TerminationMessagePolicy, end.ExitCode, message, log.Name())
	return end
}

func (w *worker) start(command *exec.Cmd, spec *corev1.Container, message string) (*os.File, error) {
	if err := os.WriteFile(message, nil, 0o600); err != nil {
		return nil, err
	}
	log, err := os.OpenFile(w.logFile(spec.Name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := command.Start(); err != nil {
		log.Close()
		return nil, err
	}
	return log, nil
}

func (w *worker) setProcess(container string, process *os.Process) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if process == nil {
		delete(w.processes, container)
		return
	}
	w.processes[container] = process
}

// endProcess asks a process to end when its Pod ends, and makes it after the grace period, or when the kubelet ends.
func (w *worker) endProcess(ctx, run context.Context, process *os.Process, exited <-chan struct{}) {
	select {
	case <-exited:
		return
	case <-run.Done():
	}
	if ctx.Err() == nil && !closed(w.gone) {
		signalGroup(process, syscall.SIGTERM)
		grace := time.NewTimer(w.grace())
		defer grace.Stop()
		select {
		case <-exited:
			return
		case <-grace.C:
		case <-ctx.Done():
		case <-w.gone:
		}
	}
	signalGroup(process, syscall.SIGKILL)
}

// signalGroup signals a process and its children. That they are gone is fine.
func signalGroup(process *os.Process, signal syscall.Signal) {
	_ = syscall.Kill(-process.Pid, signal)
}

func howItEnded(state *os.ProcessState) corev1.ContainerStateTerminated {
	end := corev1.ContainerStateTerminated{ExitCode: int32(state.ExitCode()), Reason: "Completed"}
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		end.ExitCode, end.Signal = 128+int32(status.Signal()), int32(status.Signal())
	}
	if end.ExitCode != 0 {
		end.Reason = "Error"
	}
	return end
}
