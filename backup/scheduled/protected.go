package scheduled

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/pvcbackup/backup/contract"
	"example.com/pvcbackup/schedule"
)

// Reasons of the condition Ready.
const (
	ReasonProtected   = "Protected"
	ReasonNoBackupYet = "NoBackupYet"
	ReasonOverdue     = "Overdue"
	ReasonSuspended   = "Suspended"
	ReasonVolumeEmpty = "VolumeEmpty"
)

// protected derives Ready: the newest good backup is no older than the schedule allows. It returns when that changes by
// itself, or zero. A run in flight has no part in it.
func (s *Status) protected(compiled *schedule.Schedule, policy schedule.Policy, now time.Time) (metav1.Condition, time.Time) {
	if s.LastBackup == nil {
		return s.neverProtected(), time.Time{}
	}
	last := s.LastBackup.Time
	until := last.Add(s.allowed(compiled, policy, last))
	if now.Before(until) {
		return ready(metav1.ConditionTrue, ReasonProtected, "the newest good backup is as fresh as the schedule asks"), until
	}
	reason, hint := ReasonOverdue, "see lastAttempt"
	if policy.Suspend {
		reason, hint = ReasonSuspended, "set suspend to false to go on"
	}
	return ready(metav1.ConditionFalse, reason, fmt.Sprintf("the newest good backup is of %s, which is older than the schedule allows: %s",
		last.UTC().Format(time.RFC3339), hint)), time.Time{}
}

func (s *Status) neverProtected() metav1.Condition {
	if s.LastAttempt != nil && s.LastAttempt.Outcome == string(contract.Empty) {
		return ready(metav1.ConditionFalse, ReasonVolumeEmpty, "the volume held no files when it was backed up")
	}
	return ready(metav1.ConditionFalse, ReasonNoBackupYet, "no backup was completed yet")
}

// allowed is how old a good backup may be: the longest gap between two slots, the starting deadline, the jitter, and
// the longest run that is remembered.
func (s *Status) allowed(compiled *schedule.Schedule, policy schedule.Policy, last time.Time) time.Duration {
	gap := compiled.LongestGap(last)
	deadline := policy.StartingDeadline
	if deadline <= 0 {
		deadline = min(gap/2, time.Hour)
	}
	var longest time.Duration
	for _, attempt := range s.History {
		longest = max(longest, attempt.Finished.Sub(attempt.Started.Time))
	}
	return gap + deadline + policy.Jitter + max(longest, minRun)
}

// minRun is the least that a run is given before its schedule counts as overdue.
const minRun = time.Minute

func ready(status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: ConditionReady, Status: status, Reason: reason, Message: message}
}

// phase sums the object up for people.
func (p *pass) phase() string {
	if !p.obj.GetDeletionTimestamp().IsZero() {
		return "Deleting"
	}
	return p.status.phase(p.spec.Suspend)
}

func (s *Status) phase(suspended bool) string {
	switch {
	case s.Current != nil && s.Current.Stage != "":
		return s.Current.Stage
	case s.Current != nil:
		return "Starting"
	case suspended:
		return "Suspended"
	case s.LastAttempt == nil:
		return "Waiting"
	case s.LastAttempt.Outcome != string(contract.Succeeded):
		return s.LastAttempt.Outcome
	}
	return "Idle"
}
