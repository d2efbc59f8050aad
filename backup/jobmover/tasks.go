package jobmover

import (
	"cmp"
	"context"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/pvcbackup/backup"
)

var _ backup.TaskLister = (*Mover)(nil)

// Tasks implements backup.TaskLister from the cache: a task has left something while a Job or a Pod of it is there.
func (m *Mover) Tasks(ctx context.Context, owner backup.Owner) ([]backup.TaskRef, error) {
	labels := ownerLabels(owner)
	jobs, err := m.listJobs(ctx, m.options.Client, owner, labels)
	if err != nil {
		return nil, err
	}
	pods, err := m.listPods(ctx, m.options.Client, owner, labels)
	if err != nil {
		return nil, err
	}
	var tasks []backup.TaskRef
	add := func(obj client.Object) {
		task := taskOf(owner, obj)
		ref := backup.TaskRef{Role: task.Role, Slot: task.Slot}
		if ref.Slot != "" && !slices.Contains(tasks, ref) {
			tasks = append(tasks, ref)
		}
	}
	for i := range jobs {
		add(&jobs[i])
	}
	for i := range pods {
		add(&pods[i])
	}
	slices.SortFunc(tasks, func(a, b backup.TaskRef) int {
		return cmp.Or(cmp.Compare(a.Role, b.Role), cmp.Compare(a.Slot, b.Slot))
	})
	return tasks, nil
}

// ownerLabels select everything that movers of an owner have made.
func ownerLabels(owner backup.Owner) map[string]string {
	return map[string]string{backup.LabelManagedBy: backup.ManagedBy, backup.LabelOwnerUID: string(owner.UID)}
}

// taskOf reads off a Job or a Pod which task it belongs to.
func taskOf(owner backup.Owner, obj client.Object) backup.Task {
	labels := obj.GetLabels()
	return backup.Task{Owner: owner, Role: backup.Role(labels[backup.LabelRole]), Slot: labels[backup.LabelSlot]}
}
