package scheduled

import (
	"context"
	"errors"
	"time"

	"example.com/pvcbackup/backup"
	"example.com/pvcbackup/reconcilekit"
	"example.com/pvcbackup/schedule"
	"example.com/pvcbackup/schedule/keep"
	"example.com/pvcbackup/snapshot"
	"example.com/pvcbackup/snapshot/stage"
)

// idle is a reconcile with no run in flight and none due: it tidies up and keeps the repository in order.
func (p *pass) idle(ctx context.Context, plan schedule.Plan) (reconcilekit.Outcome, error) {
	maintaining, err := p.maintain(ctx)
	if err != nil {
		return p.outcome(plan, err), err
	}
	gone, err := p.tidy(ctx, maintaining)
	if err != nil {
		if reconcilekit.Classify(err) == reconcilekit.ClassTerminal {
			return p.outcome(plan, err), err
		}
		return p.outcome(plan, nil), err
	}
	verdict := p.status.verdict()
	outcome := p.outcome(plan, verdict)
	if !gone || maintaining {
		outcome.Look = sooner(outcome.Look, tidyLook)
	}
	return outcome, verdict
}

// tidyLook is how often is looked at what is on its way out, should no event tell.
const tidyLook = 5 * time.Second

func sooner(a, b time.Duration) time.Duration {
	if a <= 0 || b < a {
		return b
	}
	return a
}

// tidy removes what runs that ended have left: movers, staged claims, and the VolumeSnapshots that no rule keeps. It
// returns true when nothing that should go is left.
func (p *pass) tidy(ctx context.Context, maintaining bool) (gone bool, err error) {
	gone, err = p.stopTasks(ctx, func(task backup.TaskRef) bool {
		return task.Role == backup.RoleMaintain && maintaining
	})
	if err != nil || !gone {
		return false, err
	}
	kept, err := p.keptSnapshots(ctx)
	if errors.Is(err, snapshot.ErrNotInstalled) {
		return true, nil // no API, no snapshots to look after; the next run says so
	}
	if err != nil {
		return false, err
	}
	gone, err = backup.Sweep(ctx, p.cachedStages, p.owner, func(l stage.Leftover) bool { return kept[l.Name] })
	if errors.Is(err, snapshot.ErrNotInstalled) {
		return true, nil
	}
	return gone, err
}

// stopTasks stops every task of the owner that spare does not want.
func (p *pass) stopTasks(ctx context.Context, spare func(backup.TaskRef) bool) (gone bool, err error) {
	tasks, err := p.options.Mover.Tasks(ctx, p.owner)
	if err != nil {
		return false, err
	}
	gone = true
	for _, ref := range tasks {
		if spare(ref) {
			continue
		}
		stopped, err := p.options.Mover.Stop(ctx, backup.Task{Owner: p.owner, Role: ref.Role, Slot: ref.Slot})
		if err != nil {
			return false, err
		}
		gone = gone && stopped
	}
	return gone, nil
}

// keptSnapshots returns the names of the VolumeSnapshots that stay for fast restores.
func (p *pass) keptSnapshots(ctx context.Context) (map[string]bool, error) {
	observed, err := p.cachedSnapshots.List(ctx, p.owner.Namespace, snapshot.Owner{UID: p.owner.UID}, nil)
	if err != nil {
		return nil, err
	}
	want := p.spec.keepSnapshots()
	kept := map[string]bool{}
	if want == 0 {
		return kept, nil
	}
	for _, verdict := range keep.Apply(p.keepItems(observed), keep.Rules{Last: want}, time.UTC) {
		if verdict.Keep && verdict.Item.Good {
			kept[verdict.Item.ID] = true
		}
	}
	return kept, nil
}

// keepItems tells the good ones: ready, and of a slot that is not known to have failed.
func (p *pass) keepItems(observed []snapshot.Observation) []keep.Item {
	items := make([]keep.Item, 0, len(observed))
	for _, o := range observed {
		good := o.State == snapshot.Ready && !p.status.failedSlot(o.Labels[backup.LabelSlot])
		items = append(items, keep.Item{ID: o.Name, Time: o.TakenAt, Good: good})
	}
	return items
}
