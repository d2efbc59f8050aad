package scheduled

import (
	"context"
	"errors"
	"testing"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/pvcbackup/backup"
	"example.com/pvcbackup/backup/contract"
	"example.com/pvcbackup/reconcilekit"
	"example.com/pvcbackup/reconcilekit/kittest"
	"example.com/pvcbackup/snapshot/snapshottest"
)

func TestANewObjectIsBackedUpAtOnceAndASettledOneIsNotWrittenAgain(t *testing.T) {
	w := newWorld(t)
	w.create(nil)
	obj := w.settle()
	s := obj.Status
	require.Equal(t, "Succeeded", s.LastAttempt.Outcome)
	require.Equal(t, "Create", s.LastAttempt.Kind)
	require.Equal(t, s.LastBackup, &s.LastAttempt.Finished)
	require.Equal(t, "snapshot-of-"+s.LastAttempt.Slot, s.LastSuccess.SnapshotID)
	require.Equal(t, &Repository{URL: "s3://bucket/c1/" + w.ns + "/data", ID: "repository-1", KeyFingerprint: "key-1"}, s.Repository)
	require.Equal(t, []string{Finalizer}, obj.Finalizers)
	require.Equal(t, metav1.ConditionTrue, w.condition(ConditionReady).Status)
	require.NotNil(t, s.NextBackup)
	require.Len(t, w.starts(backup.RoleBackup), 1)
	require.Empty(t, w.starts(backup.RoleLookup), "a password was given")
	require.Equal(t, []string{"NoBackupYet", "Protected", "BackupCompleted"}, w.told())
	w.tidy(1)

	w.client.Reset()
	for range 10 {
		result, err := w.reconcile(t.Context())
		require.NoError(t, err)
		require.Positive(t, result.RequeueAfter)
		require.LessOrEqual(t, result.RequeueAfter, time.Hour)
	}
	require.Empty(t, w.client.Writes())
}

func TestTheStatusIsWrittenThroughItsSubresourceAlone(t *testing.T) {
	w := newWorld(t)
	w.create(generated)
	w.settle()
	require.Equal(t, 1, w.count("patch", "PVCBackup", ""), "the finalizer")
	require.Positive(t, w.count("patch", "PVCBackup", "status"))
	require.Zero(t, w.count("update", "PVCBackup", "")+w.count("update", "PVCBackup", "status"))
}

func TestRequestsOfOneRunAreBounded(t *testing.T) {
	w := newWorld(t)
	w.create(func(obj *thing) { obj.Spec.RunOnCreate = ptr.To(false) })
	w.settle()
	w.toNextSlot()
	w.client.Reset()
	w.settle()
	writes := map[string]int{}
	for _, call := range w.client.Writes() {
		writes[call.Verb+" "+call.Kind+"/"+call.Subresource]++
	}
	require.Equal(t, map[string]int{
		"create VolumeSnapshot/": 1, "create PersistentVolumeClaim/": 1, "delete PersistentVolumeClaim/": 1,
		"patch PVCBackup/status": writes["patch PVCBackup/status"],
	}, writes)
	require.LessOrEqual(t, writes["patch PVCBackup/status"], 6)
}

func TestASlotMissedWhileDownRunsOnceLateWithinItsDeadline(t *testing.T) {
	w := newWorld(t)
	w.create(nil)
	w.settle()
	w.clock.Add(5*time.Hour + time.Until(w.get().Status.NextBackup.Time) + 20*time.Minute)
	obj := w.settle()
	require.Equal(t, int64(5), obj.Status.SkippedSlots)
	require.Equal(t, "Scheduled", obj.Status.LastAttempt.Kind)
	require.Len(t, obj.Status.History, 2)
	require.Len(t, w.starts(backup.RoleBackup), 2)
	w.tidy(1)
}

func TestASlotMissedByMoreThanItsDeadlineIsSkipped(t *testing.T) {
	w := newWorld(t)
	w.create(func(obj *thing) { obj.Spec.StartingDeadlineSeconds = ptr.To(int64(60)) })
	w.settle()
	w.toNextSlot()
	w.clock.Add(2 * time.Minute)
	obj := w.settle()
	require.Equal(t, int64(1), obj.Status.SkippedSlots)
	require.Len(t, obj.Status.History, 1)
}

