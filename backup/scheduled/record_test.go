package scheduled

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/pvcbackup/backup/contract"
	"example.com/pvcbackup/schedule"
)

var hourly = schedule.Slot{Time: noon.Add(-time.Minute), Kind: schedule.Scheduled, ID: "s1"}

func begun(slot schedule.Slot) *Status {
	s := &Status{Planning: &Planning{}, Repository: &Repository{URL: "s3://b"}}
	s.begin(slot, noon.Add(-time.Minute))
	return s
}

func TestARunIsRecordedFromBeginningToEnd(t *testing.T) {
	s := begun(hourly)
	require.Empty(t, cmp.Diff(&Current{Slot: "s1", Kind: "Scheduled", Time: *at(-time.Minute), Started: *at(-time.Minute)}, s.Current))
	require.Empty(t, cmp.Diff(hourly, s.Current.slot()))
	s.Current.Attempt = 2
	s.end(contract.Result{
		Outcome: contract.Succeeded, SnapshotID: "abc", SnapshotTime: noon.Add(-30 * time.Second), RepositoryID: "r", KeyFingerprint: "k",
		Bytes: 10, Files: 2, Added: 5,
	}, noon)
	attempt := Attempt{
		Slot: "s1", Kind: "Scheduled", Started: *at(-time.Minute), Finished: *at(0), Outcome: "Succeeded", SnapshotID: "abc", Movers: 2,
	}
	want := &Status{
		LastBackup: at(0), LastAttempt: &attempt, History: []Attempt{attempt},
		LastSuccess: &Success{
			Slot: "s1", SnapshotID: "abc", Time: at(-30 * time.Second), Bytes: 10, Files: 2, Added: 5,
			Duration: metav1.Duration{Duration: time.Minute},
		},
		Planning:   &Planning{LastSlot: at(-time.Minute)},
		Repository: &Repository{URL: "s3://b", ID: "r", KeyFingerprint: "k"},
	}
	require.Empty(t, cmp.Diff(want, s))
}

func TestOnlyACompleteBackupMovesLastBackup(t *testing.T) {
	for outcome, want := range map[contract.Outcome]struct {
		moved    bool
		failures int32
	}{
		contract.Succeeded: {true, 0}, contract.Empty: {false, 0}, contract.Partial: {false, 4}, contract.Failed: {false, 4},
	} {
		t.Run(string(outcome), func(t *testing.T) {
			s := begun(hourly)
			old := &Success{Slot: "old"}
			s.LastBackup, s.LastSuccess, s.ConsecutiveFailures = at(-time.Hour), old, 3
			s.end(contract.Result{Outcome: outcome}, noon)
			require.Equal(t, want.moved, s.LastBackup.Equal(at(0)))
			require.Equal(t, want.moved, s.LastSuccess != old)
			require.Equal(t, want.failures, s.ConsecutiveFailures)
			require.Equal(t, string(outcome), s.LastAttempt.Outcome)
		})
	}
}

func TestLastBackupNeverMovesBack(t *testing.T) {
	s := begun(hourly)
	s.LastBackup = at(time.Hour)
	s.end(contract.Result{Outcome: contract.Succeeded}, noon)
	require.Equal(t, at(time.Hour), s.LastBackup)
}

func TestHistoryIsBoundedAndNewestFirst(t *testing.T) {
	s := begun(hourly)
	for i := range 3 * HistoryLimit {
		s.begin(schedule.Slot{ID: strings.Repeat("x", i+1), Kind: schedule.Scheduled, Time: noon}, noon)
		s.end(contract.Result{Outcome: contract.Failed}, noon)
	}
	require.Len(t, s.History, HistoryLimit)
	require.Len(t, s.History[0].Slot, 3*HistoryLimit)
	require.Equal(t, int32(3*HistoryLimit), s.ConsecutiveFailures)
}

func TestEveryEndServesWhatAskedForTheRun(t *testing.T) {
	manual := schedule.Slot{ID: "m", Kind: schedule.Manual, Token: "now", Time: noon}
	create := schedule.Slot{ID: "c", Kind: schedule.Create, Time: noon}
	for name, test := range map[string]struct {
		slot    schedule.Slot
		trigger string
		last    *metav1.Time
	}{
		"a scheduled one its slot": {hourly, "old", at(-time.Minute)},
		"a manual one its trigger": {manual, "now", nil},
		"a first one nothing more": {create, "old", nil},
	} {
		for _, outcome := range []contract.Outcome{contract.Succeeded, contract.Empty, contract.Partial, contract.Failed} {
			s := begun(test.slot)
			s.HandledTrigger = "old"
			s.end(contract.Result{Outcome: outcome}, noon)
			require.Equal(t, test.trigger, s.HandledTrigger, name)
			require.Empty(t, cmp.Diff(test.last, s.Planning.LastSlot), name)
			require.Nil(t, s.Current, name)
		}
	}
}

