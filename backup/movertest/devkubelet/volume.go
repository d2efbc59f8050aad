package devkubelet

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// folders are the local folders of a Pod's volumes, by the volumes' names.
type folders map[string]string

// mount finds or makes the folders of a Pod's volumes. An error says what a volume waits for.
func (k *Kubelet) mount(ctx context.Context, pod *corev1.Pod, dir string) (folders, error) {
	mounted := folders{}
	for i := range pod.Spec.Volumes {
		volume := &pod.Spec.Volumes[i]
		folder, err := k.folder(ctx, pod, volume, filepath.Join(dir, "volumes", volume.Name))
		if err != nil {
			return nil, fmt.Errorf("volume %q: %w", volume.Name, err)
		}
		mounted[volume.Name] = folder
	}
	return mounted, nil
}

// folder returns the folder of one volume. One that only this Pod has is made at own.
func (k *Kubelet) folder(ctx context.Context, pod *corev1.Pod, volume *corev1.Volume, own string) (string, error) {
	switch {
	case volume.PersistentVolumeClaim != nil:
		return k.claimFolder(ctx, pod.Namespace, volume.PersistentVolumeClaim.ClaimName)
	case volume.Ephemeral != nil:
		return k.claimFolder(ctx, pod.Namespace, pod.Name+"-"+volume.Name)
	case volume.HostPath != nil:
		return volume.HostPath.Path, nil
	case volume.EmptyDir != nil:
		return own, os.MkdirAll(own, 0o700)
	case volume.Secret != nil:
		data, err := k.data(ctx, "secret", pod.Namespace, volume.Secret.SecretName, volume.Secret.Optional)
		return own, writeFiles(own, data, volume.Secret.Items, err)
	case volume.ConfigMap != nil:
		data, err := k.data(ctx, "configmap", pod.Namespace, volume.ConfigMap.Name, volume.ConfigMap.Optional)
		return own, writeFiles(own, data, volume.ConfigMap.Items, err)
	case volume.Projected != nil:
		return own, k.project(ctx, pod.Namespace, volume.Projected.Sources, own)
	}
	return "", fmt.Errorf("the development kubelet does not know volumes of its kind")
}

// project writes secrets and config maps; tokens and fields are left out.
func (k *Kubelet) project(ctx context.Context, namespace string, sources []corev1.VolumeProjection, own string) error {
	if err := os.MkdirAll(own, 0o700); err != nil {
		return err
	}
	for _, source := range sources {
		if from := source.Secret; from != nil {
			data, err := k.data(ctx, "secret", namespace, from.Name, from.Optional)
			if err := writeFiles(own, data, from.Items, err); err != nil {
				return err
			}
		}
		if from := source.ConfigMap; from != nil {
			data, err := k.data(ctx, "configmap", namespace, from.Name, from.Optional)
			if err := writeFiles(own, data, from.Items, err); err != nil {
				return err
			}
		}
	}
	return nil
}

func writeFiles(dir string, data map[string]string, items []corev1.KeyToPath, err error) error {
	if err != nil {
		return err
	}
	if len(items) == 0 {
		for key := range data {
			items = append(items, corev1.KeyToPath{Key: key, Path: key})
		}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, item := range items {
		value, ok := data[item.Key]
		if !ok {
			return fmt.Errorf("references non-existent key %q", item.Key)
		}
		path := filepath.Join(dir, item.Path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(value), 0o600); err != nil {
			return err
		}
	}
	return nil
}

func (k *Kubelet) claimFolder(ctx context.Context, namespace, name string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	claim, err := k.client.CoreV1().PersistentVolumeClaims(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	if claim.Status.Phase != corev1.ClaimBound {
		return "", fmt.Errorf("claim %q is not bound", name)
	}
	volume, err := k.client.CoreV1().PersistentVolumes().Get(ctx, claim.Spec.VolumeName, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	folder := volumeFolder(volume)
	if folder == "" {
		return "", fmt.Errorf(`volume %q of claim %q tells no local folder: it needs the CSI volume attribute "directory"`, volume.Name, name)
	}
	info, err := os.Stat(folder)
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is not a folder", folder)
	}
	return folder, err
}

func volumeFolder(volume *corev1.PersistentVolume) string {
	switch {
	case volume.Spec.CSI != nil:
		return volume.Spec.CSI.VolumeAttributes["directory"]
	case volume.Spec.Local != nil:
		return volume.Spec.Local.Path
	case volume.Spec.HostPath != nil:
		return volume.Spec.HostPath.Path
	}
	return ""
}

// of returns the local folders of what a container mounts.
func (f folders) of(spec *corev1.Container) (paths, error) {
	out := paths{}
	for _, mount := range spec.VolumeMounts {
		folder, ok := f[mount.Name]
		if !ok {
			return nil, fmt.Errorf("container %q mounts volume %q, which the pod has not", spec.Name, mount.Name)
		}
		if mount.SubPath != "" {
			folder = filepath.Join(folder, mount.SubPath)
			if err := os.MkdirAll(folder, 0o700); err != nil {
				return nil, err
			}
		}
		out[filepath.Clean(mount.MountPath)] = folder
	}
	return out, nil
}