func TestEditingAndResumingNeverFireAPastSlot(t *testing.T) {
	for name, change := range map[string]func(obj *thing){
		"editing":  func(obj *thing) { obj.Spec.StartingDeadlineSeconds = ptr.To(int64(3000)) },
		"resuming": func(obj *thing) { obj.Spec.Suspend = false },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.create(nil)
			w.settle()
			w.edit(func(obj *thing) {
				obj.Spec.Suspend = name == "resuming"
				obj.Spec.StartingDeadlineSeconds = ptr.To(int64(30))
			})
			suspended := w.settle()
			require.Equal(t, name == "resuming", suspended.Status.NextBackup == nil, "unset while suspended")
			w.clock.Add(50 * time.Minute) // past the slot, and past its deadline
			w.settle()
			w.edit(change)
			obj := w.settle()
			require.Len(t, obj.Status.History, 1)
			require.NotNil(t, obj.Status.NextBackup)
		})
	}
}

func TestATriggerIsServedOnceAlsoWhileSuspended(t *testing.T) {
	w := newWorld(t)
	w.create(func(obj *thing) { obj.Spec.Suspend = true })
	obj := w.settle()
	require.Empty(t, obj.Status.History, "suspended: not even the first")
	w.trigger("now")
	obj = w.settle()
	require.Equal(t, "Manual", obj.Status.LastAttempt.Kind)
	require.Equal(t, "now", obj.Status.HandledTrigger)
	require.Len(t, obj.Status.History, 1)
	w.trigger("again")
	require.Len(t, w.settle().Status.History, 2)
	w.tidy(1)
}

func TestATriggerOfAFailedRunIsServedToo(t *testing.T) {
	w := newWorld(t)
	w.answer = fails("StoreDenied")
	w.create(func(obj *thing) { obj.Spec.Suspend = true })
	w.settle()
	w.trigger("now")
	obj := w.settle()
	require.Equal(t, "now", obj.Status.HandledTrigger)
	require.Len(t, w.starts(backup.RoleBackup), 1)
}

func TestReplaceStopsTheRunInFlightBeforeTheNextBegins(t *testing.T) {
	w := newWorld(t)
	w.create(func(obj *thing) { obj.Spec.ConcurrencyPolicy = Replace })
	w.settle()
	w.answer = running
	w.toNextSlot()
	first := w.settle().Status.Current.Slot
	w.clock.Add(time.Hour)
	obj := w.settle()
	require.Equal(t, ReasonReplaced, obj.Status.LastAttempt.Reason)
	require.Equal(t, first, obj.Status.LastAttempt.Slot)
	require.NotEqual(t, first, obj.Status.Current.Slot)
	require.Equal(t, []backup.TaskRef{{Role: backup.RoleBackup, Slot: obj.Status.Current.Slot}}, w.tasks())
}

func TestForbidLetsTheRunInFlightEnd(t *testing.T) {
	w := newWorld(t)
	w.answer = running
	w.create(nil)
	slot := w.settle().Status.Current.Slot
	w.toNextSlot()
	require.Equal(t, slot, w.settle().Status.Current.Slot)
	require.Len(t, w.starts(backup.RoleBackup), 1)
}

func TestOneBadSlotNeverStopsLaterSlots(t *testing.T) {
	w := newWorld(t)
	w.create(nil)
	w.settle()
	w.answer = fails("StoreDenied")
	w.toNextSlot()
	obj := w.settle()
	require.Equal(t, int32(1), obj.Status.ConsecutiveFailures)
	require.Equal(t, "StoreDenied", w.condition(ConditionReady).Reason)
	require.Equal(t, "StoreDenied", w.condition(ConditionStalled).Reason)
	w.tidy(1) // the good run's, not the failed one's

	t.Run("and creates nothing until the next", func(t *testing.T) {
		w.client.Reset()
		for range 3 {
			result, err := w.reconcile(t.Context())
			require.NoError(t, err)
			require.LessOrEqual(t, result.RequeueAfter, 10*time.Minute)
			require.Positive(t, result.RequeueAfter)
		}
		require.Empty(t, w.client.Writes())
	})

	t.Run("and a run in flight proves nothing yet", func(t *testing.T) {
		w.answer = running
		w.toNextSlot()
		w.settle()
		require.Equal(t, "StoreDenied", w.condition(ConditionReady).Reason)
	})

	w.answer = well
	current := w.get().Status.Current.slot()
	task := backup.Task{Owner: w.owner(), Role: backup.RoleBackup, Slot: current.ID, Request: contract.Request{Backup: &contract.Backup{}}}
	w.script.Finish(task, 1, *well(task, 1))
	obj = w.settle()
	require.Zero(t, obj.Status.ConsecutiveFailures)
	require.Equal(t, metav1.ConditionTrue, w.condition(ConditionReady).Status)
	w.tidy(1)
}

