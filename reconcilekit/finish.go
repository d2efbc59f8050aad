package reconcilekit

import (
	"context"
	"errors"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// Finisher ends the reconciles of one controller.
type Finisher struct {
	// Controller is the name of the controller in metrics.
	Controller string
	// Status writes the status; required.
	Status *StatusWriter
	// Events tells users about transitions; nil: nobody is told.
	Events *Events
	// Metrics counts; nil: nothing is counted.
	Metrics *Metrics
}

// Finish settles after (see [Settle]), writes its status when it differs from
// before's, emits events for the conditions that changed, counts terminal errors
// and conflicts, and returns what the reconciler has to return.
//
// If the status write fails, that error is returned alone and no event is
// emitted; a conflict there ends the reconcile as any conflict does. Nothing is
// written after a conflict, nor when err is not nil and ctx was cancelled
// because the manager stops: that error says nothing about the object. A ctx
// that merely ran out of time, or a manager that stops after success, keeps no
// status from being written.
//
// What must survive a conflict is written by the reconciler itself, when it
// happens, with [StatusWriter.Write].
func (f *Finisher) Finish(ctx context.Context, before, after Conditioned, outcome Outcome, err error, policy Policy) (ctrl.Result, error) {
	if policy.Now.IsZero() {
		policy.Now = time.Now()
	}
	err = cancelled(ctx, err)
	result, settled := Settle(after, outcome, err, policy)
	class := judgeFor(after, err).class
	if class == ClassStopping {
		return result, settled
	}
	if class == ClassConflict {
		return f.conflict(ctx, result, err)
	}
	if err := f.Status.Write(ctx, before, after); err != nil {
		if Classify(err) == ClassConflict {
			again, _ := Settle(after, outcome, err, policy)
			return f.conflict(ctx, again, err)
		}
		return ctrl.Result{}, retriable(err)
	}
	f.Events.Transitions(before, after)
	f.report(ctx, class, err)
	return result, settled
}

func (f *Finisher) conflict(ctx context.Context, result ctrl.Result, err error) (ctrl.Result, error) {
	log.FromContext(ctx).V(1).Info("the object changed meanwhile, trying again", "conflict", StableMessage(err))
	f.Metrics.conflict(f.Controller)
	return result, nil
}

// report tells of the ends that controller-runtime does not see as errors.
func (f *Finisher) report(ctx context.Context, class Class, err error) {
	switch class {
	case ClassTerminal:
		log.FromContext(ctx).Info("stalled", "reason", Reason(err), "error", StableMessage(err))
		f.Metrics.terminal(f.Controller, Reason(err))
	case ClassWaiting:
		log.FromContext(ctx).V(1).Info("waiting", "reason", Reason(err), "for", StableMessage(err))
	}
}

// cancelled settles what a cancellation means: with ctx cancelled every error
// is due to that; without, somebody else cancelled something, and trying again
// may help.
func cancelled(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(ctx.Err(), context.Canceled):
		return &classified{class: ClassStopping, err: err}
	case Classify(err) == ClassStopping:
		return Transient("Cancelled", err)
	default:
		return err
	}
}
