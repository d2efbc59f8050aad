package kittest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// APIServerOptions are the options of [NewAPIServer]. The zero value is ready to use.
type APIServerOptions struct {
	// CRDPaths are files and folders of definitions to install. A missing one is
	// an error.
	CRDPaths []string
	// CRDs are further definitions to install.
	CRDs []*apiextensionsv1.CustomResourceDefinition
	// WithoutVolumeSnapshots leaves out the definitions of the external-snapshotter
	// client module, which are installed otherwise.
	WithoutVolumeSnapshots bool
	// Scheme is that of the clients; that of client-go when nil.
	Scheme *runtime.Scheme
	// Configure may change the environment before it starts; may be nil.
	Configure func(*envtest.Environment)
}

// APIServer is a real kube-apiserver with etcd, shared by the tests of a package.
// Make it with [NewAPIServer].
type APIServer struct {
	options APIServerOptions

	once    sync.Once
	env     *envtest.Environment
	cluster *Cluster
	err     error
}

// Cluster is a running [APIServer].
type Cluster struct {
	// Config is that of its administrator.
	Config *rest.Config
	// Client is the administrator's; it reads live.
	Client client.WithWatch
	// Scheme is that of the clients.
	Scheme *runtime.Scheme
}

// NewAPIServer returns a server that starts when the first test asks for it.
// Its programs kube-apiserver and etcd are those in $KUBEBUILDER_ASSETS, or else
// in .cache/controlplane of a folder above, where "make control-plane" puts them.
func NewAPIServer(options APIServerOptions) *APIServer {
	if options.Scheme == nil {
		options.Scheme = scheme.Scheme
	}
	return &APIServer{options: options}
}

// Main runs the tests of a package, stops the server if one of them started it,
// and returns the exit code. It is for TestMain.
func (s *APIServer) Main(m *testing.M) (code int) {
	code = m.Run()
	if err := s.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return max(code, 1)
	}
	return code
}

// Start starts the server, unless it runs already, and fails the test when it
// cannot.
func (s *APIServer) Start(t testing.TB) *Cluster {
	t.Helper()
	s.once.Do(func() { s.err = s.start() })
	if s.err != nil {
		t.Fatal(s.err)
	}
	return s.cluster
}

// Stop stops the server. One that never started is fine.
func (s *APIServer) Stop() error {
	if s.env == nil {
		return nil
	}
	if err := s.env.Stop(); err != nil {
		return fmt.Errorf("stopping the API server: %w", err)
	}
	return nil
}

func (s *APIServer) start() error {
	programs, err := findPrograms()
	if err != nil {
		return err
	}
	paths := s.options.CRDPaths
	if !s.options.WithoutVolumeSnapshots {
		dir, err := moduleDir("github.com/kubernetes-csi/external-snapshotter/client/v8")
		if err != nil {
			return err
		}
		paths = append([]string{filepath.Join(dir, "config", "crd")}, paths...)
	}
	s.env = &envtest.Environment{
		Scheme:                s.options.Scheme,
		BinaryAssetsDirectory: programs,
		CRDDirectoryPaths:     paths,
		CRDs:                  s.options.CRDs,
		ErrorIfCRDPathMissing: true,
		// Generous: a machine may be busy with other packages' tests.
		ControlPlaneStartTimeout: 2 * time.Minute,
		ControlPlaneStopTimeout:  time.Minute,
	}
	if s.options.Configure != nil {
		s.options.Configure(s.env)
	}
	config, err := s.env.Start()
	if err != nil {
		// A half-started one must not outlive the tests.
		return errors.Join(fmt.Errorf("starting the API server: %w", err), s.Stop())
	}
	s.cluster = &Cluster{Config: config, Scheme: s.options.Scheme}
	s.cluster.Client, err = client.NewWithWatch(config, client.Options{Scheme: s.options.Scheme})
	return err
}

// NewClient returns a client of the administrator with a discovery of its own.
func (c *Cluster) NewClient(t testing.TB) client.WithWatch {
	t.Helper()
	fresh, err := client.NewWithWatch(c.Config, client.Options{Scheme: c.Scheme})
	if err != nil {
		t.Fatalf("making a client: %v", err)
	}
	return fresh
}

// Namespace creates a namespace for one test and returns its name. It is deleted
// at the end of the test; nothing runs in this control plane that would empty it.
func (c *Cluster) Namespace(t testing.TB) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	if err := c.Client.Create(t.Context(), namespace); err != nil {
		t.Fatalf("creating a namespace: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := c.Client.Delete(ctx, namespace); client.IgnoreNotFound(err) != nil {
			t.Errorf("deleting the namespace %q: %v", namespace.Name, err)
		}
	})
	return namespace.Name
}

const assetsVariable = "KUBEBUILDER_ASSETS"

// findPrograms returns the folder of kube-apiserver and etcd.
func findPrograms() (string, error) {
	if dir := os.Getenv(assetsVariable); dir != "" {
		return dir, checkPrograms(dir)
	}
	here, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := here; ; dir = filepath.Dir(dir) {
		if programs := filepath.Join(dir, ".cache", "controlplane"); checkPrograms(programs) == nil {
			return programs, nil
		}
		if dir == filepath.Dir(dir) {
			return "", missing(filepath.Join(".cache", "controlplane") + " of any folder above " + here)
		}
	}
}

func checkPrograms(dir string) error {
	for _, program := range []string{"kube-apiserver", "etcd"} {
		if info, err := os.Stat(filepath.Join(dir, program)); err != nil || info.IsDir() {
			return missing(dir)
		}
	}
	return nil
}

func missing(where string) error {
	return fmt.Errorf(`no kube-apiserver and etcd in %s: run "make control-plane", or set %s to their folder`, where, assetsVariable)
}

// moduleDir returns the folder of a module that the module under test requires.
func moduleDir(module string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var stderr bytes.Buffer
	list := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", module)
	list.Stderr = &stderr
	out, err := list.Output()
	dir := strings.TrimSpace(string(out))
	if err != nil {
		return "", fmt.Errorf("finding the folder of the module %s: %w: %s", module, err, strings.TrimSpace(stderr.String()))
	}
	if dir == "" {
		return "", fmt.Errorf("the module %s is not downloaded; go mod download it", module)
	}
	return dir, nil
}
