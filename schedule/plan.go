package schedule

import "time"

const (
	// maxDefaultDeadline bounds the starting deadline that nobody set.
	maxDefaultDeadline = time.Hour
	// minDeadline keeps a schedule alive whose deadline is shorter than it takes to be looked at.
	minDeadline = 10 * time.Second
	// maxSkew is how far in the future a remembered time may lie before it is taken for the work of a wrong clock.
	maxSkew = time.Hour
)

// State is what has happened so far. See the package's documentation for what of it must be kept.
type State struct {
	// Created is when the object was created. Slots up to then never fire.
	Created time.Time
	// Since is when the schedule was last edited or resumed, usually from a [Mark]. Slots up to then never fire.
	Since time.Time
	// LastSlot is the newest slot that was run, whatever came of it, or recorded as skipped. Set it to the slot of the
	// run even if that is earlier than what it was: only so does a schedule recover from a clock that was far ahead.
	LastSlot time.Time
	// Ran says that a run of any kind was started before.
	Ran bool
	// Running is the run in flight, the newest if there are several, or zero. Retries of a failed run are part of it.
	Running Slot
	// Trigger is the token that a person has set to ask for a run, or empty.
	Trigger string
	// HandledTrigger is the token of the manual run that was started last. Write it once that run exists, and at the
	// latest together with its end; take it from the run, since Trigger may have changed meanwhile.
	HandledTrigger string
}

// Overlap says what happens to a slot that comes while a run is in flight.
type Overlap string

// The ways to treat overlapping runs. The empty Overlap is Forbid, and so is any other text.
const (
	// Forbid waits for the run in flight, then runs the newest slot if its starting deadline has not passed.
	Forbid Overlap = "Forbid"
	// Replace ends the run in flight in favour of the slot, unless a person asked for that run.
	Replace Overlap = "Replace"
	// Allow starts another run beside it.
	Allow Overlap = "Allow"
)

// Policy is what is wanted beyond the slots.
type Policy struct {
	// Suspend starts nothing but what a trigger asks for.
	Suspend bool
	// RunOnCreate starts the first run at once, if nothing has ever run.
	RunOnCreate bool
	// StartingDeadline is how late a run may start. Zero or less means half the distance to the next slot, at most an
	// hour. Less than 10 s counts as 10 s.
	StartingDeadline time.Duration
	// Jitter delays each run by a part of this that depends on seed and slot, and of half the distance to the next slot
	// if that is less. The starting deadline counts from there.
	Jitter time.Duration
	// Overlap defaults to Forbid.
	Overlap Overlap
	// Seed identifies the object, as in [Spec.Compile].
	Seed string
}

// Plan is what to do now.
type Plan struct {
	// Run is the run to start now, or zero.
	Run Slot
	// Replace says that the run in flight must end first.
	Replace bool
	// Look is when the plan may change without anything else happening. It is greater than 0, unless nothing is to come:
	// while suspended, and at the end of the year 9999.
	Look time.Duration
	// Next is when the next run will start by the schedule, after Run if there is one. It is zero if nothing is to come.
	Next time.Time
	// Skipped is how many slots since the last one will never run: a newer one took over, or the deadline has passed. To
	// count each of them once, add Skipped to a total and set State.LastSlot to NewestSkipped in the same write; when
	// Run is a scheduled run, its slot is the newer of the two.
	Skipped int
	// NewestSkipped is the newest of them, or zero.
	NewestSkipped time.Time
}

// Plan decides what to start now. The order is: what a person asked for, the newest slot that is due, the first run of a
// new object. A trigger is served while suspended too, since a person has asked; it waits for a run in flight under any
// Overlap. Of several slots that were missed, only the newest may still run, and only within its starting deadline.
func (s *Schedule) Plan(st State, p Policy, now time.Time) Plan {
	var plan Plan
	due := false
	var slot time.Time
	if !p.Suspend {
		slot, due = s.planSlots(&plan, st, p, now)
	}
	idle := st.Running.IsZero()
	switch {
	case idle && st.Trigger != "" && st.Trigger != st.HandledTrigger:
		plan.Run = Slot{Time: now.UTC().Truncate(time.Second), Kind: Manual, ID: manualID(st.HandledTrigger, st.Trigger), Token: st.Trigger}
	case due && p.admits(st.Running):
		plan.Run = Slot{Time: slot, Kind: Scheduled, ID: SlotID(slot)}
		plan.Replace = !idle && p.Overlap == Replace
	case idle && p.RunOnCreate && !p.Suspend && !st.Ran && !st.Created.IsZero():
		plan.Run = Slot{Time: st.Created.UTC(), Kind: Create, ID: SlotID(st.Created)}
	}
	return plan
}

// planSlots fills in everything but the run, and returns the slot that is due.
func (s *Schedule) planSlots(plan *Plan, st State, p Policy, now time.Time) (slot time.Time, due bool) {
	from := st.from(now)
	slot, found := s.Latest(from, now)
	var start, end time.Time
	if found {
		start, end = s.window(slot, p)
		due = !now.Before(start) && !now.After(end)
		plan.skip(s, from, slot, now.After(end))
	}
	if !found || !now.Before(start) {
		start = time.Time{}
		if next, ok := s.Next(later(from, now)); ok {
			start, _ = s.window(next, p)
		}
	}
	if !start.IsZero() {
		plan.Next, plan.Look = start, start.Sub(now)
	}
	return slot, due
}

// skip counts the slots before the newest, and the newest itself if it is too late for that one.
func (plan *Plan) skip(s *Schedule, from, newest time.Time, tooLate bool) {
	if from.IsZero() {
		return // it is not known since when they count
	}
	if !tooLate {
		var ok bool
		if newest, ok = s.Latest(from, newest.Add(-time.Second)); !ok {
			return
		}
	}
	plan.NewestSkipped, plan.Skipped = newest, s.Count(from, newest)
}

// window returns when the run of a slot starts at the earliest and at the latest.
func (s *Schedule) window(slot time.Time, p Policy) (start, end time.Time) {
	deadline := max(p.StartingDeadline, minDeadline)
	if p.Jitter <= 0 && p.StartingDeadline > 0 {
		return slot, slot.Add(deadline)
	}
	half := s.gapAfter(slot) / 2
	if p.StartingDeadline <= 0 {
		deadline = max(min(half, maxDefaultDeadline), minDeadline)
	}
	start = slot.Add(Jitter(p.Seed, min(p.Jitter, half), slot))
	return start, start.Add(deadline)
}

// admits says whether a slot may start beside the run in flight, or in its place.
func (p Policy) admits(running Slot) bool {
	switch {
	case running.IsZero(), p.Overlap == Allow:
		return true
	case p.Overlap == Replace:
		return running.Kind != Manual
	}
	return false
}

// from returns the time up to which slots are settled. Times far in the future are ignored: a clock that was wrong once
// must not end a schedule.
func (st State) from(now time.Time) time.Time {
	var from time.Time
	limit := now.Add(maxSkew)
	consider := func(t time.Time) {
		if !t.After(limit) {
			from = later(from, t)
		}
	}
	consider(st.Created)
	consider(st.Since)
	consider(st.LastSlot)
	if st.Running.Kind == Scheduled {
		consider(st.Running.Time)
	}
	return from
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
