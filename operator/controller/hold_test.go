package controller

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	v1 "example.com/pvcbackup/operator/api/v1"
	"example.com/pvcbackup/reconcilekit"
	"example.com/pvcbackup/reconcilekit/kittest"
)

func TestABackupIsHeldBackWhileARestoreFillsItsClaimAndOnlyThen(t *testing.T) {
	now := metav1.Now()
	for name, test := range map[string]struct {
		target string
		status v1.PVCRestoreStatus
		held   bool
	}{
		"filling":              {"data", v1.PVCRestoreStatus{Attempt: 1}, true},
		"waiting to begin":     {"data", v1.PVCRestoreStatus{}, false},
		"ended":                {"data", v1.PVCRestoreStatus{Attempt: 1, Completed: &now}, false},
		"filling another one":  {"other", v1.PVCRestoreStatus{Attempt: 1}, false},
		"on its second mover":  {"data", v1.PVCRestoreStatus{Attempt: 2}, true},
		"with no claim at all": {"", v1.PVCRestoreStatus{Attempt: 1}, false},
	} {
		t.Run(name, func(t *testing.T) {
			restore := &v1.PVCRestore{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "r"}, Status: test.status}
			restore.Spec.Target.PVCName = test.target
			err := whileRestored(indexed(restore))(t.Context(), backupOfData())
			if !test.held {
				require.NoError(t, err)
				return
			}
			require.Equal(t, reconcilekit.ClassWaiting, reconcilekit.Classify(err))
			require.Equal(t, "RestoreInProgress", reconcilekit.Reason(err))
			require.ErrorContains(t, err, "PVCRestore r is filling the claim data")
		})
	}
}

func TestABackupIsHeldBackWhenNobodyKnowsWhetherItsClaimIsBeingFilled(t *testing.T) {
	broken := errors.New("broken")
	c := kittest.Client(indexed(), kittest.Rule{Verb: "list", Fault: kittest.Fail(broken)})
	require.ErrorIs(t, whileRestored(c)(t.Context(), backupOfData()), broken)
}

func backupOfData() *v1.PVCBackup {
	obj := &v1.PVCBackup{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "b"}}
	obj.Spec.PVCName = "data"
	return obj
}

func indexed(objs ...client.Object) client.WithWatch {
	return fake.NewClientBuilder().WithScheme(testScheme()).WithObjects(objs...).WithIndex(&v1.PVCRestore{}, indexTarget, targetOf).Build()
}
