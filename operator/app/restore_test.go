package app_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/pvcbackup/backup/scheduled"
	v1 "example.com/pvcbackup/operator/api/v1"
)

func TestABackupOfAnotherNamespaceIsRestoredOnlyOnceThatOneGrantsIt(t *testing.T) {
	t.Parallel()
	there := newPlace(t)
	source := there.claim("data")
	there.write(source, "file", "text")
	obj := there.backup("data", "data")
	there.backedUp(obj, "")

	here := newPlace(t)
	// Nobody copies Secrets but the user.
	here.create(&corev1.Secret{ObjectMeta: here.object(obj.Status.Repository.GeneratedKey), Data: there.keySecret("data").Data})
	restore := restoreOf("restore", "data")
	restore.Spec.Source.Namespace = there.namespace
	restore.ObjectMeta = here.object(restore.Name)
	restore.Spec.Target = v1.RestoreTarget{PVCName: "nothing"}
	here.create(restore)
	here.await(restore, func() error {
		return conditionIs(restore.Status.Conditions, scheduled.ConditionReconciling, metav1.ConditionTrue, "SourceNotGranted")
	})
	there.change(obj, func() {
		if obj.Annotations == nil {
			obj.Annotations = map[string]string{}
		}
		obj.Annotations[v1.AnnotationRestoreTo] = "elsewhere, " + here.namespace
	})
	granted := restoreOf("granted", "data")
	granted.Spec.Source.Namespace = there.namespace
	here.restored(granted, source)
}

func TestABackupWaitsWhileARestoreFillsItsClaim(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	source := p.claim("volume")
	p.noise(source)
	obj := p.backup("data", "volume")
	p.backedUp(obj, "")

	held, release := p.hold(http.MethodGet, "/volume/data/")
	restore := restoreOf("again", "data")
	restore.ObjectMeta = p.object(restore.Name)
	restore.Spec.Target = v1.RestoreTarget{PVCName: "volume", Overwrite: "Always"}
	p.create(restore)
	p.came(held)
	before := p.again(obj)
	p.await(obj, func() error {
		return conditionIs(obj.Status.Conditions, scheduled.ConditionReconciling, metav1.ConditionTrue, "RestoreInProgress")
	})
	require.Equal(t, before, obj.Status.LastAttempt.Slot)
	p.is(obj, scheduled.ConditionReady, metav1.ConditionTrue, scheduled.ReasonProtected)
	release()
	p.backedUp(obj, before)
}
