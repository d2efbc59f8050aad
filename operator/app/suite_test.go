package app_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sys/unix"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"example.com/pvcbackup/backup/movertest/devkubelet"
	"example.com/pvcbackup/blobstore/blobtest"
	"example.com/pvcbackup/operator/app"
	"example.com/pvcbackup/reconcilekit/kittest/controlplane"
)

const (
	systemNamespace = "pvcbackup-system"
	serviceAccount  = "controller-manager"
	moverImage      = "mover:test"
	clusterID       = "test-cluster"
	// unprivileged is the argument that makes this program take its rights away and then be the mover.
	unprivileged = "run-unprivileged"
	// maintainEvery is short enough for a test, and long enough for the others to be over before.
	maintainEvery = 25 * time.Second
)

// world is the cluster, the node, the store and the operator that all tests share. Each test has a namespace and a
// bucket of its own.
type world struct {
	dir     string
	cluster *controlplane.Cluster
	kubelet *devkubelet.Kubelet
	s3      *blobtest.S3
	gate    *gate
	calls   *calls
	admin   client.WithWatch
	pods    kubernetes.Interface
	closers []func() error
}

var shared world

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == unprivileged {
		fmt.Fprintln(os.Stderr, runUnprivileged(os.Args[2:]))
		os.Exit(1)
	}
	flag.Parse()
	if !given("test.parallel") {
		// The tests wait much more than they work.
		_ = flag.Set("test.parallel", "10")
	}
	os.Exit(runAll(m))
}

func runAll(m *testing.M) (code int) {
	defer func() {
		if err := shared.stop(code == 0); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
	}()
	if err := shared.start(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if code = m.Run(); code == 0 && !given("test.run") && !given("test.skip") {
		// Only now is known what the operator needs.
		if err := grantedIsUsed(shared.calls, filepath.Join("..", "config", "rbac", "role.yaml")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return code
}

func given(name string) (found bool) {
	flag.Visit(func(f *flag.Flag) { found = found || f.Name == name && f.Value.String() != "" })
	return found
}

// runUnprivileged becomes the program after it gave up the right to read and write everything, so that the movers of
// root's tests get to read no more than those of other people's.
func runUnprivileged(argv []string) error {
	runtime.LockOSThread()
	if os.Geteuid() == 0 {
		for _, capability := range []uintptr{unix.CAP_DAC_OVERRIDE, unix.CAP_DAC_READ_SEARCH} {
			if err := unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0); err != nil {
				return fmt.Errorf("giving up the capability %d: %w", capability, err)
			}
		}
	}
	return syscall.Exec(argv[0], argv, os.Environ())
}

func (w *world) start(ctx context.Context) (err error) {
	if w.dir, err = os.MkdirTemp("", "operator-"); err != nil {
		return err
	}
	building := make(chan error, 1)
	mover := filepath.Join(w.dir, "pvcbackup")
	go func() { building <- build(ctx, mover) }()
	err = errors.Join(w.startStore(), w.startCluster(ctx), <-building)
	if err != nil {
		return err
	}
	w.kubelet, err = devkubelet.Start(ctx, w.pods, devkubelet.Options{
		Dir: filepath.Join(w.dir, "node"), Images: map[string][]string{moverImage: {os.Args[0], unprivileged, mover}},
		CSIDrivers: []devkubelet.CSIDriver{{Name: controlplane.DriverName}}, Retry: 100 * time.Millisecond,
	})
	if err != nil {
		return err
	}
	w.closers = append(w.closers, func() error { w.kubelet.Stop(); return nil })
	return w.startOperator(ctx)
}

func build(ctx context.Context, program string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-o", program, "../cmd/pvcbackup")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building the mover: %w: %s", err, out)
	}
	return nil
}

