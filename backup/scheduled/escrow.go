package scheduled

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/pvcbackup/backup"
	"example.com/pvcbackup/reconcilekit"
)

// escrow sets KeyEscrowed: whether a person has said that the generated key is saved outside the cluster. Without it the
// backups are lost with the cluster.
func (s *Status) escrow(obj Object, owner backup.Owner, now time.Time) {
	if s.Repository == nil || s.Repository.GeneratedKey == "" || s.Repository.KeyFingerprint == "" {
		reconcilekit.RemoveCondition(&s.Conditions, ConditionKeyEscrowed)
		return
	}
	condition := metav1.Condition{Type: ConditionKeyEscrowed, LastTransitionTime: metav1.NewTime(now)}
	if obj.GetAnnotations()[AnnotationKeySaved] == s.Repository.KeyFingerprint {
		condition.Status, condition.Reason = metav1.ConditionTrue, "Acknowledged"
	} else {
		condition.Status, condition.Reason = metav1.ConditionFalse, "KeyNotSaved"
		condition.Message = fmt.Sprintf("without its password the repository cannot be read. Save it: kubectl get secret -n %s %s "+
			"-o jsonpath='{.data.password}' | base64 -d; then acknowledge: kubectl annotate -n %s %s %s %s=%s",
			owner.Namespace, s.Repository.GeneratedKey, owner.Namespace, strings.ToLower(owner.Kind), owner.Name,
			AnnotationKeySaved, s.Repository.KeyFingerprint)
	}
	reconcilekit.SetCondition(&s.Conditions, obj.GetGeneration(), condition)
}
