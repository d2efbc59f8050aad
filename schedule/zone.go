package schedule

import "time"

const (
	day = int64(24 * 60 * 60)
	// maxOffset is more than any zone was ever away from UTC (15:56 hours).
	maxOffset = day
	// maxStepBack is more than any clock was ever set back (a day, at the date line).
	maxStepBack = 2 * day
	forever     = int64(1) << 55
)

// A span is the time between two changes of a zone's offset. Instants are Unix seconds.
type span struct {
	start, end int64 // end is not part of it
	offset     int64 // wall clock = instant + offset
}

func spanAt(loc *time.Location, at int64) span {
	if loc == time.UTC {
		return span{start: -forever, end: forever}
	}
	t := time.Unix(at, 0).In(loc)
	_, offset := t.Zone()
	start, end := t.ZoneBounds()
	s := span{start: -forever, end: forever, offset: int64(offset)}
	if !start.IsZero() {
		s.start = start.Unix()
	}
	if !end.IsZero() {
		s.end = end.Unix()
	}
	if s.end <= at {
		// After the last change of a year ZoneBounds returns the end of the year, and takes every year to have 365 days.
		s.end = time.Date(t.UTC().Year()+1, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	}
	return s
}

// highWater returns the latest time that the wall clock has shown up to the instant, and the span of the instant.
// The two differ from a plain reading while an hour is repeated.
func highWater(loc *time.Location, at int64) (int64, span) {
	now := spanAt(loc, at)
	high := at + now.offset
	for s := now; s.start > at-maxStepBack; {
		before := spanAt(loc, s.start-1)
		high = max(high, s.start-1+before.offset)
		s = before
	}
	return high, now
}

// reach returns the instant at which the wall clock first shows the time or jumps over it. That cannot be before
// the instant from, which lies in the span s.
func reach(loc *time.Location, wall, from int64, s span) int64 {
	if from = max(from, wall-maxOffset); from < s.start || from >= s.end {
		s = spanAt(loc, from)
	}
	for {
		if at := max(s.start, wall-s.offset); at < s.end {
			return at
		}
		s = spanAt(loc, s.end)
	}
}
