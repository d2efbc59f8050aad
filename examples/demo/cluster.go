package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/kubernetes"

	"example.com/pvcbackup/backup/movertest/devkubelet"
	"example.com/pvcbackup/reconcilekit/kittest/controlplane"
)

// Names that the demo uses.
const (
	namespace      = "demo"
	systemSpace    = "pvcbackup-system"
	serviceAccount = "controller-manager"
	moverImage     = "pvcbackup:demo"
	filesImage     = "files:demo"
	clusterID      = "demo-cluster"
)

// demo is one run of it.
type demo struct {
	options
	start   time.Time
	dir     string
	cluster *controlplane.Cluster
	kubelet *devkubelet.Kubelet
	client  kubernetes.Interface
	store   *store
	manager *exec.Cmd
	metric  string
	// lost is a copy of the claim's folder as it was when it was lost.
	lost string
	// restored tells what the restore said.
	restored string
	closers  []func() error
}

func (d *demo) setUp(ctx context.Context) (err error) {
	if d.root, err = filepath.Abs(d.root); err != nil {
		return err
	}
	if d.dir, err = os.MkdirTemp("", "pvcbackup-demo-"); err != nil {
		return err
	}
	if d.store, err = d.openStore(); err != nil {
		return err
	}
	fmt.Printf("  store: %s\n", d.store.describe)
	d.cluster, err = controlplane.Start(ctx, controlplane.Options{
		Dir: filepath.Join(d.dir, "cp"), Binaries: filepath.Join(d.root, ".cache", "controlplane"), Log: indent{os.Stdout},
		Keep: d.keep, CSI: &controlplane.CSI{}, CRDs: []string{filepath.Join(d.root, "operator/config/crd/bases")},
	})
	if err != nil {
		return err
	}
	d.closers = append(d.closers, d.cluster.Stop)
	if d.client, err = kubernetes.NewForConfig(d.cluster.RESTConfig()); err != nil {
		return err
	}
	if err := d.startNode(ctx); err != nil {
		return err
	}
	return d.startOperator(ctx)
}

// startNode starts the stand-in for a node: the only one in the demo.
func (d *demo) startNode(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	d.kubelet, err = devkubelet.Start(context.WithoutCancel(ctx), d.client, devkubelet.Options{
		Dir: filepath.Join(d.dir, "node"),
		Images: map[string][]string{
			moverImage: {filepath.Join(d.root, "bin/pvcbackup")},
			filesImage: {self, "files"},
		},
		CSIDrivers: []devkubelet.CSIDriver{{Name: controlplane.DriverName}},
	})
	if err != nil {
		return err
	}
	d.closers = append(d.closers, func() error { d.kubelet.Stop(); return nil })
	fmt.Println("  node: a stand-in that runs Pods as local processes")
	return nil
}

// startOperator runs the operator as the service account that a deployment gives it, with no more rights than that.
func (d *demo) startOperator(ctx context.Context) error {
	for _, what := range [][]string{{"-f", "operator/config/manager/namespace.yaml"}, {"-k", "operator/config/rbac"}} {
		if _, err := d.kubectl(ctx, "apply", what[0], filepath.Join(d.root, what[1])); err != nil {
			return err
		}
	}
	config, err := d.cluster.RESTConfigFor(ctx, systemSpace, serviceAccount)
	if err != nil {
		return err
	}
	kubeconfig := filepath.Join(d.dir, "operator.kubeconfig")
	if err := controlplane.WriteKubeconfig(kubeconfig, config); err != nil {
		return err
	}
	if d.metric, err = freeAddress(); err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(d.dir, "operator.log"))
	if err != nil {
		return err
	}
	args := []string{"--mover-image=" + moverImage, "--cluster-id=" + clusterID, "--metrics-bind-address=" + d.metric,
		"--health-probe-bind-address=0", "--leader-elect", "--leader-election-namespace=" + systemSpace}
	args = append(args, d.store.operatorArgs...)
	d.manager = exec.Command(filepath.Join(d.root, "bin/manager"), args...)
	d.manager.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	d.manager.Stdout, d.manager.Stderr = log, log
	d.manager.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := d.manager.Start(); err != nil {
		return err
	}
	d.closers = append(d.closers, func() error { return stopProcess(d.manager) })
	fmt.Println("  operator: running as its service account")
	return nil
}

// stopProcess asks a process to end, and makes it end.
func stopProcess(cmd *exec.Cmd) error {
	done := make(chan struct{})
	go func() { _ = cmd.Wait(); close(done) }()
	_ = cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-done:
	case <-time.After(15 * time.Second):
		_ = cmd.Process.Kill()
		<-done
	}
	return nil
}

// close stops what was started, newest first, and removes the demo's folder. After a failure the folder stays.
func (d *demo) close(failed bool) error {
	var errs []error
	for i := len(d.closers) - 1; i >= 0; i-- {
		errs = append(errs, d.closers[i]())
	}
	switch {
	case d.dir == "":
	case failed || d.keep:
		fmt.Printf("\nLogs are in %s\n", d.dir)
	default:
		makeRemovable(d.dir)
		errs = append(errs, os.RemoveAll(d.dir))
	}
	return errors.Join(errs...)
}

// makeRemovable gives the owner of every folder the right to remove what is in it: restored modes need not.
func makeRemovable(dir string) {
	_ = filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if entry != nil && entry.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
}

// kubectl runs the real kubectl and returns what it printed.
func (d *demo) kubectl(ctx context.Context, args ...string) (string, error) {
	return d.kubectlWith(ctx, "", args...)
}

func (d *demo) kubectlWith(ctx context.Context, input string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(d.root, ".cache/controlplane/kubectl"), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+d.cluster.Kubeconfig())
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return string(out), nil
}

// show runs kubectl in the demo's namespace and shows the command with what it printed.
func (d *demo) show(ctx context.Context, args ...string) error {
	out, err := d.kubectl(ctx, append(args, "-n", namespace)...)
	if err != nil {
		return err
	}
	fmt.Printf("  $ kubectl %s\n", strings.Join(args, " "))
	fmt.Fprint(indent{os.Stdout}, out)
	return nil
}

// indent puts each line a little to the right.
type indent struct{ w io.Writer }

func (i indent) Write(p []byte) (int, error) {
	for line := range strings.Lines(string(p)) {
		if _, err := io.WriteString(i.w, "    "+line); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}
