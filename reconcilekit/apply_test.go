package reconcilekit_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/pvcbackup/reconcilekit"
)

// Server-side apply recreates what was deleted, unless it carries the UID: then
// it is a conflict, which the reconciler takes for "read again".
func TestServerAnApplyWithAUIDNeverRecreatesAndIsAConflict(t *testing.T) {
	cluster := api.Start(t)
	c := cluster.Client
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace(t), Name: "child"}}
	require.NoError(t, c.Create(t.Context(), cm))
	require.NoError(t, c.Delete(t.Context(), cm))

	err := c.Apply(t.Context(), corev1ac.ConfigMap(cm.Name, cm.Namespace).WithUID(cm.UID), client.FieldOwner("tests"))
	require.Equal(t, reconcilekit.ClassConflict, reconcilekit.Classify(err), "%v", err)
	require.True(t, reconcilekit.IsGone(c.Get(t.Context(), client.ObjectKeyFromObject(cm), &corev1.ConfigMap{})))
}

func TestServerADeleteWithAnotherUIDIsAConflict(t *testing.T) {
	c, w := created(t)
	other := w.UID + "x"
	err := c.Delete(t.Context(), w, client.Preconditions{UID: &other})
	require.Equal(t, reconcilekit.ClassConflict, reconcilekit.Classify(err), "%v", err)
	require.Equal(t, w.UID, stored(t, c, w).UID)
}
