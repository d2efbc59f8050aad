package restore

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/pvcbackup/backup"
	"example.com/pvcbackup/backup/contract"
	"example.com/pvcbackup/reconcilekit"
	"example.com/pvcbackup/snapshot"
	"example.com/pvcbackup/snapshot/stage"
)

// Slot is the slot of a restore's task: an object restores once.
const Slot = "restore"

// Runner makes restores. It holds no state of its own and is safe for concurrent use.
type Runner struct {
	// Live reads from the API server itself.
	Live   client.Reader
	Stages *stage.Client
	Mover  backup.Mover
}

// Run is one restore.
type Run struct {
	Owner backup.Owner
	// Claim is the target's name, in the owner's namespace.
	Claim string
	// Create makes the target; nil means that it must exist.
	Create *NewClaim
	// Staged is how long a claim may take to be bound or to wait for its Pod; zero is no bound.
	Staged time.Duration
	// Task is what the mover is asked, but for its target volume.
	Task     backup.Task
	Attempts backup.Attempts
}

// NewClaim is what a new target is like.
type NewClaim struct {
	Size resource.Quantity
	// StorageClass empty takes the cluster's default class.
	StorageClass string
	// AccessModes default to ReadWriteOnce.
	AccessModes []corev1.PersistentVolumeAccessMode
}

// Progress is how far a restore is.
type Progress struct {
	// Attempt and Mover are about the newest mover, if there is one.
	Attempt int
	Mover   backup.MoverState
	// Result is set when the restore has ended. A terminal error ends it as well.
	Result *contract.Result
}

// Step does the next thing that is due. Until the restore has ended the error is a waiting or transient one.
func (r *Runner) Step(ctx context.Context, run Run, now time.Time) (Progress, error) {
	task := run.task()
	started, err := r.Mover.Poll(ctx, task, 1)
	if err != nil {
		return Progress{}, err
	}
	if started.Phase == backup.MoverAbsent {
		if err := r.prepare(ctx, run, now); err != nil {
			return Progress{}, err
		}
	}
	state, err := backup.Advance(ctx, r.Mover, task, run.Attempts, now)
	return Progress{Attempt: state.Attempt, Mover: state.Mover, Result: state.Result}, err
}

func (r *Runner) prepare(ctx context.Context, run Run, now time.Time) error {
	if run.Create != nil {
		return r.create(ctx, run, now)
	}
	return r.existing(ctx, run)
}

func (r *Runner) create(ctx context.Context, run Run, now time.Time) error {
	target, err := r.Stages.EnsureEmpty(ctx, stage.EmptyRequest{
		Namespace: run.Owner.Namespace, Name: run.Claim,
		// No owner reference: the claim is the user's, and outlives the restore.
		Owner:  snapshot.Owner{UID: run.Owner.UID},
		Labels: map[string]string{backup.LabelManagedBy: backup.ManagedBy, backup.LabelRole: string(backup.RoleRestore)},
		Size:   run.Create.Size, StorageClass: run.Create.StorageClass, AccessModes: run.Create.AccessModes,
	})
	if err != nil {
		return err
	}
	return stage.Judge(target, run.Staged, now)
}

// existing accepts a claim that is there and that no Pod uses.
func (r *Runner) existing(ctx context.Context, run Run) error {
	ctx, cancel := context.WithTimeout(ctx, reconcilekit.DefaultCallTimeout)
	defer cancel()
	var claim corev1.PersistentVolumeClaim
	err := r.Live.Get(ctx, client.ObjectKey{Namespace: run.Owner.Namespace, Name: run.Claim}, &claim)
	switch {
	case reconcilekit.IsGone(err):
		return reconcilekit.Waiting("TargetMissing", look, fmt.Errorf(
			"the target claim %s does not exist: create it, or have it made with target.create", run.Claim))
	case err != nil:
		return err
	case !claim.DeletionTimestamp.IsZero():
		return reconcilekit.Terminal("TargetDeleting", fmt.Errorf("the target claim %s is being deleted", run.Claim))
	}
	return r.unused(ctx, run)
}

func (r *Runner) unused(ctx context.Context, run Run) error {
	var pods corev1.PodList
	if err := r.Live.List(ctx, &pods, client.InNamespace(run.Owner.Namespace)); err != nil {
		return fmt.Errorf("listing the Pods that may use the target claim: %w", err)
	}
	for i := range pods.Items {
		if pod := &pods.Items[i]; backup.Mounts(pod, run.Claim) && pod.Labels[backup.LabelOwnerUID] != string(run.Owner.UID) {
			return reconcilekit.Waiting("TargetInUse", look, fmt.Errorf(
				"the Pod %s uses the target claim %s: stop it, and the restore begins", pod.Name, run.Claim))
		}
	}
	return nil
}

// look is how often a target is looked at that is not ready for a restore.
const look = 15 * time.Second

func (r Run) task() backup.Task {
	task := r.Task
	task.Owner, task.Role, task.Slot = r.Owner, backup.RoleRestore, Slot
	task.Volumes.Target = r.Claim
	return task
}

// Cleanup ends the restore's movers, whether they ended or not. It returns true when none is left; call it again until
// then. The target stays.
func (r *Runner) Cleanup(ctx context.Context, run Run) (gone bool, err error) {
	return r.Mover.Stop(ctx, run.task())
}
