// Command forked proves that a fork of the operator reconciles the kind that was added to it: it starts a control plane
// with the fork's definitions and the fork's manager, creates an object of the kind, and waits until the manager's
// metrics count its reconcile.
//
//	forked -manager bin/manager -crds config/crd/bases -kind Widget
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/pvcbackup/reconcilekit/kittest/controlplane"
)

func main() {
	manager := flag.String("manager", "bin/manager", "the fork's manager")
	crds := flag.String("crds", "config/crd/bases", "the fork's definitions")
	kind := flag.String("kind", "Widget", "the kind that was added, of storage.example.com/v1")
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	if err := run(ctx, *manager, *crds, *kind); err != nil {
		fmt.Fprintln(os.Stderr, "the fork:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, manager, crds, kind string) (err error) {
	cluster, err := controlplane.Start(ctx, controlplane.Options{CSI: &controlplane.CSI{}, CRDs: []string{crds}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cluster.Stop()) }()
	address, err := freeAddress()
	if err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(cluster.Dir(), "manager.log"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	cmd := exec.CommandContext(ctx, manager, "--metrics-bind-address="+address, "--health-probe-bind-address=0")
	cmd.Env = append(os.Environ(), "KUBECONFIG="+cluster.Kubeconfig())
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return err
	}
	err = reconciled(ctx, cluster, address, kind)
	if err != nil {
		text, _ := os.ReadFile(log.Name())
		err = fmt.Errorf("%w\n%s", err, text)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	return err
}

func reconciled(ctx context.Context, cluster *controlplane.Cluster, address, kind string) error {
	c, err := client.New(cluster.RESTConfig(), client.Options{})
	if err != nil {
		return err
	}
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(schema.GroupVersionKind{Group: "storage.example.com", Version: "v1", Kind: kind})
	obj.SetNamespace(metav1.NamespaceDefault)
	obj.SetName("one")
	obj.Object["spec"] = map[string]any{}
	if err := c.Create(ctx, obj); err != nil {
		return err
	}
	want := fmt.Sprintf(`controller_runtime_reconcile_total{controller=%q,result="success"}`, strings.ToLower(kind))
	var last error
	err = wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		var n string
		if n, last = metric(ctx, "http://"+address+"/metrics", want); last != nil || n == "0" {
			return false, nil //nolint:nilerr // it is told in the end
		}
		fmt.Println(want, n)
		return true, nil
	})
	if err != nil {
		return fmt.Errorf("no %s was reconciled: %w: %w", kind, err, last)
	}
	return nil
}

// metric returns the value of a series.
func metric(ctx context.Context, url, series string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		if value, found := strings.CutPrefix(lines.Text(), series+" "); found {
			return value, nil
		}
	}
	return "", fmt.Errorf("%s has no series %s", url, series)
}

func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}
