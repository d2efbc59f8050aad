//go:build unix

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// RESTConfig returns a new configuration for an administrator's clients, which do not limit their own rate.
func (c *Cluster) RESTConfig() *rest.Config { return rest.CopyConfig(c.admin) }

// Kubeconfig returns the path of an administrator's kubeconfig file. The file holds all it needs, and may be copied.
func (c *Cluster) Kubeconfig() string { return c.path("admin.kubeconfig") }

// RESTConfigFor returns a configuration for clients that act as a service account, which must exist, and may do only
// what was granted to it. Its token is valid for a day.
func (c *Cluster) RESTConfigFor(ctx context.Context, namespace, serviceAccount string) (*rest.Config, error) {
	day := int64(24 * time.Hour / time.Second)
	r, err := c.client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, serviceAccount,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &day}}, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("asking for a token of the service account %s/%s: %w", namespace, serviceAccount, err)
	}
	config := rest.AnonymousClientConfig(c.admin)
	config.BearerToken = r.Status.Token
	return config, nil
}

// WriteKubeconfig writes a configuration, such as one of [Cluster.RESTConfigFor], as a kubeconfig file that only its
// owner may read, for processes and kubectl.
func WriteKubeconfig(path string, config *rest.Config) error {
	if err := rest.LoadTLSFiles(config); err != nil {
		return fmt.Errorf("reading the certificates of a configuration: %w", err)
	}
	const name = "controlplane"
	k := clientcmdapi.NewConfig()
	k.Clusters[name] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	k.AuthInfos[name] = &clientcmdapi.AuthInfo{
		Token: config.BearerToken, ClientCertificateData: config.CertData, ClientKeyData: config.KeyData}
	k.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	k.CurrentContext = name
	if err := clientcmd.WriteToFile(*k, path); err != nil {
		return fmt.Errorf("writing the kubeconfig file: %w", err)
	}
	return nil
}

// writeKubeconfigs writes one file for each who uses the API, and makes the administrator's client.
func (c *Cluster) writeKubeconfigs() error {
	for _, user := range []string{"admin", "controller-manager", "scheduler", "csi"} {
		config, err := c.configFor(user)
		if err != nil {
			return err
		}
		if err := WriteKubeconfig(c.path(user+".kubeconfig"), config); err != nil {
			return err
		}
	}
	var err error
	if c.admin, err = c.configFor("admin"); err != nil {
		return err
	}
	c.client, err = kubernetes.NewForConfig(c.admin)
	return err
}

func (c *Cluster) configFor(user string) (*rest.Config, error) {
	ca, err1 := os.ReadFile(c.pki.file("ca.crt"))
	cert, err2 := os.ReadFile(c.pki.file(user + ".crt"))
	key, err3 := os.ReadFile(c.pki.file(user + ".key"))
	return &rest.Config{
		Host: c.ports[1].url(), QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{CAData: ca, CertData: cert, KeyData: key},
	}, errors.Join(err1, err2, err3)
}
