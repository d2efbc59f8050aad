package scheduled

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"example.com/pvcbackup/backup"
	"example.com/pvcbackup/backup/contract"
	"example.com/pvcbackup/reconcilekit"
	"example.com/pvcbackup/snapshot"
)

// waitForAPI is how long a deletion waits for a VolumeSnapshot API that is not served. After that the owner references
// are left to do the work: the garbage collector removes the snapshots when the API is back.
const waitForAPI = 10 * time.Minute

// delete cleans up and lets the object go.
func (p *pass) delete(ctx context.Context) (ctrl.Result, error) {
	p.status.Current, p.status.NextBackup = nil, nil
	err := p.cleanUp(ctx)
	outcome := p.deleting(err)
	switch {
	case reconcilekit.IsNamespaceTerminating(err):
		// Nothing can be created any more, not even an Event. What is in the store stays there.
		log.FromContext(ctx).Info("the namespace is being deleted, so the backups in the store are left", "repository", p.place())
		p.options.Metrics.left()
	case err != nil:
		return p.finish(ctx, outcome, err)
	}
	if err := reconcilekit.DropFinalizer(ctx, p.client, p.obj, Finalizer); err != nil {
		return p.finish(ctx, outcome, err)
	}
	p.Forget(p.owner.Namespace, p.owner.Name)
	return ctrl.Result{}, nil
}

// deleting keeps Ready as it was, as what is in the store is, unless the deletion is stuck.
func (p *pass) deleting(err error) reconcilekit.Outcome {
	if reconcilekit.Classify(err) == reconcilekit.ClassTerminal {
		return reconcilekit.Outcome{Ready: ready(metav1.ConditionFalse, reasonOf(err), reconcilekit.StableMessage(err))}
	}
	if known := meta.FindStatusCondition(p.status.Conditions, ConditionReady); known != nil {
		return reconcilekit.Outcome{Ready: *known}
	}
	return reconcilekit.Outcome{Ready: p.status.neverProtected()}
}

func (p *pass) place() string {
	if p.status.Repository == nil {
		return ""
	}
	return p.status.Repository.URL
}

// cleanUp removes what the object has outside itself. It returns nil when all of it is gone.
func (p *pass) cleanUp(ctx context.Context) error {
	gone, err := p.stopTasks(ctx, func(task backup.TaskRef) bool { return task.Role == backup.RoleDelete })
	if err != nil {
		return err
	}
	if !gone {
		return reconcilekit.Waiting("StoppingMovers", tidyLook, nil)
	}
	if err := p.sweepAll(ctx); err != nil {
		return err
	}
	if err := p.deleteBackups(ctx); err != nil {
		return err
	}
	return p.stopMovers(ctx)
}

// sweepAll deletes staged claims and VolumeSnapshots. It does not wait for others' finalizers: what is marked for
// deletion is on its way.
func (p *pass) sweepAll(ctx context.Context) error {
	_, err := backup.Sweep(ctx, p.runner.Stages, p.owner, nil)
	if errors.Is(err, snapshot.ErrNotInstalled) && p.now.Sub(p.obj.GetDeletionTimestamp().Time) > waitForAPI {
		log.FromContext(ctx).Info("the VolumeSnapshot API is not served, so its objects are left to the garbage collector")
		return nil
	}
	return err
}

// deleteBackups forgets what this object has put into the store, if that is wanted and there is anything.
func (p *pass) deleteBackups(ctx context.Context) error {
	if p.spec.DeletionPolicy != Delete || p.status.Repository == nil || p.obj.GetAnnotations()[AnnotationAbandon] == "true" {
		return nil
	}
	task, err := p.task(contract.OperationDelete)
	if err != nil {
		return abandonable(err)
	}
	task.Role, task.Slot = backup.RoleDelete, p.deletionSlot()
	task.Request.Delete = &contract.Delete{OwnerUID: string(p.owner.UID)}
	state, err := backup.Advance(ctx, p.options.Mover, task, p.options.Attempts, p.now)
	if err != nil {
		return err
	}
	if state.Result.Outcome != contract.Failed {
		// Written down before the mover goes with its result: without either it would be asked again, for ever.
		p.status.Repository = nil
		return p.persist(ctx)
	}
	return abandonable(reconcilekit.Terminal(state.Result.Reason, errors.New(state.Result.Message)))
}

// deletionSlot names the deletion, so that an edit or a trigger asks for it anew after it failed.
func (p *pass) deletionSlot() string {
	sum := fnv.New64a()
	fmt.Fprintf(sum, "%d %q", p.obj.GetGeneration(), triggerOf(p.obj))
	return fmt.Sprintf("d%016x", sum.Sum64())
}

func abandonable(err error) error {
	return fmt.Errorf("the backups could not be removed: %w. After mending that, set the annotation %s to a new value; "+
		"to leave them in the store, set %s=true", err, AnnotationTrigger, AnnotationAbandon)
}