func (w *world) startStore() error {
	server, stop, err := blobtest.LaunchS3(filepath.Join(w.dir, "s3"))
	if err != nil {
		return err
	}
	w.closers = append(w.closers, func() error { stop(); return nil })
	w.s3 = server
	w.gate = newGate(server.Endpoint)
	w.closers = append(w.closers, w.gate.close)
	return nil
}

func (w *world) startCluster(ctx context.Context) (err error) {
	w.cluster, err = controlplane.Start(ctx, controlplane.Options{
		CSI: &controlplane.CSI{}, CRDs: []string{filepath.Join("..", "config", "crd", "bases")},
	})
	if err != nil {
		return err
	}
	w.closers = append(w.closers, w.cluster.Stop)
	scheme := apiruntime.NewScheme()
	if err := app.AddToScheme(scheme); err != nil {
		return err
	}
	if w.admin, err = client.NewWithWatch(w.cluster.RESTConfig(), client.Options{Scheme: scheme}); err != nil {
		return err
	}
	w.pods, err = kubernetes.NewForConfig(w.cluster.RESTConfig())
	return err
}

// startOperator starts the operator with the identity and the rights of a deployment, and no other.
func (w *world) startOperator(ctx context.Context) error {
	for _, what := range [][]string{{"-f", "../config/manager/namespace.yaml"}, {"-k", "../config/rbac"}} {
		if _, err := w.kubectl(ctx, "apply", what[0], what[1]); err != nil {
			return err
		}
	}
	config, err := w.cluster.RESTConfigFor(ctx, systemNamespace, serviceAccount)
	if err != nil {
		return err
	}
	w.calls = &calls{}
	config.Wrap(w.calls.record)
	log, err := os.Create(filepath.Join(w.dir, "operator.log"))
	if err != nil {
		return err
	}
	ctrl.SetLogger(zap.New(zap.WriteTo(log)))
	running, cancel := context.WithCancel(logr.NewContext(ctx, ctrl.Log))
	ended := make(chan error, 1)
	w.closers = append(w.closers, func() error {
		cancel()
		return errors.Join(<-ended, log.Close())
	})
	go func() { ended <- w.operate(running, config) }()
	return nil
}

func (w *world) operate(ctx context.Context, config *rest.Config) error {
	scheme := apiruntime.NewScheme()
	if err := app.AddToScheme(scheme); err != nil {
		return err
	}
	options := app.DefaultOptions()
	options.MoverImage, options.MetricsAddress, options.ProbeAddress = moverImage, "0", "0"
	// Without leader election: a machine that is busy with other tests would lose the lease, and the tests with it.
	options.MaintainEvery = maintainEvery
	options.Stores = app.StoreParameters{"s3": "region=" + w.s3.Region + "&endpoint=" + url.QueryEscape(w.gate.URL)}
	mgr, err := app.New(ctx, config, scheme, options)
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// stop stops what was started, newest first. The folder stays after a failure.
func (w *world) stop(passed bool) error {
	var errs []error
	for i := len(w.closers) - 1; i >= 0; i-- {
		errs = append(errs, w.closers[i]())
	}
	if !passed {
		fmt.Fprintln(os.Stderr, "the operator's log and the store are in", w.dir)
		return errors.Join(errs...)
	}
	return errors.Join(append(errs, os.RemoveAll(w.dir))...)
}

func (w *world) kubectl(ctx context.Context, args ...string) (string, error) {
	program, err := controlPlaneProgram("kubectl")
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+w.cluster.Kubeconfig())
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return string(out), nil
}

// controlPlaneProgram returns the path of a program that was built with the control plane.
func controlPlaneProgram(name string) (string, error) {
	if dir := os.Getenv("KUBEBUILDER_ASSETS"); dir != "" {
		return filepath.Join(dir, name), nil
	}
	here, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := here; ; dir = filepath.Dir(dir) {
		path := filepath.Join(dir, ".cache", "controlplane", name)
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("no .cache/controlplane/%s above %s: run \"make control-plane\"", name, here)
		}
	}
}
