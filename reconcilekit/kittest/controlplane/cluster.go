//go:build unix

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Cluster is a running control plane. Make it with [Start]. Its methods may be called by several goroutines.
type Cluster struct {
	options Options
	dir     string
	socket  string // of the CSI driver
	crds    []*unstructured.Unstructured
	pki     *pki
	ports   []*port // etcd's and the API server's
	admin   *rest.Config
	client  kubernetes.Interface
	started time.Time

	mu        sync.Mutex
	processes []*process
	stopping  bool
	err       error
	failed    chan struct{}
}

// Start runs a control plane and returns when it is ready to use. Neither a started cluster depends on ctx, nor does
// one remain when there is an error.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	if o.Timeout == 0 {
		o.Timeout = 2 * time.Minute
	}
	if o.Log == nil {
		o.Log = io.Discard
	}
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	c := &Cluster{options: o, failed: make(chan struct{}), started: time.Now()}
	if err := c.start(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("starting the control plane: %w", err), c.Stop())
	}
	c.say("ready")
	return c, nil
}

func (c *Cluster) start(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		c.findPrograms, c.readCRDs, c.makeDir, c.reservePorts, c.makeCertificates,
		c.startDriver, c.startEtcd, c.startAPIServer, c.startControllers, c.installCRDs, c.startCSI, c.awaitNamespace,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// makeDir makes the data directory. Only after that is there anything to remove.
func (c *Cluster) makeDir(context.Context) error {
	dir := c.options.Dir
	if dir == "" {
		made, err := os.MkdirTemp("", "controlplane-")
		if err != nil {
			return fmt.Errorf("making a directory for the control plane's data: %w", err)
		}
		c.dir = made
		return os.Mkdir(c.path("logs"), 0o700)
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("making Dir: %w", err)
	}
	if there, err := os.ReadDir(dir); err != nil || len(there) > 0 {
		return errors.Join(err, fmt.Errorf("directory %s, given as Dir, must be empty; it has %d entries", dir, len(there)))
	}
	c.dir = dir
	return os.Mkdir(c.path("logs"), 0o700)
}

// Stop kills all processes and removes all data, unless [Options.Keep] keeps them. It may be called again.
func (c *Cluster) Stop() error {
	c.mu.Lock()
	c.stopping = true
	running := c.processes
	c.processes = nil
	c.mu.Unlock()
	for _, p := range running {
		p.kill()
	}
	for _, p := range running {
		<-p.exited
	}
	for _, p := range c.ports {
		p.release()
	}
	c.ports = nil
	if c.dir == "" || c.options.Keep {
		return nil
	}
	if err := removeAll(c.dir); err != nil {
		return fmt.Errorf("removing the control plane's data: %w", err)
	}
	return nil
}

// removeAll removes a directory whatever rights were taken away from what is in it, as in a volume.
func removeAll(dir string) error {
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		return os.Chmod(path, 0o700)
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.RemoveAll(dir)
}

// Done is closed when a process ended that should not have; [Cluster.Err] then says which, and why.
func (c *Cluster) Done() <-chan struct{} { return c.failed }

// Err returns nil until a process ended early.
func (c *Cluster) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// Dir returns the absolute path of the data directory; logs are below logs, one file a process.
func (c *Cluster) Dir() string { return c.dir }

// CAFile returns the path of the certificate authority that signs all certificates here. What serves pods/log and
// pods/exec may require of the API server a client certificate signed by it; the API server accepts any certificate.
func (c *Cluster) CAFile() string { return c.pki.file("ca.crt") }

func (c *Cluster) path(elem ...string) string {
	return filepath.Join(append([]string{c.dir}, elem...)...)
}

// say writes a line of progress with the seconds since the start.
func (c *Cluster) say(format string, args ...any) {
	fmt.Fprintf(c.options.Log, "control plane: %4.1fs %s\n", time.Since(c.started).Seconds(), fmt.Sprintf(format, args...))
}

// until repeats try until it succeeds, a process fails, or ctx ends. what completes "waiting for".
func (c *Cluster) until(ctx context.Context, what string, try func(context.Context) error) error {
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		attempt, cancel := context.WithTimeout(ctx, 5*time.Second)
		err := try(attempt)
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-c.failed:
			return c.Err()
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w; last: %w; logs are in %s while it runs", what, context.Cause(ctx), err, c.path("logs"))
		case <-ticker.C:
		}
	}
}
