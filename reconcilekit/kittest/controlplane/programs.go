//go:build unix

package controlplane

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
)

const assets = "KUBEBUILDER_ASSETS"

// serviceIP is that of the Service "kubernetes", the first of serviceRange.
var serviceIP = net.IPv4(10, 96, 0, 1)

const serviceRange = "10.96.0.0/16"

// findPrograms sets the directory of the programs, and checks that they all are there.
func (c *Cluster) findPrograms(context.Context) error {
	needed := []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"}
	if c.options.CSI != nil {
		needed = append(needed, "snapshot-controller", "csi-snapshotter", "csi-provisioner", "csidriver", "crd")
	}
	dir, err := programs(c.options.Binaries)
	if err != nil {
		return err
	}
	for _, name := range needed {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("%w; run \"make control-plane csi-driver\", or set Binaries or %s to the directory of the programs", err, assets)
		}
	}
	c.options.Binaries = dir
	return nil
}

// programs returns the absolute path of the first that there is: given, $KUBEBUILDER_ASSETS, .cache/controlplane in
// the working directory or above.
func programs(given string) (string, error) {
	if given == "" {
		given = os.Getenv(assets)
	}
	if given != "" {
		return filepath.Abs(given)
	}
	here, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := here; ; dir = filepath.Dir(dir) {
		found := filepath.Join(dir, ".cache", "controlplane")
		if _, err := os.Stat(found); err == nil || dir == filepath.Dir(dir) {
			return found, nil
		}
	}
}

func (c *Cluster) startEtcd(context.Context) error {
	url := c.ports[0].url()
	return c.run("etcd", "--data-dir="+c.path("etcd"), "--unsafe-no-fsync", "--log-level=warn",
		"--listen-client-urls="+url, "--advertise-client-urls="+url, "--socket-reuse-port", "--listen-peer-urls=http://127.0.0.1:0",
		"--cert-file="+c.pki.file("etcd.crt"), "--key-file="+c.pki.file("etcd.key"),
		"--client-cert-auth", "--trusted-ca-file="+c.pki.file("ca.crt"))
}

func (c *Cluster) startAPIServer(ctx context.Context) error {
	args := []string{
		"--etcd-servers=" + c.ports[0].url(), "--etcd-cafile=" + c.pki.file("ca.crt"),
		"--etcd-certfile=" + c.pki.file("admin.crt"), "--etcd-keyfile=" + c.pki.file("admin.key"),
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", c.ports[1].number), "--permit-port-sharing",
		"--advertise-address=127.0.0.1", "--endpoint-reconciler-type=none", "--service-cluster-ip-range=" + serviceRange,
		"--tls-cert-file=" + c.pki.file("apiserver.crt"), "--tls-private-key-file=" + c.pki.file("apiserver.key"),
		"--client-ca-file=" + c.pki.file("ca.crt"), "--authorization-mode=Node,RBAC", "--allow-privileged",
		"--kubelet-client-certificate=" + c.pki.file("kubelet-client.crt"), "--kubelet-client-key=" + c.pki.file("kubelet-client.key"),
		"--kubelet-preferred-address-types=InternalIP,Hostname",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + c.pki.file("service-account.key"),
		"--service-account-signing-key-file=" + c.pki.file("service-account.key"),
	}
	if err := c.run("kube-apiserver", append(args, c.options.APIServerArgs...)...); err != nil {
		return err
	}
	return c.until(ctx, "the API server to be ready", func(ctx context.Context) error {
		return c.client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	})
}

func (c *Cluster) startControllers(context.Context) error {
	if err := c.run("kube-controller-manager", "--kubeconfig="+c.path("controller-manager.kubeconfig"),
		"--use-service-account-credentials", "--service-account-private-key-file="+c.pki.file("service-account.key"),
		"--root-ca-file="+c.pki.file("ca.crt"), "--leader-elect=false", "--secure-port=0",
		"--kube-api-qps=200", "--kube-api-burst=400"); err != nil {
		return err
	}
	return c.run("kube-scheduler", "--kubeconfig="+c.path("scheduler.kubeconfig"), "--leader-elect=false", "--secure-port=0",
		"--kube-api-qps=200", "--kube-api-burst=400")
}
