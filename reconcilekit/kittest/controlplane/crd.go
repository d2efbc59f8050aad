//go:build unix

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
)

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// readCRDs reads what the options ask for, and the snapshot APIs with CSI, before anything is started.
func (c *Cluster) readCRDs(context.Context) (err error) {
	paths := c.options.CRDs
	if c.options.CSI != nil {
		paths = append([]string{filepath.Join(c.options.Binaries, "crd")}, paths...)
	}
	c.crds, err = readDefinitions(paths)
	return err
}

func (c *Cluster) installCRDs(ctx context.Context) error { return c.install(ctx, c.crds) }

// InstallCRDs installs custom resource definitions, in YAML or JSON, from files and from the files of directories,
// and returns when all are served. What is there is left alone. Objects of other kinds are passed over.
func (c *Cluster) InstallCRDs(ctx context.Context, paths ...string) error {
	crds, err := readDefinitions(paths)
	if err != nil {
		return err
	}
	return c.install(ctx, crds)
}

func (c *Cluster) install(ctx context.Context, crds []*unstructured.Unstructured) error {
	client, err := dynamic.NewForConfig(c.admin)
	if err != nil {
		return err
	}
	for _, crd := range crds {
		_, err := client.Resource(definitions).Create(ctx, crd, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("installing the definition %s: %w", crd.GetName(), err)
		}
	}
	for _, crd := range crds {
		if err := c.until(ctx, "the definition "+crd.GetName()+" to be established", func(ctx context.Context) error {
			return established(ctx, client, crd.GetName())
		}); err != nil {
			return err
		}
	}
	if len(crds) > 0 {
		c.say("installed %d definitions", len(crds))
	}
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

// readDefinitions reads files, and the YAML and JSON files of directories.
func readDefinitions(paths []string) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	for _, path := range paths {
		files, err := manifests(path)
		if err != nil {
			return nil, fmt.Errorf("reading custom resource definitions: %w", err)
		}
		for _, file := range files {
			crds, err := readFile(file)
			if err != nil {
				return nil, fmt.Errorf("reading custom resource definitions: %w", err)
			}
			all = append(all, crds...)
		}
	}
	return all, nil
}

// manifests returns a file, or the YAML and JSON files of a directory.
func manifests(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, e := range entries {
		if slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(e.Name())) {
			files = append(files, filepath.Join(path, e.Name()))
		}
	}
	return files, nil
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
