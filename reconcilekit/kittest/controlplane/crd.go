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

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
)

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// installCRDs installs what the options ask for, and the snapshot APIs with CSI.
func (c *Cluster) installCRDs(ctx context.Context) error {
	paths := c.options.CRDs
	if c.options.CSI != nil {
		paths = append([]string{filepath.Join(c.options.Binaries, "crd")}, paths...)
	}
	if len(paths) == 0 {
		return nil
	}
	return c.InstallCRDs(ctx, paths...)
}

// InstallCRDs installs custom resource definitions, in YAML or JSON, from files and from the files of directories,
// and returns when all are served. What is there is left alone. Objects of other kinds are passed over.
func (c *Cluster) InstallCRDs(ctx context.Context, paths ...string) error {
	client, err := dynamic.NewForConfig(c.admin)
	if err != nil {
		return err
	}
	var names []string
	for _, path := range paths {
		crds, err := readDefinitions(path)
		if err != nil {
			return fmt.Errorf("reading custom resource definitions: %w", err)
		}
		for _, crd := range crds {
			_, err := client.Resource(definitions).Create(ctx, crd, metav1.CreateOptions{})
			if err != nil && !apierrors.IsAlreadyExists(err) {
				return fmt.Errorf("installing the definition %s: %w", crd.GetName(), err)
			}
			names = append(names, crd.GetName())
		}
	}
	for _, name := range names {
		if err := c.until(ctx, "the definition "+name+" to be established", func(ctx context.Context) error {
			return established(ctx, client, name)
		}); err != nil {
			return err
		}
	}
	c.say("installed %d definitions", len(names))
	return nil
}

func established(ctx context.Context, client dynamic.Interface, name string) error {
	crd, err := client.Resource(definitions).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
	for _, c := range conditions {
		if condition, is := c.(map[string]any); is && condition["type"] == "Established" && condition["status"] == "True" {
			return nil
		}
	}
	return fmt.Errorf("it is not: %v", conditions)
}

// readDefinitions reads a file, or the YAML and JSON files of a directory.
func readDefinitions(path string) ([]*unstructured.Unstructured, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return readFile(path)
	}
	var all []*unstructured.Unstructured
	for _, pattern := range []string{"*.yaml", "*.yml", "*.json"} {
		files, err := fs.Glob(os.DirFS(path), pattern)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			crds, err := readFile(filepath.Join(path, file))
			if err != nil {
				return nil, err
			}
			all = append(all, crds...)
		}
	}
	return all, nil
}

func readFile(path string) ([]*unstructured.Unstructured, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var all []*unstructured.Unstructured
	decoder := yaml.NewYAMLOrJSONDecoder(f, 4<<10)
	for {
		var o unstructured.Unstructured
		if err := decoder.Decode(&o.Object); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if o.GetKind() == "CustomResourceDefinition" {
			all = append(all, &o)
		}
	}
}
