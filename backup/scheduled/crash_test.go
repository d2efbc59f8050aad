package scheduled

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"example.com/pvcbackup/backup"
	"example.com/pvcbackup/backup/contract"
	"example.com/pvcbackup/backup/movertest"
	"example.com/pvcbackup/reconcilekit/kittest"
)

// outside makes a mover's side effects calls that a process may stop before and after.
type outside struct {
	*movertest.Script
	process kittest.Process
}

func (o outside) Start(ctx context.Context, task backup.Task, attempt int) error {
	return o.process.Outside("start "+string(task.Role), func() error { return o.Script.Start(ctx, task, attempt) })
}

func (o outside) Stop(ctx context.Context, task backup.Task) (gone bool, err error) {
	err = o.process.Outside("stop "+string(task.Role), func() error {
		gone, err = o.Script.Stop(ctx, task)
		return err
	})
	return gone, err
}

// end is what must be the same however often the operator was stopped.
type end struct {
	Outcomes, Kinds   []string
	SnapshotOfSlot    bool
	Failures          int32
	Repository        Repository
	Ready             metav1.ConditionStatus
	Keys              int
	PasswordUnchanged bool
	Snapshots         int
	SnapshotsOfSlots  int
	Claims            []string
	Tasks             []backup.TaskRef
	Movers            map[backup.Role]int
}

func TestAStopBeforeOrAfterAnySideEffectOfARunChangesNothing(t *testing.T) {
	n := kittest.CrashEverywhere(t, kittest.Scenario{World: func(t testing.TB) kittest.World {
		w := newWorld(t)
		passwords := map[string]bool{}
		w.answer = func(task backup.Task, attempt int) *contract.Result {
			if task.Role == backup.RoleBackup {
				for _, secret := range w.secrets() {
					passwords[string(secret.Data[contract.PasswordKey])] = true
				}
			}
			return well(task, attempt)
		}
		w.create(generated)
		return kittest.World{
			Client: w.client,
			Start: func(p kittest.Process) kittest.Reconcile {
				loop := w.newLoop(p.Client, outside{w.script, p})
				return func(ctx context.Context) (ctrl.Result, error) { return reconcileWith(ctx, p.Client, loop, w.ns) }
			},
			Between: w.step,
			Final:   func(context.Context) (any, error) { return w.end(passwords), nil },
		}
	}})
	// The finalizer, the starts of two movers and their stops, the key's dry run, intent, creation and note, the snapshot,
	// its volume and the end of that, and each time that the status tells of it.
	require.Equal(t, runSideEffects, n, "side effects of a run: each was broken in four ways")
}

const runSideEffects = 20

func (w *world) end(passwords map[string]bool) end {
	obj := w.get()
	s := obj.Status
	e := end{
		SnapshotOfSlot: s.LastSuccess != nil && s.LastSuccess.SnapshotID == "snapshot-of-"+s.LastAttempt.Slot, Failures: s.ConsecutiveFailures,
		Keys: len(w.secrets()), PasswordUnchanged: len(passwords) == 1, Claims: w.claims(), Tasks: w.tasks(), Movers: map[backup.Role]int{},
	}
	for _, attempt := range s.History {
		e.Outcomes, e.Kinds = append(e.Outcomes, attempt.Outcome), append(e.Kinds, attempt.Kind)
	}
	if s.Repository != nil {
		e.Repository = *s.Repository
		require.Equal(w.t, w.key(), e.Repository.GeneratedKey)
		e.Repository.URL, e.Repository.GeneratedKey = "", "" // they hold the namespace
	}
	if c := meta.FindStatusCondition(s.Conditions, ConditionReady); c != nil {
		e.Ready = c.Status
	}
	slots := map[string]bool{}
	for _, vs := range w.snapshots() {
		e.Snapshots++
		slots[vs.Labels[backup.LabelSlot]] = true
	}
	e.SnapshotsOfSlots = len(slots)
	for _, role := range []backup.Role{backup.RoleLookup, backup.RoleBackup} {
		e.Movers[role] = len(w.starts(role))
	}
	return e
}
