package reconcilekit

import (
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// ReasonRetrying is the reason of Reconciling while a transient error is tried again.
const ReasonRetrying = "Retrying"

// ReasonNotDetermined is the reason of a Ready that nobody has derived yet for
// the object's generation.
const ReasonNotDetermined = "NotDetermined"

// Outcome is what a reconcile found, beside its error.
type Outcome struct {
	// Look says when to look again although nothing happens; zero or less: never.
	Look time.Duration
	// Ready is the summary condition as derived by the reconciler; its type is
	// set by Settle. With an empty status nothing was derived: a terminal error
	// then makes it False, and one that is missing or that belongs to an older
	// generation becomes Unknown.
	Ready metav1.Condition
}

// Policy is how a controller settles. The zero value is ready to use with a
// [Finisher]; Settle itself needs Now.
type Policy struct {
	// Now is the present, the time of transitions; [Finisher] fills it in.
	Now time.Time
	// Summary is the type of the summary condition; Ready when empty.
	Summary string
	// TerminalLook is how long after a terminal error to look again, at most and
	// by default 10 minutes. Negative: not at all, only an event helps.
	TerminalLook time.Duration
	// NextSlot, when set, is when work is due next: a terminal error is looked at
	// again no later.
	NextSlot time.Time
	// ConflictDelay is how long after a conflict to try again; 500 ms when zero.
	ConflictDelay time.Duration
}

const (
	maxTerminalLook      = 10 * time.Minute
	defaultConflictDelay = 500 * time.Millisecond
	// minLook keeps a slot that is due now from becoming a hot loop.
	minLook = time.Second
)

// Settle ends a reconcile: it sets the conditions of obj and returns what the
// reconciler has to return. It is the only place that builds a ctrl.Result.
//
//	end                          Ready       Reconciling          Stalled       returned
//	nil, nothing to wait for     as derived  removed              removed       {}, nil
//	nil, look again in d         as derived  as it is             removed       RequeueAfter d
//	Waiting(reason, d)           as derived  True, reason         removed       RequeueAfter d
//	Transient                    as derived  True, Retrying       removed       {}, err
//	Terminal(reason)             as derived  removed              True, reason  RequeueAfter min(next slot, 10 min)
//	Conflict                     untouched   untouched            untouched     short RequeueAfter
//	Stopping                     untouched   untouched            untouched     {}, nil
//
// observedGeneration moves with the conditions, see [GenerationObserver]. An
// answer 422 for an object that is being deleted is transient, not terminal.
// A returned error is always retried by controller-runtime, even one that
// joins a terminal error with a transient one.
func Settle(obj Conditioned, outcome Outcome, err error, policy Policy) (ctrl.Result, error) {
	v := judgeFor(obj, err)
	switch v.class {
	case ClassConflict:
		return ctrl.Result{RequeueAfter: positive(policy.ConflictDelay, defaultConflictDelay)}, nil
	case ClassStopping:
		return ctrl.Result{}, nil
	}
	editConditions(obj, func(conditions *[]metav1.Condition) {
		s := settlement{conditions: conditions, generation: obj.GetGeneration(), policy: policy}
		s.summary(outcome, v, err) // first, so that it is the first in the list
		s.progress(outcome, v, err)
	})
	return result(outcome, v, err, policy)
}

// judgeFor is judge with what is known of the object: a deletion makes writes
// invalid that were fine before, so its 422 is tried again.
func judgeFor(obj Conditioned, err error) verdict {
	v := judge(err)
	if v.invalid && !obj.GetDeletionTimestamp().IsZero() {
		v.class = ClassTransient
	}
	return v
}

func result(outcome Outcome, v verdict, err error, policy Policy) (ctrl.Result, error) {
	switch v.class {
	case ClassNone:
		return ctrl.Result{RequeueAfter: max(outcome.Look, 0)}, nil
	case ClassWaiting:
		return ctrl.Result{RequeueAfter: positive(v.after, DefaultWait)}, nil
	case ClassTerminal:
		return ctrl.Result{RequeueAfter: terminalLook(policy)}, nil
	default:
		return ctrl.Result{}, retriable(err)
	}
}

func terminalLook(p Policy) time.Duration {
	if p.TerminalLook < 0 {
		return 0
	}
	look := min(positive(p.TerminalLook, maxTerminalLook), maxTerminalLook)
	if p.NextSlot.IsZero() {
		return look
	}
	return max(min(look, p.NextSlot.Sub(p.Now)), minLook)
}

func positive(d, fallback time.Duration) time.Duration {
	if d > 0 {
		return d
	}
	return fallback
}

// settlement sets the conditions of one object.
type settlement struct {
	conditions *[]metav1.Condition
	generation int64
	policy     Policy
}

func (s settlement) set(conditionType string, status metav1.ConditionStatus, reason, message string) {
	SetCondition(s.conditions, s.generation, metav1.Condition{
		Type: conditionType, Status: status, Reason: reason, Message: message,
		LastTransitionTime: metav1.NewTime(s.policy.Now),
	})
}

// progress sets Reconciling and Stalled.
func (s settlement) progress(outcome Outcome, v verdict, err error) {
	switch v.class {
	case ClassNone:
		RemoveCondition(s.conditions, TypeStalled)
		if outcome.Look <= 0 {
			RemoveCondition(s.conditions, TypeReconciling)
		} else {
			s.restamp(TypeReconciling)
		}
	case ClassWaiting:
		RemoveCondition(s.conditions, TypeStalled)
		s.set(TypeReconciling, metav1.ConditionTrue, reasonOr(v.reason, ClassWaiting.String()), StableMessage(err))
	case ClassTerminal:
		RemoveCondition(s.conditions, TypeReconciling)
		s.set(TypeStalled, metav1.ConditionTrue, reasonOr(v.reason, ClassTerminal.String()), StableMessage(err))
	default:
		RemoveCondition(s.conditions, TypeStalled)
		s.set(TypeReconciling, metav1.ConditionTrue, ReasonRetrying, StableMessage(err))
	}
}

// restamp keeps a condition as the steps left it, for this generation.
func (s settlement) restamp(conditionType string) {
	if c := meta.FindStatusCondition(*s.conditions, conditionType); c != nil {
		c.ObservedGeneration = s.generation
	}
}

// summary sets the summary condition.
func (s settlement) summary(outcome Outcome, v verdict, err error) {
	conditionType := s.policy.Summary
	if conditionType == "" {
		conditionType = TypeReady
	}
	old := meta.FindStatusCondition(*s.conditions, conditionType)
	switch {
	case outcome.Ready.Status != "":
		s.set(conditionType, outcome.Ready.Status, reasonOr(outcome.Ready.Reason, ReasonNotDetermined), outcome.Ready.Message)
	case v.class == ClassTerminal:
		s.set(conditionType, metav1.ConditionFalse, reasonOr(v.reason, ClassTerminal.String()), StableMessage(err))
	case old == nil || old.ObservedGeneration < s.generation:
		s.set(conditionType, metav1.ConditionUnknown, ReasonNotDetermined, "")
	}
}

// retriable hides a terminal error within err from controller-runtime, which
// would drop the retry of everything that is joined with it.
func retriable(err error) error {
	if errors.Is(err, reconcile.TerminalError(nil)) {
		return opaque{err.Error()}
	}
	return err
}

// opaque is an error that wraps nothing.
type opaque struct{ text string }

func (o opaque) Error() string { return o.text }
