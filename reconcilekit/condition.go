package reconcilekit

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Condition types that [Settle] writes. Reconciling and Stalled are there only
// while they are True.
const (
	TypeReady       = "Ready"
	TypeReconciling = "Reconciling"
	TypeStalled     = "Stalled"
)

// Conditioned is an object with conditions.
type Conditioned interface {
	client.Object
	GetConditions() []metav1.Condition
	SetConditions(conditions []metav1.Condition)
}

// GenerationObserver is implemented by objects whose status has a field
// observedGeneration; [Settle] keeps it.
type GenerationObserver interface {
	GetObservedGeneration() int64
	SetObservedGeneration(generation int64)
}

// SetCondition puts cond into conditions, stamped with generation, and reports
// whether anything changed that is worth a write.
//
// Nil conditions are left alone. lastTransitionTime moves with the status only, and then to the one of cond,
// or to the present when it has none. A message that differs only in what
// [StableText] leaves out is not a change: the old one stays.
func SetCondition(conditions *[]metav1.Condition, generation int64, cond metav1.Condition) (changed bool) {
	if conditions == nil {
		return false
	}
	cond.ObservedGeneration = generation
	old := meta.FindStatusCondition(*conditions, cond.Type)
	if old != nil && old.Message != cond.Message && StableText(old.Message) == StableText(cond.Message) {
		cond.Message = old.Message
	}
	return meta.SetStatusCondition(conditions, cond)
}

// RemoveCondition removes the condition of a type and reports whether it was there.
func RemoveCondition(conditions *[]metav1.Condition, conditionType string) (removed bool) {
	return meta.RemoveStatusCondition(conditions, conditionType)
}

// editConditions lets edit change a copy of obj's conditions and puts it back.
func editConditions(obj Conditioned, edit func(conditions *[]metav1.Condition)) {
	conditions := slices.Clone(obj.GetConditions())
	edit(&conditions)
	obj.SetConditions(conditions)
	if o, ok := obj.(GenerationObserver); ok {
		o.SetObservedGeneration(obj.GetGeneration())
	}
}
