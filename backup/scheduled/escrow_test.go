package scheduled

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/pvcbackup/backup"
)

func TestAGeneratedKeyIsToBeSavedUntilItsFingerprintIsAcknowledged(t *testing.T) {
	owner := backup.Owner{Kind: "PVCBackup", Namespace: "ns", Name: "b"}
	generated := &Repository{GeneratedKey: "secret", KeyFingerprint: "f1"}
	for name, test := range map[string]struct {
		repository *Repository
		saved      string
		want       metav1.ConditionStatus
	}{
		"no repository":      {nil, "", ""},
		"a password given":   {&Repository{KeyFingerprint: "f1"}, "", ""},
		"not used yet":       {&Repository{GeneratedKey: "secret"}, "", ""},
		"not saved":          {generated, "", metav1.ConditionFalse},
		"another key's":      {generated, "f0", metav1.ConditionFalse},
		"saved":              {generated, "f1", metav1.ConditionTrue},
		"nothing to confirm": {nil, "f1", ""},
	} {
		t.Run(name, func(t *testing.T) {
			obj := &thing{Status: Status{Repository: test.repository, Conditions: []metav1.Condition{{Type: ConditionKeyEscrowed, Status: "True", Reason: "Old"}}}}
			obj.Annotations = map[string]string{AnnotationKeySaved: test.saved}
			obj.Status.escrow(obj, owner, noon)
			got := meta.FindStatusCondition(obj.Status.Conditions, ConditionKeyEscrowed)
			if test.want == "" {
				require.Nil(t, got)
				return
			}
			require.Equal(t, test.want, got.Status)
			if test.want == metav1.ConditionFalse {
				require.Contains(t, got.Message, "kubectl get secret -n ns secret")
				require.Contains(t, got.Message, "kubectl annotate -n ns pvcbackup b "+AnnotationKeySaved+"=f1")
			}
		})
	}
}
