package schedule

import (
	"iter"
	"time"
)

// The years for which a schedule has slots.
var (
	firstInstant = time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC)
	lastInstant  = time.Date(9999, 12, 1, 0, 0, 0, 0, time.UTC)
)

// A Schedule is a compiled [Spec]. It is immutable. All times that it returns are in UTC, at whole seconds. The zero
// Schedule, and nil, have no slots.
type Schedule struct {
	cal calendar
	loc *time.Location
	// everyHour is set when the hour is left open: the schedule then follows the clock through a change of offset
	// instead of making up for what the clock skips and leaving out what it repeats.
	everyHour bool
}

// never says that nothing was compiled into the schedule.
func (s *Schedule) never() bool { return s == nil || s.loc == nil }

// Location returns the time zone; UTC for the zero Schedule.
func (s *Schedule) Location() *time.Location {
	if s.never() {
		return time.UTC
	}
	return s.loc
}

// Next returns the first slot after the given time. It is false only at the end of the year 9999.
func (s *Schedule) Next(after time.Time) (time.Time, bool) {
	if s.never() {
		return time.Time{}, false
	}
	at := seconds(after)
	var slot int64
	var ok bool
	if s.everyHour {
		slot, ok = s.nextShown(at)
	} else {
		var wall int64
		high, here := highWater(s.loc, at)
		if wall, ok = s.cal.next(high); ok {
			slot = reach(s.loc, wall, at, here)
		}
	}
	if !ok || slot > lastInstant.Unix() {
		return time.Time{}, false
	}
	return time.Unix(slot, 0).UTC(), true
}

// Latest returns the newest slot after since, and at or before now. It is false if there is none.
func (s *Schedule) Latest(since, now time.Time) (time.Time, bool) {
	if s.never() {
		return time.Time{}, false
	}
	from, at := seconds(since), seconds(now)
	var slot int64
	var ok bool
	if s.everyHour {
		slot, ok = s.prevShown(at, from)
	} else {
		var wall int64
		high, here := highWater(s.loc, at)
		if wall, ok = s.cal.prev(high); ok {
			slot = reach(s.loc, wall, wall-maxOffset, here)
		}
	}
	if !ok || slot <= from {
		return time.Time{}, false
	}
	return time.Unix(slot, 0).UTC(), true
}

// Count returns how many slots lie after since, and at or before now. It takes no longer if they are many.
func (s *Schedule) Count(since, now time.Time) int {
	from, to := seconds(since), seconds(now)
	if to <= from || s.never() {
		return 0
	}
	if s.everyHour {
		return s.countShown(from, to)
	}
	high, here := highWater(s.loc, from)
	n := 0
	for {
		if top := min(to, here.end-1) + here.offset; top > high {
			n += s.cal.count(high, top)
			high = top
		}
		if here.end > to {
			return n
		}
		here = spanAt(s.loc, here.end)
		// All that the clock jumps over falls on one instant.
		if jump := here.start + here.offset; jump > high {
			n += min(1, s.cal.count(high, jump))
			high = jump
		}
	}
}

// Slots yields the slots after since, and at or before now, oldest first.
func (s *Schedule) Slots(since, now time.Time) iter.Seq[time.Time] {
	return func(yield func(time.Time) bool) {
		for slot, ok := s.Next(since); ok && !slot.After(now); slot, ok = s.Next(slot) {
			if !yield(slot) {
				return
			}
		}
	}
}

// Interval returns the distance between the next two slots after now, or 0 at the end of the year 9999.
func (s *Schedule) Interval(now time.Time) time.Duration {
	slot, ok := s.Next(now)
	if !ok {
		return 0
	}
	return s.gapAfter(slot)
}

// LongestGap returns the longer of two distances: that of the slots around now, and that of the pair before. While the
// run of the newest slot is still in flight, the newest result stems from the slot before it; so a result is older
// than LongestGap plus the time that a run may take only if a run is overdue. For weekday schedules, for example, it
// includes the weekend on Monday. To ask about the slot instead of the age, use Latest(time.Time{}, now minus the time
// that a run may take): the newest slot that must have succeeded by now.
func (s *Schedule) LongestGap(now time.Time) time.Duration {
	newest, ok := s.Latest(time.Time{}, now)
	if !ok {
		return s.Interval(now)
	}
	gap := s.gapAfter(newest)
	if older, ok := s.Latest(time.Time{}, newest.Add(-time.Second)); ok {
		gap = max(gap, newest.Sub(older))
	}
	return gap
}

// gapAfter returns the distance from a slot to its successor, 0 if there is none.
func (s *Schedule) gapAfter(slot time.Time) time.Duration {
	next, ok := s.Next(slot)
	if !ok {
		return 0
	}
	return next.Sub(slot)
}

// nextShown returns the first instant after the given one at which the wall clock shows a match.
func (s *Schedule) nextShown(at int64) (int64, bool) {
	here := spanAt(s.loc, at)
	for wall := at + here.offset; ; wall = here.start + here.offset - 1 {
		match, ok := s.cal.next(wall)
		if !ok {
			return 0, false
		}
		if slot := match - here.offset; slot < here.end {
			return slot, true
		}
		here = spanAt(s.loc, here.end)
	}
}

// prevShown returns the last instant at or before the given one, and after since, at which the wall clock shows a match.
func (s *Schedule) prevShown(at, since int64) (int64, bool) {
	here := spanAt(s.loc, at)
	for wall := at + here.offset; ; wall = here.end - 1 + here.offset {
		match, ok := s.cal.prev(wall)
		if !ok {
			return 0, false
		}
		if slot := match - here.offset; slot >= here.start {
			return slot, true
		}
		if here.start <= since {
			return 0, false
		}
		here = spanAt(s.loc, here.start-1)
	}
}

func (s *Schedule) countShown(from, to int64) int {
	n := 0
	for here := spanAt(s.loc, from); ; here = spanAt(s.loc, here.end) {
		n += s.cal.count(max(from, here.start-1)+here.offset, min(to, here.end-1)+here.offset)
		if here.end > to {
			return n
		}
	}
}

// seconds rounds down to Unix seconds within the years that have slots.
func seconds(t time.Time) int64 {
	switch {
	case t.Before(firstInstant):
		return firstInstant.Unix()
	case t.After(lastInstant):
		return lastInstant.Unix()
	}
	return t.Unix()
}
