package controller

import (
	"context"
	"fmt"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/pvcbackup/backup/scheduled"
	v1 "example.com/pvcbackup/operator/api/v1"
	"example.com/pvcbackup/reconcilekit"
)

// indexTarget finds PVCRestores by the claim that they restore into.
const indexTarget = "spec.target.pvcName"

func indexByTarget(ctx context.Context, mgr ctrl.Manager) error {
	return mgr.GetFieldIndexer().IndexField(ctx, &v1.PVCRestore{}, indexTarget, targetOf)
}

func targetOf(obj client.Object) []string { return []string{obj.(*v1.PVCRestore).Spec.Target.PVCName} }

// heldLook is how often is looked whether a restore has ended, should no event tell.
const heldLook = 15 * time.Second

// whileRestored returns what holds a backup back: a restore that is filling the claim, since a snapshot of a claim that is
// filled by half would be taken for a good backup. One that only waits, such as for a claim that is in use, holds nothing.
func whileRestored(reader client.Reader) func(context.Context, scheduled.Object) error {
	return func(ctx context.Context, obj scheduled.Object) error {
		var restores v1.PVCRestoreList
		err := reader.List(ctx, &restores, client.InNamespace(obj.GetNamespace()), client.MatchingFields{indexTarget: obj.BackupClaim()})
		if err != nil {
			return fmt.Errorf("listing the restores into the claim: %w", err)
		}
		for i := range restores.Items {
			if filling(&restores.Items[i]) {
				return reconcilekit.Waiting("RestoreInProgress", heldLook, fmt.Errorf(
					"PVCRestore %s is filling the claim %s: the backup is made when it has ended", restores.Items[i].Name, obj.BackupClaim()))
			}
		}
		return nil
	}
}

// filling reports whether a mover of the restore was started and the restore has not ended.
func filling(restore *v1.PVCRestore) bool {
	return restore.Status.Attempt > 0 && restore.Status.Completed == nil && restore.DeletionTimestamp.IsZero()
}
