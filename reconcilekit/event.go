package reconcilekit

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// EventRecorder is the part of the recorder of mgr.GetEventRecorder that
// [Events] needs.
type EventRecorder interface {
	Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any)
}

// Events emits an event when a condition of an object changes its status or
// reason, and never otherwise: not for each failed try, not for a new message.
// Emitting cannot fail a reconcile. A nil *Events emits nothing.
type Events struct {
	// Recorder emits; nil: nothing is emitted.
	Recorder EventRecorder
	// Action is what the controller was doing, as in "Backup"; "Reconcile" when empty.
	Action string
	// Silent are condition types that are not worth an event.
	Silent []string
}

// Transitions emits one event for each condition of after whose status or
// reason is not that of before. A condition that was removed emits none, and
// conditions that say the same, as a summary and Stalled do, emit one together.
func (e *Events) Transitions(before, after Conditioned) {
	if e == nil || e.Recorder == nil {
		return
	}
	told := map[[2]string]bool{}
	for _, now := range after.GetConditions() {
		if slices.Contains(e.Silent, now.Type) {
			continue
		}
		was := meta.FindStatusCondition(before.GetConditions(), now.Type)
		if was != nil && was.Status == now.Status && was.Reason == now.Reason {
			continue
		}
		if what := [2]string{now.Reason, now.Message}; !told[what] {
			told[what] = true
			e.emit(after, now)
		}
	}
}

// Emit emits one event about obj. The note is made stable and bounded.
func (e *Events) Emit(obj runtime.Object, eventType, reason, note string) {
	if e == nil || e.Recorder == nil {
		return
	}
	action := e.Action
	if action == "" {
		action = "Reconcile"
	}
	e.Recorder.Eventf(obj, nil, eventType, reasonOr(reason, "Unknown"), action, "%s", StableText(note))
}

func (e *Events) emit(obj runtime.Object, c metav1.Condition) {
	note := c.Message
	if note == "" {
		note = c.Type + " is " + string(c.Status)
	}
	e.Emit(obj, eventType(c), c.Reason, note)
}

// eventType is Warning for what a user should look at.
func eventType(c metav1.Condition) string {
	bad := map[string]bool{
		TypeStalled:     c.Status == metav1.ConditionTrue,
		TypeReconciling: c.Reason == ReasonRetrying,
	}
	wrong, negative := bad[c.Type]
	if !negative {
		wrong = c.Status == metav1.ConditionFalse
	}
	if wrong {
		return corev1.EventTypeWarning
	}
	return corev1.EventTypeNormal
}