func TestTheRepositoryIsLearnedOnceAndOnlyFromWhatWasCommitted(t *testing.T) {
	news := contract.Result{Outcome: contract.Succeeded, RepositoryID: "new", KeyFingerprint: "newkey"}
	failure := news
	failure.Outcome = contract.Failed
	known := &Repository{URL: "u", ID: "old", KeyFingerprint: "oldkey"}
	for name, test := range map[string]struct {
		have   *Repository
		result contract.Result
		want   *Repository
	}{
		"news":              {&Repository{URL: "u"}, news, &Repository{URL: "u", ID: "new", KeyFingerprint: "newkey"}},
		"known already":     {known, news, known},
		"a failure":         {&Repository{URL: "u"}, failure, &Repository{URL: "u"}},
		"nothing told":      {&Repository{URL: "u"}, contract.Result{Outcome: contract.Succeeded}, &Repository{URL: "u"}},
		"no repository yet": {nil, news, nil},
	} {
		s := &Status{Repository: test.have.DeepCopy()}
		s.learn(test.result)
		require.Empty(t, cmp.Diff(test.want, s.Repository), name)
	}
}

func TestSkippedSlotsAreCountedAndPassedOver(t *testing.T) {
	s := &Status{Planning: &Planning{}, SkippedSlots: 2}
	s.skip(schedule.Plan{})
	require.Empty(t, cmp.Diff(&Status{Planning: &Planning{}, SkippedSlots: 2}, s))
	s.skip(schedule.Plan{Skipped: 3, NewestSkipped: noon})
	require.Empty(t, cmp.Diff(&Status{Planning: &Planning{LastSlot: at(0)}, SkippedSlots: 5}, s))
}

func TestPlanningMovesSinceOnlyWithTheFingerprint(t *testing.T) {
	s := &Status{}
	s.mark("a", noon.Add(-time.Hour), noon)
	require.Empty(t, cmp.Diff(&Planning{Fingerprint: "a", Since: *at(-time.Hour)}, s.Planning), "a new one counts since its creation")
	s.Planning.LastSlot = at(-time.Minute)
	s.mark("a", noon.Add(-time.Hour), noon.Add(time.Minute))
	require.Equal(t, *at(-time.Hour), s.Planning.Since)
	s.mark("b", noon.Add(-time.Hour), noon.Add(time.Minute))
	require.Empty(t, cmp.Diff(&Planning{Fingerprint: "b", Since: *at(time.Minute), LastSlot: at(-time.Minute)}, s.Planning))
}

func TestAFailedSlotIsKnownUntilHistoryForgetsIt(t *testing.T) {
	s := &Status{History: []Attempt{{Slot: "good", Outcome: "Succeeded"}, {Slot: "bad", Outcome: "Failed"}, {Slot: "half", Outcome: "Partial"}}}
	for slot, want := range map[string]bool{"good": false, "bad": true, "half": true, "unknown": false} {
		require.Equal(t, want, s.failedSlot(slot), slot)
	}
}

func TestLimitNeverCutsACharacter(t *testing.T) {
	require.Equal(t, "short", limit("short", 5))
	for n := range 10 {
		cut := limit("aäöü€", n)
		require.True(t, utf8.ValidString(cut))
		require.LessOrEqual(t, len(cut), n)
	}
}

func TestATriggerOfAnyLengthAndScriptIsServedOnce(t *testing.T) {
	obj := &thing{}
	obj.Annotations = map[string]string{AnnotationTrigger: "x" + strings.Repeat("ü", triggerLimit)}
	token := triggerOf(obj)
	require.True(t, utf8.ValidString(token), "or JSON would change it, and it would never be found served")
	require.LessOrEqual(t, len(token), triggerLimit)
}

func TestTheReasonOfAResultFitsAConditionAndAnEvent(t *testing.T) {
	for reason, want := range map[string]string{
		"StoreDenied": "StoreDenied", "": "Failed", "not a reason!": "Notareason", "!!": "Terminal",
	} {
		require.Equal(t, want, resultReason(contract.Result{Outcome: contract.Failed, Reason: reason}), reason)
	}
}
