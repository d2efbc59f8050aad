package scheduled

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1 "k8s.io/api/core/v1"

	"example.com/pvcbackup/backup"
	"example.com/pvcbackup/backup/contract"
	"example.com/pvcbackup/backup/movertest"
)

func deletes(obj *thing) { obj.Spec.DeletionPolicy = Delete }

// backedUp is a world with an object that was backed up and is deleted now.
func backedUp(t *testing.T, change func(obj *thing)) *world {
	t.Helper()
	w := newWorld(t)
	w.create(change)
	w.settle()
	require.NoError(t, w.admin.Delete(t.Context(), w.get()))
	return w
}

// nothingLeft checks that the object is gone and has left nothing.
func (w *world) nothingLeft(owner backup.Owner) {
	w.t.Helper()
	require.False(w.t, w.exists())
	require.Empty(w.t, w.claims())
	require.Empty(w.t, w.snapshots())
	tasks, err := w.script.Tasks(w.t.Context(), owner)
	require.NoError(w.t, err)
	require.Empty(w.t, tasks)
}

func TestRetainLeavesTheStoreAlone(t *testing.T) {
	w := backedUp(t, nil)
	owner := w.owner()
	w.settle()
	w.nothingLeft(owner)
	require.Empty(t, w.starts(backup.RoleDelete))
}

func TestDeleteForgetsThisObjectsBackupsAndWaitsForThat(t *testing.T) {
	w := backedUp(t, func(obj *thing) {
		deletes(obj)
		obj.Spec.Storage.MaintenanceCredentialsSecretRef = &SecretRef{Name: "strong"}
	})
	owner := w.owner()
	var task backup.Task
	w.answer = func(asked backup.Task, _ int) *contract.Result { task = asked; return nil }
	w.settle()
	require.True(t, w.exists(), "it waits")
	require.Equal(t, "Deleting", w.get().Status.Phase)
	require.Equal(t, metav1.ConditionTrue, w.condition(ConditionReady).Status, "what is in the store is as fresh as before")
	require.Equal(t, &contract.Delete{OwnerUID: string(owner.UID)}, task.Request.Delete)
	require.Equal(t, "repository-1", task.Request.RepositoryID)
	require.Equal(t, "strong", task.Secrets.Credentials)
	w.script.Finish(task, 1, contract.Result{Outcome: contract.Succeeded})
	w.settle()
	w.nothingLeft(owner)
	require.Len(t, w.starts(backup.RoleDelete), 1)
}

func TestDeleteHasNothingToForgetOfAnObjectThatNeverRan(t *testing.T) {
	w := emptyWorld(t)
	w.create(deletes)
	w.settle()
	owner := w.owner()
	require.NoError(t, w.admin.Delete(t.Context(), w.get()))
	w.settle()
	w.nothingLeft(owner)
	require.Empty(t, w.starts(backup.RoleDelete))
}

func TestADeletionThatFailsIsAskedForAgainByATriggerOrAbandoned(t *testing.T) {
	failing := func(t *testing.T) *world {
		w := backedUp(t, deletes)
		w.answer = func(backup.Task, int) *contract.Result {
			return &contract.Result{Outcome: contract.Failed, Reason: "KeyCannotDelete", Message: "403"}
		}
		w.settle()
		require.True(t, w.exists())
		require.Equal(t, "KeyCannotDelete", w.condition(ConditionStalled).Reason)
		require.Contains(t, w.condition(ConditionStalled).Message, AnnotationAbandon)
		return w
	}
	t.Run("again", func(t *testing.T) {
		w := failing(t)
		owner := w.owner()
		w.answer = well
		w.trigger("again")
		w.settle()
		w.nothingLeft(owner)
		require.Len(t, w.starts(backup.RoleDelete), 2)
	})
	t.Run("abandoned", func(t *testing.T) {
		w := failing(t)
		owner := w.owner()
		w.edit(func(obj *thing) { metav1.SetMetaDataAnnotation(&obj.ObjectMeta, AnnotationAbandon, "true") })
		w.settle()
		w.nothingLeft(owner)
		require.Len(t, w.starts(backup.RoleDelete), 1)
	})
}

func TestDeletingInTheMiddleOfARunStopsItAndLeavesNothing(t *testing.T) {
	w := newWorld(t)
	w.answer = running
	w.create(nil)
	require.NotNil(t, w.settle().Status.Current)
	owner := w.owner()
	require.NoError(t, w.admin.Delete(t.Context(), w.get()))
	w.settle()
	w.nothingLeft(owner)
}

func TestANamespaceThatIsBeingDeletedLetsGoAtOnceAndCounts(t *testing.T) {
	w := newWorld(t)
	registry := prometheus.NewPedanticRegistry()
	metrics, err := NewMetrics(registry, nil)
	require.NoError(t, err)
	w.loop.options.Metrics = metrics
	w.create(deletes)
	w.settle()
	owner := w.owner()
	require.NoError(t, w.admin.Delete(t.Context(), w.get()))
	w.script.Fault = func(call movertest.Call) (before, after error) {
		if call.Operation != movertest.Start {
			return nil, nil
		}
		refused := apierrors.NewForbidden(schema.GroupResource{Group: "batch", Resource: "jobs"}, "x", nil)
		refused.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
		return refused, nil
	}
	w.settle()
	w.nothingLeft(owner)
	count, err := testutil.GatherAndCount(registry)
	require.NoError(t, err)
	require.Equal(t, 1, count, "no series of the object is left")
	require.Equal(t, float64(1), metrics.lefts)
}

func TestForgetAndPruneRunOnceADayAfterAGoodRun(t *testing.T) {
	w := newWorld(t)
	var task backup.Task
	w.answer = func(asked backup.Task, attempt int) *contract.Result {
		if asked.Role == backup.RoleMaintain {
			task = asked
			return &contract.Result{Outcome: contract.Succeeded, Kept: 4, Removed: 2, Freed: 7}
		}
		return well(asked, attempt)
	}
	w.create(nil)
	require.Nil(t, w.settle().Status.Maintenance)
	w.clock.Add(25 * time.Hour)
	w.trigger("a day later")
	obj := w.settle()
	require.Equal(t, int32(4), obj.Status.Maintenance.Kept)
	require.Equal(t, metav1.ConditionTrue, w.condition(ConditionMaintained).Status)
	require.Equal(t, contract.Keep{Hourly: 24, Daily: 7, Weekly: 4, Monthly: 12}, task.Request.Maintain.Keep)
	w.trigger("more")
	w.settle()
	require.Len(t, w.starts(backup.RoleMaintain), 1)
	w.tidy(1)

	w.clock.Add(25 * time.Hour)
	w.answer = func(asked backup.Task, attempt int) *contract.Result {
		if asked.Role == backup.RoleMaintain {
			return &contract.Result{Outcome: contract.Failed, Reason: "KeyCannotDelete", Message: "403"}
		}
		return well(asked, attempt)
	}
	w.trigger("again")
	obj = w.settle()
	require.Equal(t, "KeyCannotDelete", w.condition(ConditionMaintained).Reason)
	require.Equal(t, metav1.ConditionTrue, w.condition(ConditionReady).Status, "that never fails a backup")
	require.Equal(t, "Succeeded", obj.Status.LastAttempt.Outcome)
	w.tidy(1)
}
