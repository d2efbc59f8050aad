package scheduled

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/pvcbackup/backup"
	"example.com/pvcbackup/backup/contract"
	"example.com/pvcbackup/reconcilekit"
)

// maintain has forget and prune run when they are due, or goes on with them. It reports whether they are in flight.
// What goes wrong there never fails a backup: it is the condition Maintained.
func (p *pass) maintain(ctx context.Context) (inFlight bool, err error) {
	slot := p.maintenanceDue()
	if slot == "" {
		return false, nil
	}
	task, err := p.task(contract.OperationMaintain)
	if err != nil {
		return false, nil //nolint:nilerr // the next run reports a URL that is wrong
	}
	task.Role, task.Slot = backup.RoleMaintain, slot
	task.Request.Maintain = &contract.Maintain{Keep: p.spec.Retention.keepRules(), TimeZone: p.spec.TimeZone}
	state, err := backup.Advance(ctx, p.options.Mover, task, p.options.Attempts, p.now)
	switch {
	case state.Result != nil:
		p.maintained(slot, *state.Result)
		return false, p.persist(ctx) // before its mover is tidied away
	case reconcilekit.Classify(err) == reconcilekit.ClassWaiting:
		return true, nil
	case reconcilekit.Classify(err) == reconcilekit.ClassTerminal:
		p.maintained(slot, failed(reasonOf(err), err.Error()))
		return false, p.persist(ctx)
	}
	return true, err
}

// maintenanceDue returns the slot after which maintenance is due, or in flight; empty when it is not. It is due after a
// good run, never while the newest run failed, and not more often than is configured.
func (p *pass) maintenanceDue() string {
	last, success := p.status.LastAttempt, p.status.LastSuccess
	if last == nil || success == nil || last.Outcome != string(contract.Succeeded) {
		return ""
	}
	done := p.status.Maintenance
	since := p.obj.GetCreationTimestamp().Time
	if done != nil {
		since = done.Finished.Time
	}
	if p.now.Sub(since) < p.options.MaintainEvery {
		return ""
	}
	// Named by time, not by run: runs that come while it is in flight do not start it again.
	return "after-" + since.UTC().Format("20060102t150405z")
}

// maintained records what became of it.
func (p *pass) maintained(slot string, r contract.Result) {
	p.status.Maintenance = &Maintenance{
		Slot: slot, Finished: metav1.NewTime(p.now), Outcome: string(r.Outcome),
		Kept: int32(r.Kept), Removed: int32(r.Removed), Freed: r.Freed, Message: limit(r.Message, messageLimit),
	}
	condition := metav1.Condition{
		Type: ConditionMaintained, Status: metav1.ConditionTrue, Reason: "Maintained", LastTransitionTime: metav1.NewTime(p.now),
	}
	if !r.Good() {
		condition.Status, condition.Reason, condition.Message = metav1.ConditionFalse, resultReason(r), r.Message
	}
	reconcilekit.SetCondition(&p.status.Conditions, p.obj.GetGeneration(), condition)
}

// DefaultMaintainEvery is the least time between two runs of forget and prune.
const DefaultMaintainEvery = 24 * time.Hour