func TestAnEditTriesAFailedRunAgainOnce(t *testing.T) {
	w := newWorld(t)
	w.answer = fails("StoreDenied")
	w.create(nil)
	require.Len(t, w.settle().Status.History, 1)
	w.edit(func(obj *thing) { obj.Spec.Storage.Prefix = "elsewhere" })
	require.Len(t, w.settle().Status.History, 2)
	w.answer = well
	w.edit(func(obj *thing) { obj.Spec.Storage.Prefix = "there" })
	obj := w.settle()
	require.Equal(t, "Succeeded", obj.Status.LastAttempt.Outcome)
	w.edit(func(obj *thing) { obj.Spec.Storage.Prefix = "here" })
	require.Len(t, w.settle().Status.History, 3, "what went well is not tried again")
}

func TestAMissingClaimIsWaitedForAndItsSlotIsNotUsedUp(t *testing.T) {
	w := emptyWorld(t)
	w.create(nil)
	w.settle()
	require.Equal(t, "ClaimMissing", w.condition(ConditionReady).Reason)
	require.Contains(t, w.condition(ConditionReady).Message, "create it")
	result, err := w.reconcile(t.Context())
	require.NoError(t, err)
	require.Positive(t, result.RequeueAfter)
	require.LessOrEqual(t, result.RequeueAfter, 30*time.Second)
	require.Empty(t, w.get().Status.History)
	w.claim()
	obj := w.settle()
	require.Equal(t, "Create", obj.Status.LastAttempt.Kind)
	require.Equal(t, metav1.ConditionTrue, w.condition(ConditionReady).Status)
}

func TestAClaimDeletedInTheMiddleOfARunFailsItAndSaysSo(t *testing.T) {
	w := newWorld(t)
	w.driver.Play(snapshottest.Script{NeverReady: true})
	w.create(nil)
	require.NotNil(t, w.settle().Status.Current)
	require.NoError(t, w.admin.Delete(t.Context(), &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "data"}}))
	obj := w.settle()
	require.Nil(t, obj.Status.Current)
	require.Contains(t, []string{"ClaimMissing", "ClaimDeleting"}, obj.Status.LastAttempt.Reason)
	w.tidy(0)
}

func TestAClassThatCannotBeChosenFailsTheRunAndNamesTheCandidates(t *testing.T) {
	t.Run("missing", func(t *testing.T) {
		w := newWorld(t)
		w.create(func(obj *thing) { obj.Spec.Snapshot = &SnapshotPolicy{ClassName: "nope"} })
		w.settle()
		require.Equal(t, "SnapshotClassMissing", w.condition(ConditionReady).Reason)
		require.Contains(t, w.condition(ConditionReady).Message, snapshottest.SnapshotClass)
	})
	t.Run("ambiguous, and mended", func(t *testing.T) {
		w := newWorld(t)
		second := &snapshotv1.VolumeSnapshotClass{
			ObjectMeta: metav1.ObjectMeta{Name: "second"}, Driver: w.driver.Name(), DeletionPolicy: snapshotv1.VolumeSnapshotContentDelete,
		}
		require.NoError(t, w.admin.Create(t.Context(), second))
		t.Cleanup(func() { _ = w.admin.Delete(t.Context(), second) })
		w.create(nil)
		w.settle()
		require.Equal(t, "SnapshotClassAmbiguous", w.condition(ConditionReady).Reason)
		require.NoError(t, w.admin.Delete(t.Context(), second))
		w.trigger("mended")
		w.settle()
		require.Equal(t, metav1.ConditionTrue, w.condition(ConditionReady).Status)
	})
}

