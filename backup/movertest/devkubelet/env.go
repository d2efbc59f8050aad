package devkubelet

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// variables are a container's environment, in the order in which the names first appeared.
type variables struct {
	names  []string
	values map[string]string
}

func (v *variables) set(name, value string) {
	if _, known := v.values[name]; !known {
		v.names = append(v.names, name)
	}
	v.values[name] = value
}

// environment resolves a container's environment. Errors are a kubelet's own words for what is missing.
func (k *Kubelet) environment(ctx context.Context, pod *corev1.Pod, spec *corev1.Container) (*variables, error) {
	vars := &variables{values: map[string]string{}}
	for _, from := range spec.EnvFrom {
		data, err := k.envFrom(ctx, pod.Namespace, from)
		if err != nil {
			return nil, err
		}
		for _, key := range slices.Sorted(maps.Keys(data)) {
			vars.set(from.Prefix+key, data[key])
		}
	}
	for _, env := range spec.Env {
		value, ok, err := vars.expand(env.Value), true, error(nil)
		if env.ValueFrom != nil {
			value, ok, err = k.valueFrom(ctx, pod, env.ValueFrom)
		}
		if err != nil {
			return nil, err
		}
		if ok {
			vars.set(env.Name, value)
		}
	}
	return vars, nil
}

func (k *Kubelet) envFrom(ctx context.Context, namespace string, from corev1.EnvFromSource) (map[string]string, error) {
	switch {
	case from.SecretRef != nil:
		return k.data(ctx, "secret", namespace, from.SecretRef.Name, from.SecretRef.Optional)
	case from.ConfigMapRef != nil:
		return k.data(ctx, "configmap", namespace, from.ConfigMapRef.Name, from.ConfigMapRef.Optional)
	}
	return nil, nil
}

// valueFrom reports false for an optional value that is not there.
func (k *Kubelet) valueFrom(ctx context.Context, pod *corev1.Pod, from *corev1.EnvVarSource) (string, bool, error) {
	switch {
	case from.SecretKeyRef != nil:
		ref := from.SecretKeyRef
		return k.key(ctx, "secret", "Secret", pod.Namespace, ref.Name, ref.Key, ref.Optional)
	case from.ConfigMapKeyRef != nil:
		ref := from.ConfigMapKeyRef
		return k.key(ctx, "configmap", "ConfigMap", pod.Namespace, ref.Name, ref.Key, ref.Optional)
	case from.FieldRef != nil:
		value, err := field(pod, from.FieldRef.FieldPath)
		return value, true, err
	}
	return "", false, fmt.Errorf("the development kubelet knows values from secrets, config maps and fields only")
}

func (k *Kubelet) key(ctx context.Context, word, kind, namespace, name, key string, optional *bool) (string, bool, error) {
	data, err := k.data(ctx, word, namespace, name, optional)
	if err != nil {
		return "", false, err
	}
	value, ok := data[key]
	if !ok && !isTrue(optional) {
		return "", false, fmt.Errorf("couldn't find key %s in %s %s/%s", key, kind, namespace, name)
	}
	return value, ok, nil
}

// data reads a secret or config map. An optional one that is missing is empty.
func (k *Kubelet) data(ctx context.Context, word, namespace, name string, optional *bool) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	data := map[string]string{}
	var err error
	if word == "secret" {
		var secret *corev1.Secret
		if secret, err = k.client.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{}); err == nil {
			for key, value := range secret.Data {
				data[key] = string(value)
			}
		}
	} else {
		var config *corev1.ConfigMap
		if config, err = k.client.CoreV1().ConfigMaps(namespace).Get(ctx, name, metav1.GetOptions{}); err == nil {
			maps.Copy(data, config.Data)
			for key, value := range config.BinaryData {
				data[key] = string(value)
			}
		}
	}
	switch {
	case apierrors.IsNotFound(err) && isTrue(optional):
		return nil, nil
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("%s %q not found", word, name)
	}
	return data, err
}

func isTrue(b *bool) bool { return b != nil && *b }

func field(pod *corev1.Pod, path string) (string, error) {
	switch path {
	case "metadata.name":
		return pod.Name, nil
	case "metadata.namespace":
		return pod.Namespace, nil
	case "metadata.uid":
		return string(pod.UID), nil
	case "spec.nodeName":
		return pod.Spec.NodeName, nil
	case "spec.serviceAccountName":
		return pod.Spec.ServiceAccountName, nil
	case "status.hostIP", "status.podIP":
		return localhost, nil
	}
	for prefix, values := range map[string]map[string]string{"metadata.labels['": pod.Labels, "metadata.annotations['": pod.Annotations} {
		if key, ok := strings.CutPrefix(path, prefix); ok {
			return values[strings.TrimSuffix(key, "']")], nil
		}
	}
	return "", fmt.Errorf("the development kubelet does not know field %q", path)
}

func (v *variables) expandAll(texts []string) []string {
	out := make([]string, len(texts))
	for i, text := range texts {
		out[i] = v.expand(text)
	}
	return out
}

// expand replaces $(NAME) by the variable of that name and $$ by $, as Kubernetes does; $(NAME) of a name that is not
// known stays.
func (v *variables) expand(text string) string {
	var out strings.Builder
	for {
		before, after, found := strings.Cut(text, "$")
		out.WriteString(before)
		if !found {
			return out.String()
		}
		name, rest, closed := strings.Cut(strings.TrimPrefix(after, "("), ")")
		value, known := v.values[name]
		switch {
		case strings.HasPrefix(after, "$"):
			out.WriteByte('$')
			text = after[1:]
		case strings.HasPrefix(after, "(") && closed && known:
			out.WriteString(value)
			text = rest
		case strings.HasPrefix(after, "(") && closed:
			out.WriteString("$(" + name + ")")
			text = rest
		default:
			out.WriteByte('$')
			text = after
		}
	}
}
