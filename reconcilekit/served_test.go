package reconcilekit_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"example.com/pvcbackup/reconcilekit/internal/widget"
	"example.com/pvcbackup/reconcilekit/kittest"
)

// otherCRD defines a kind that comes and goes, in a group of its own.
func otherCRD() *apiextensionsv1.CustomResourceDefinition {
	crd := widget.CRD()
	crd.Name = "others.coming.example.com"
	crd.Spec.Group = "coming.example.com"
	crd.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{Kind: "Other", ListKind: "OtherList", Plural: "others", Singular: "other"}
	return crd
}

func newOther(namespace string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "coming.example.com/v1", "kind": "Other",
		"metadata": map[string]any{"namespace": namespace, "name": "o"},
	}}
}

// terminating returns a namespace that is being deleted and never gone, since
// nothing runs that would empty it.
func terminating(t *testing.T, cluster *kittest.Cluster) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "ending-"}}
	require.NoError(t, cluster.Client.Create(t.Context(), ns))
	require.NoError(t, cluster.Client.Delete(t.Context(), ns))
	return ns.Name
}