func TestAVolumeSnapshotAPIThatIsInstalledLaterIsWaitedFor(t *testing.T) {
	w := newWorld(t)
	w.refuse = func(call kittest.Call) error {
		if call.Group == snapshotv1.GroupName {
			return &meta.NoKindMatchError{GroupKind: schema.GroupKind{Group: call.Group, Kind: call.Kind}, SearchedVersions: []string{"v1"}}
		}
		return nil
	}
	w.create(nil)
	obj := w.settle()
	require.NotNil(t, obj.Status.Current)
	require.Equal(t, "SnapshotAPINotInstalled", w.condition(ConditionReady).Reason)
	w.refuse = nil
	obj = w.settle()
	require.Equal(t, "Succeeded", obj.Status.LastAttempt.Outcome)
	w.tidy(1)
}

func TestASnapshotThatIsNeverReadyEndsTheRunAtItsDeadline(t *testing.T) {
	for name, script := range map[string]snapshottest.Script{
		"SnapshotTaken": {NeverTaken: true}, "SnapshotReady": {NeverReady: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.driver.Play(script)
			w.create(func(obj *thing) { obj.Spec.Deadlines = nil })
			require.NotNil(t, w.settle().Status.Current)
			w.clock.Add(2 * time.Hour)
			obj := w.settle()
			require.Nil(t, obj.Status.Current)
			require.Contains(t, obj.Status.LastAttempt.Reason, "Deadline")
			w.tidy(0)
		})
	}
}

func TestAFailedMoverIsTriedAgainOnTheSameVolumeAsOftenAsAllowed(t *testing.T) {
	w := newWorld(t)
	var sources []string
	w.answer = func(task backup.Task, attempt int) *contract.Result {
		sources = append(sources, task.Volumes.Source)
		require.NotZero(t, task.Request.Backup.Time, "when the volume was frozen")
		return &contract.Result{Outcome: contract.Failed, Reason: "StoreUnavailable", Message: "m", Retry: true}
	}
	w.create(nil)
	obj := w.settle()
	require.Equal(t, int32(3), obj.Status.LastAttempt.Movers)
	require.Len(t, sources, 3)
	require.NotEmpty(t, sources[0])
	require.Equal(t, []string{sources[0], sources[0], sources[0]}, sources)
	w.tidy(0)
}

func TestAFailureThatWillNotPassIsNotTriedAgain(t *testing.T) {
	w := newWorld(t)
	w.answer = fails("WrongPassword")
	w.create(nil)
	w.settle()
	require.Len(t, w.starts(backup.RoleBackup), 1)
	require.Equal(t, "WrongPassword", w.condition(ConditionStalled).Reason)
}

func TestALostResultIsNotASuccessAndTheSlotEndsDone(t *testing.T) {
	w := newWorld(t)
	w.answer = func(task backup.Task, attempt int) *contract.Result {
		if attempt == 1 { // what a mover says of an attempt whose Pod went before its result was read
			return &contract.Result{Outcome: contract.Failed, Reason: "MoverLost", Message: "m", Retry: true}
		}
		r := well(task, attempt)
		r.Reused = true
		return r
	}
	w.create(nil)
	obj := w.settle()
	require.Equal(t, "Succeeded", obj.Status.LastAttempt.Outcome)
	require.Equal(t, int32(2), obj.Status.LastAttempt.Movers)
	w.tidy(1)
}

func TestAnEmptyVolumeIsRecordedAndNeverDisplacesAGoodBackup(t *testing.T) {
	w := newWorld(t)
	w.create(nil)
	good := w.settle().Status
	w.answer = func(backup.Task, int) *contract.Result {
		return &contract.Result{Outcome: contract.Empty, SnapshotID: "empty"}
	}
	w.toNextSlot()
	obj := w.settle()
	require.Equal(t, "Empty", obj.Status.LastAttempt.Outcome)
	require.Equal(t, good.LastBackup, obj.Status.LastBackup)
	require.Equal(t, good.LastSuccess, obj.Status.LastSuccess)
	require.Equal(t, metav1.ConditionTrue, w.condition(ConditionReady).Status)
	w.tidy(1)
}

