//go:build unix

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// startDriver comes first of all: it depends on nothing.
func (c *Cluster) startDriver(context.Context) error {
	csi := c.options.CSI
	if csi == nil {
		return nil
	}
	var err error
	if c.socket, err = c.socketPath(); err != nil {
		return err
	}
	args := []string{"--root=" + c.volumes(), "--socket=" + c.socket, "--driver-name=" + DriverName}
	if csi.Node != "" {
		args = append(args, "--node-id="+csi.Node)
	}
	if csi.Topology {
		args = append(args, "--topology")
	}
	return c.run("csidriver", args...)
}

// volumes is the driver's root directory.
func (c *Cluster) volumes() string {
	if c.options.CSI.Root != "" {
		return c.options.CSI.Root
	}
	return c.path("volumes")
}

// socketPath returns a path for the driver's socket, of which the kernel takes no more than 107 bytes.
func (c *Cluster) socketPath() (string, error) {
	path := c.path("csi.sock")
	if len(path) > 103 { // what other systems than Linux take
		return "", fmt.Errorf("directory %s has a path too long for a socket in it (at most 94 bytes); set Dir or TMPDIR to a shorter one", c.dir)
	}
	return path, nil
}

// startCSI starts what watches claims and snapshots, and makes the objects that describe the driver.
func (c *Cluster) startCSI(ctx context.Context) error {
	if c.options.CSI == nil {
		return nil
	}
	if err := c.until(ctx, "the CSI driver to listen", func(ctx context.Context) error {
		conn, err := (&net.Dialer{}).DialContext(ctx, "unix", c.socket)
		if err == nil {
			err = conn.Close()
		}
		return err
	}); err != nil {
		return err
	}
	client := []string{"--kubeconfig=" + c.path("csi.kubeconfig"), "--kube-api-qps=200", "--kube-api-burst=400",
		"--retry-interval-start=200ms", "--retry-interval-max=5s"}
	sidecar := append([]string{"--csi-address=" + c.socket, "--timeout=5m", "--extra-create-metadata"}, client...)
	for _, err := range []error{
		c.run("snapshot-controller", client...),
		c.run("csi-snapshotter", sidecar...),
		c.run("csi-provisioner", sidecar...),
		c.describeDriver(ctx),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}

// describeDriver makes the CSIDriver, the storage classes and the snapshot class.
func (c *Cluster) describeDriver(ctx context.Context) error {
	no, deletes := false, corev1.PersistentVolumeReclaimDelete
	immediate, waits := storagev1.VolumeBindingImmediate, storagev1.VolumeBindingWaitForFirstConsumer
	storage := c.client.StorageV1()
	_, err := storage.CSIDrivers().Create(ctx, &storagev1.CSIDriver{
		ObjectMeta: metav1.ObjectMeta{Name: DriverName},
		Spec:       storagev1.CSIDriverSpec{AttachRequired: &no, PodInfoOnMount: &no},
	}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("making the CSIDriver: %w", err)
	}
	for _, class := range []*storagev1.StorageClass{
		{ObjectMeta: metav1.ObjectMeta{Name: ImmediateClass, Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}}, VolumeBindingMode: &immediate},
		{ObjectMeta: metav1.ObjectMeta{Name: WaitingClass}, VolumeBindingMode: &waits},
	} {
		class.Provisioner, class.ReclaimPolicy = DriverName, &deletes
		if _, err := storage.StorageClasses().Create(ctx, class, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("making the storage class %s: %w", class.Name, err)
		}
	}
	return c.makeSnapshotClass(ctx)
}

func (c *Cluster) makeSnapshotClass(ctx context.Context) error {
	client, err := dynamic.NewForConfig(c.admin)
	if err != nil {
		return err
	}
	classes := schema.GroupVersionResource{Group: "snapshot.storage.k8s.io", Version: "v1", Resource: "volumesnapshotclasses"}
	class := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshotClass",
		"metadata": map[string]any{"name": SnapshotClass, "annotations": map[string]any{"snapshot.storage.kubernetes.io/is-default-class": "true"}},
		"driver":   DriverName, "deletionPolicy": "Delete",
	}}
	// The definition is established a moment before it is served.
	return c.until(ctx, "the snapshot class to be accepted", func(ctx context.Context) error {
		_, err := client.Resource(classes).Create(ctx, class, metav1.CreateOptions{})
		return err
	})
}

// awaitNamespace waits until pods can be made in the namespace "default", which is the controller manager's doing.
func (c *Cluster) awaitNamespace(ctx context.Context) error {
	return c.until(ctx, "the service account default/default", func(ctx context.Context) error {
		_, err := c.client.CoreV1().ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{})
		return err
	})
}

// VolumeDirectory returns the directory that is the volume of a bound claim: what is there is what pods see.
func (c *Cluster) VolumeDirectory(ctx context.Context, namespace, claim string) (string, error) {
	pvc, err := c.client.CoreV1().PersistentVolumeClaims(namespace).Get(ctx, claim, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	if pvc.Status.Phase != corev1.ClaimBound {
		return "", fmt.Errorf("claim %s/%s is not bound, but %s", namespace, claim, pvc.Status.Phase)
	}
	pv, err := c.client.CoreV1().PersistentVolumes().Get(ctx, pvc.Spec.VolumeName, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	if pv.Spec.CSI == nil || pv.Spec.CSI.VolumeAttributes[DirectoryAttribute] == "" {
		return "", fmt.Errorf("volume %s is none of the driver %s", pv.Name, DriverName)
	}
	return pv.Spec.CSI.VolumeAttributes[DirectoryAttribute], nil
}

// errNoCSI is the error of what needs CSI in a cluster without.
var errNoCSI = errors.New("this control plane was started without CSI; set Options.CSI")

// writeControl replaces the driver's control file, which it reads at each call.
func (c *Cluster) writeControl(data []byte) error {
	if c.options.CSI == nil {
		return errNoCSI
	}
	path := filepath.Join(c.volumes(), "control.json")
	if err := os.WriteFile(path+".new", data, 0o600); err != nil {
		return fmt.Errorf("setting the faults of the CSI driver: %w", err)
	}
	return os.Rename(path+".new", path)
}
