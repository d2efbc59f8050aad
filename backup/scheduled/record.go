package scheduled

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/pvcbackup/backup"
	"example.com/pvcbackup/backup/contract"
	"example.com/pvcbackup/schedule"
)

// This file holds every change of Status that a run causes. All of it is pure.

// begin records that a run was decided on.
func (s *Status) begin(slot schedule.Slot, now time.Time) {
	s.Current = &Current{
		Slot: slot.ID, Kind: kindText(slot.Kind), Time: metav1.NewTime(slot.Time), Started: metav1.NewTime(now), Trigger: slot.Token,
	}
}

// observe records how far the run in flight is.
func (s *Status) observe(p backup.Progress) {
	s.Current.Stage = string(p.Stage)
	s.Current.Attempt = int32(p.Attempt)
	s.Current.Progress = ProgressOf(p.Mover.Progress)
}

// ProgressOf returns a mover's progress as a status shows it; nil for nil.
func ProgressOf(p *contract.Progress) *Progress {
	if p == nil {
		return nil
	}
	return &Progress{Bytes: p.Bytes, TotalBytes: p.TotalBytes, Files: p.Files, BytesPerSecond: p.Rate, ETASeconds: p.ETA}
}

// end records that the run in flight ended with this result.
func (s *Status) end(r contract.Result, now time.Time) {
	run := s.Current
	s.Current = nil
	attempt := Attempt{
		Slot: run.Slot, Kind: run.Kind, Started: run.Started, Finished: metav1.NewTime(now), Movers: run.Attempt,
		Outcome: string(r.Outcome), Reason: r.Reason, Message: limit(r.Message, messageLimit), SnapshotID: r.SnapshotID,
	}
	s.LastAttempt = &attempt
	s.History = append([]Attempt{attempt}, s.History...)
	s.History = s.History[:min(len(s.History), HistoryLimit)]
	s.settleSlot(run)
	s.learn(r)
	switch r.Outcome {
	case contract.Succeeded:
		s.ConsecutiveFailures = 0
		s.succeed(run, r, now)
	case contract.Empty:
		s.ConsecutiveFailures = 0
	default:
		s.ConsecutiveFailures++
	}
}

// settleSlot records that the run's slot, or its trigger, is served, whatever came of it.
func (s *Status) settleSlot(run *Current) {
	switch run.kind() {
	case schedule.Manual:
		s.HandledTrigger = run.Trigger
	case schedule.Scheduled:
		s.Planning.LastSlot = &run.Time
	}
}

func (s *Status) succeed(run *Current, r contract.Result, now time.Time) {
	success := &Success{
		Slot: run.Slot, SnapshotID: r.SnapshotID, Bytes: r.Bytes, Files: r.Files, Added: r.Added,
		Duration: metav1.Duration{Duration: now.Sub(run.Started.Time).Round(time.Second)},
	}
	if !r.SnapshotTime.IsZero() {
		success.Time = &metav1.Time{Time: r.SnapshotTime}
	}
	s.LastSuccess = success
	if s.LastBackup == nil || now.After(s.LastBackup.Time) {
		s.LastBackup = &metav1.Time{Time: now}
	}
}

// learn records what a result tells about the repository, once something was committed to it. What is known already is not changed: a repository that
// turns out to be another one is a failure, not news.
func (s *Status) learn(r contract.Result) {
	if s.Repository == nil || r.Outcome == contract.Failed || r.RepositoryID == "" || s.Repository.ID != "" {
		return
	}
	s.Repository.ID = r.RepositoryID
	s.Repository.KeyFingerprint = r.KeyFingerprint
}

// skip records slots that passed without a run.
func (s *Status) skip(plan schedule.Plan) {
	if plan.Skipped == 0 {
		return
	}
	s.SkippedSlots += int64(plan.Skipped)
	s.Planning.LastSlot = &metav1.Time{Time: plan.NewestSkipped}
}

// state is what the next run is planned from.
func (s *Status) state(obj Object) schedule.State {
	st := schedule.State{
		Created:        obj.GetCreationTimestamp().Time,
		Ran:            s.LastAttempt != nil,
		Trigger:        triggerOf(obj),
		HandledTrigger: s.HandledTrigger,
	}
	if s.Planning != nil {
		st.Since = s.Planning.Since.Time
		if s.Planning.LastSlot != nil {
			st.LastSlot = s.Planning.LastSlot.Time
		}
	}
	if s.Current != nil {
		st.Running = s.Current.slot()
	}
	return st
}

// mark moves the time before which no slot fires when the schedule was edited or resumed.
func (s *Status) mark(fingerprint string, created, now time.Time) {
	var old schedule.Mark
	if s.Planning != nil {
		old = schedule.Mark{Fingerprint: s.Planning.Fingerprint, Since: s.Planning.Since.Time}
	}
	mark := old.Update(fingerprint, created, now)
	if mark == old && s.Planning != nil {
		return
	}
	if s.Planning == nil {
		s.Planning = &Planning{}
	}
	s.Planning.Fingerprint, s.Planning.Since = mark.Fingerprint, metav1.NewTime(mark.Since)
}

func (c *Current) slot() schedule.Slot {
	return schedule.Slot{Time: c.Time.Time, Kind: c.kind(), ID: c.Slot, Token: c.Trigger}
}

var kindTexts = map[schedule.Kind]string{schedule.Scheduled: "Scheduled", schedule.Create: "Create", schedule.Manual: "Manual"}

func kindText(kind schedule.Kind) string { return kindTexts[kind] }

func (c *Current) kind() schedule.Kind {
	for kind, text := range kindTexts {
		if text == c.Kind {
			return kind
		}
	}
	return schedule.Scheduled
}

// failedSlot reports whether a slot is known to have ended without a good backup.
func (s *Status) failedSlot(slot string) bool {
	for _, attempt := range s.History {
		if attempt.Slot == slot {
			return attempt.Outcome != string(contract.Succeeded)
		}
	}
	return false
}

const messageLimit = 1024

func limit(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && text[n]&0xC0 == 0x80 {
		n--
	}
	return text[:n]
}
