//go:build unix

package controlplane

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// pki is a certificate authority and what it signed, as files NAME.crt and NAME.key in a directory.
type pki struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

const admins = "system:masters" // the group that may do everything

// makeCertificates makes all that the processes need, valid for this cluster's loopback only.
func (c *Cluster) makeCertificates(context.Context) error {
	p, err := newPKI(c.path("pki"))
	if err != nil {
		return err
	}
	c.pki = p
	for _, err := range []error{
		p.sign("etcd", pkix.Name{CommonName: "etcd"}),
		p.sign("apiserver", pkix.Name{CommonName: "kube-apiserver"}),
		p.sign("kubelet-client", pkix.Name{CommonName: "kube-apiserver-kubelet-client", Organization: []string{admins}}),
		p.sign("admin", pkix.Name{CommonName: "admin", Organization: []string{admins}}),
		p.sign("controller-manager", pkix.Name{CommonName: "system:kube-controller-manager"}),
		p.sign("scheduler", pkix.Name{CommonName: "system:kube-scheduler"}),
		p.sign("csi", pkix.Name{CommonName: "csi", Organization: []string{admins}}),
		p.newKey("service-account"),
	} {
		if err != nil {
			return err
		}
	}
	return c.writeKubeconfigs()
}

func newPKI(dir string) (*pki, error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	p := &pki{dir: dir}
	var err error
	if p.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, err
	}
	p.cert = template(pkix.Name{CommonName: "control plane"})
	p.cert.IsCA, p.cert.BasicConstraintsValid = true, true
	p.cert.KeyUsage |= x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, p.cert, p.cert, p.key.Public(), p.key)
	if err != nil {
		return nil, err
	}
	if p.cert, err = x509.ParseCertificate(der); err != nil {
		return nil, err
	}
	return p, writePEM(p.file("ca.crt"), "CERTIFICATE", der)
}

func template(name pkix.Name) *x509.Certificate {
	serial, _ := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127)) // never fails
	return &x509.Certificate{
		Subject: name, SerialNumber: serial,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(365 * 24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature,
	}
}

// sign makes a certificate and its key, good for a server on loopback and for a client.
func (p *pki) sign(file string, name pkix.Name) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	t := template(name)
	t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	t.DNSNames = []string{"localhost", "kubernetes.default.svc"}
	t.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1), serviceIP}
	der, err := x509.CreateCertificate(rand.Reader, t, p.cert, key.Public(), p.key)
	if err != nil {
		return err
	}
	return errors.Join(writePEM(p.file(file+".crt"), "CERTIFICATE", der), writeKey(p.file(file+".key"), key))
}

// newKey makes a key without a certificate.
func (p *pki) newKey(file string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	return writeKey(p.file(file+".key"), key)
}

func (p *pki) file(name string) string { return filepath.Join(p.dir, name) }

func writeKey(path string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return writePEM(path, "EC PRIVATE KEY", der)
}

func writePEM(path, kind string, der []byte) error {
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}