func TestNoDecisionDependsOnThePhase(t *testing.T) {
	w := newWorld(t)
	w.answer = running
	w.create(nil)
	w.settle()
	for _, garbage := range []string{"Idle", "Failed", "Nonsense", ""} {
		obj := w.get()
		obj.Status.Phase, obj.Status.Current.Stage = garbage, garbage
		require.NoError(t, w.admin.Status().Update(t.Context(), obj))
		require.Equal(t, "Moving", w.settle().Status.Phase)
	}
	current := w.get().Status.Current.slot()
	task := backup.Task{Owner: w.owner(), Role: backup.RoleBackup, Slot: current.ID, Request: contract.Request{Backup: &contract.Backup{}}}
	w.script.Finish(task, 1, *well(task, 1))
	require.Equal(t, "Idle", w.settle().Status.Phase)
	require.Len(t, w.starts(backup.RoleBackup), 1)
}

func TestAnInvalidScheduleWaitsForAnEdit(t *testing.T) {
	w := newWorld(t)
	w.create(func(obj *thing) { obj.Spec.Schedule = "61 * * * *" })
	w.settle()
	require.Equal(t, metav1.ConditionFalse, w.condition(ConditionReady).Status)
	result, err := w.reconcile(t.Context())
	require.NoError(t, err)
	require.Zero(t, result.RequeueAfter)
	w.edit(func(obj *thing) { obj.Spec.Schedule = farSlot() })
	require.Equal(t, "Succeeded", w.settle().Status.LastAttempt.Outcome)
}

func TestAnAPIServerThatFailsIsTriedAgain(t *testing.T) {
	w := newWorld(t)
	broken := errors.New("broken")
	w.create(nil)
	w.settle()
	w.toNextSlot()
	w.refuse = func(call kittest.Call) error {
		if call.Verb == "create" {
			return broken
		}
		return nil
	}
	_, err := w.reconcile(t.Context())
	require.ErrorIs(t, err, broken)
	w.refuse = nil
	require.Equal(t, "Scheduled", w.settle().Status.LastAttempt.Kind)
}

func (w *world) owner() backup.Owner {
	obj := w.get()
	return backup.Owner{Namespace: w.ns, Name: obj.Name, UID: obj.UID}
}

var _ client.Object = (*thing)(nil)

func TestABackupIsHeldBackUntilNothingHoldsItAndUsesNoSlotUp(t *testing.T) {
	held := reconcilekit.Waiting("Filling", time.Minute, errors.New("somebody fills the claim"))
	t.Run("before it began", func(t *testing.T) {
		w := newWorld(t)
		why := held
		w.loop = w.newLoopHeld(func(context.Context, Object) error { return why })
		w.create(nil)
		obj := w.settle()
		require.Nil(t, obj.Status.Current)
		require.Equal(t, "Filling", w.condition(ConditionReconciling).Reason)
		require.Empty(t, w.snapshots())
		why = nil
		require.Equal(t, "Succeeded", w.settle().Status.LastAttempt.Outcome)
	})
	t.Run("before its snapshot", func(t *testing.T) {
		w := newWorld(t)
		asked, why := 0, held
		w.loop = w.newLoopHeld(func(context.Context, Object) error {
			if asked++; asked == 1 {
				return nil
			}
			return why
		})
		w.create(nil)
		require.NotNil(t, w.settle().Status.Current)
		require.Empty(t, w.snapshots())
		why = nil
		require.Equal(t, "Succeeded", w.settle().Status.LastAttempt.Outcome)
		require.Len(t, w.get().Status.History, 1)
	})
	t.Run("not any more once the snapshot exists", func(t *testing.T) {
		w := newWorld(t)
		w.loop = w.newLoopHeld(func(context.Context, Object) error {
			if len(w.snapshots()) > 0 {
				return held
			}
			return nil
		})
		w.create(nil)
		require.Equal(t, "Succeeded", w.settle().Status.LastAttempt.Outcome)
	})
}
