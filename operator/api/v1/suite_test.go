package v1_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	v1 "example.com/pvcbackup/operator/api/v1"
	"example.com/pvcbackup/reconcilekit/kittest"
)

var server = kittest.NewAPIServer(kittest.APIServerOptions{
	CRDPaths:               []string{filepath.Join("..", "..", "config", "crd", "bases")},
	WithoutVolumeSnapshots: true,
	Scheme:                 newScheme(),
})

func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	if err := v1.AddToScheme(scheme); err != nil {
		panic(err)
	}
	return scheme
}

func TestMain(m *testing.M) { os.Exit(server.Main(m)) }

// strict returns a client that has unknown fields refused, as kubectl does.
func strict(t *testing.T) client.Client {
	t.Helper()
	return client.WithFieldValidation(server.Start(t).Client, metav1.FieldValidationStrict)
}

// object is one manifest.
func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	var obj unstructured.Unstructured
	require.NoError(t, yaml.Unmarshal([]byte(text), &obj.Object))
	obj.SetNamespace(metav1.NamespaceDefault)
	return &obj
}

// backupOf is a PVCBackup with a spec; restoreOf is a PVCRestore with one.
func backupOf(t *testing.T, spec string) *unstructured.Unstructured {
	return withSpec(t, "PVCBackup", spec)
}

func restoreOf(t *testing.T, spec string) *unstructured.Unstructured {
	return withSpec(t, "PVCRestore", spec)
}

func withSpec(t *testing.T, kind, spec string) *unstructured.Unstructured {
	t.Helper()
	obj := object(t, "{apiVersion: storage.example.com/v1, kind: "+kind+", metadata: {generateName: test-}}")
	var parsed any
	require.NoError(t, yaml.Unmarshal([]byte(spec), &parsed))
	obj.Object["spec"] = parsed
	return obj
}
