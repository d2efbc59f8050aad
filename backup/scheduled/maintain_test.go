package scheduled

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/pvcbackup/backup/contract"
)

func passOf(obj *thing) *pass {
	return &pass{Loop: &Loop{options: Options{MaintainEvery: DefaultMaintainEvery}}, obj: obj, spec: obj.BackupSpec(), status: obj.BackupStatus(), now: noon}
}

func TestMaintenanceIsDueAfterAGoodRunAndNotTooOften(t *testing.T) {
	good, bad := &Attempt{Outcome: "Succeeded"}, &Attempt{Outcome: "Failed"}
	done := func(ago time.Duration) *Maintenance { return &Maintenance{Finished: *at(-ago)} }
	for name, test := range map[string]struct {
		created time.Duration
		status  Status
		due     bool
	}{
		"nothing was made":           {created: 48 * time.Hour},
		"first":                      {created: 24 * time.Hour, status: Status{LastAttempt: good, LastSuccess: &Success{}}, due: true},
		"too young":                  {created: 23 * time.Hour, status: Status{LastAttempt: good, LastSuccess: &Success{}}},
		"never after a failure":      {created: 48 * time.Hour, status: Status{LastAttempt: bad, LastSuccess: &Success{}}},
		"never after an empty one":   {created: 48 * time.Hour, status: Status{LastAttempt: &Attempt{Outcome: "Empty"}, LastSuccess: &Success{}}},
		"done lately":                {created: 999 * time.Hour, status: Status{LastAttempt: good, LastSuccess: &Success{}, Maintenance: done(23 * time.Hour)}},
		"done long ago":              {created: 999 * time.Hour, status: Status{LastAttempt: good, LastSuccess: &Success{}, Maintenance: done(24 * time.Hour)}, due: true},
		"failed lately is done, too": {created: 999 * time.Hour, status: Status{LastAttempt: good, LastSuccess: &Success{}, Maintenance: done(time.Hour)}},
	} {
		t.Run(name, func(t *testing.T) {
			obj := &thing{Status: test.status}
			obj.CreationTimestamp = *at(-test.created)
			p := passOf(obj)
			slot := p.maintenanceDue()
			require.Equal(t, test.due, slot != "")
			p.status.Current = &Current{Slot: "another"}
			p.now = p.now.Add(time.Minute)
			if test.due {
				require.Equal(t, slot, p.maintenanceDue(), "its name stays while it runs")
			}
		})
	}
}

func TestWhatMaintenanceSaysIsAConditionOfItsOwn(t *testing.T) {
	for name, test := range map[string]struct {
		result contract.Result
		status metav1.ConditionStatus
		reason string
	}{
		"good":             {contract.Result{Outcome: contract.Succeeded, Kept: 3, Removed: 2, Freed: 9}, "True", "Maintained"},
		"bad":              {contract.Result{Outcome: contract.Failed, Reason: "KeyCannotDelete", Message: "m"}, "False", "KeyCannotDelete"},
		"without a reason": {contract.Result{Outcome: contract.Failed}, "False", "Failed"},
		"half":             {contract.Result{Outcome: contract.Partial, Reason: "not fit"}, "False", "Notfit"},
	} {
		p := passOf(&thing{})
		p.maintained("slot", test.result)
		got := meta.FindStatusCondition(p.status.Conditions, ConditionMaintained)
		require.Equal(t, test.status, got.Status, name)
		require.Equal(t, test.reason, got.Reason, name)
		require.Equal(t, &Maintenance{
			Slot: "slot", Finished: *at(0), Outcome: string(test.result.Outcome), Message: test.result.Message,
			Kept: int32(test.result.Kept), Removed: int32(test.result.Removed), Freed: test.result.Freed,
		}, p.status.Maintenance, name)
	}
}

func TestADeletionIsAskedForAnewByAnEditOrATrigger(t *testing.T) {
	obj := &thing{}
	obj.Generation = 1
	slot := passOf(obj).deletionSlot()
	require.Equal(t, slot, passOf(obj).deletionSlot())
	obj.Generation = 2
	edited := passOf(obj).deletionSlot()
	obj.Annotations = map[string]string{AnnotationTrigger: "x"}
	triggered := passOf(obj).deletionSlot()
	require.NotEqual(t, slot, edited)
	require.NotEqual(t, edited, triggered)
	require.Regexp(t, `^[a-z][a-z0-9]{16}$`, triggered)
}
