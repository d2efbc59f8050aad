package schedule

import (
	"math/bits"
	"time"
)

// A calendar matches wall-clock minutes and knows no zone. A wall-clock time is counted in seconds as if it were UTC.
type calendar struct {
	minutes uint64
	hours   uint32
	days    uint32 // bit d for day d of the month
	months  uint16 // bit m for month m
	either  bool   // both day fields are restricted: one of them is enough
	// weekdays holds the days of the month that match the day of week, by the weekday of the month's first.
	weekdays [7]uint32
}

// searchMonths covers the longest distance between two matches: leap days around a year such as 2100.
const searchMonths = 9 * 12

const allDays = ^uint32(1)

func newCalendar(fields []string, seed string) (calendar, error) {
	var set [5]uint64
	for i := range set {
		var err error
		if set[i], err = parseField(i, fields[i], seed); err != nil {
			return calendar{}, err
		}
	}
	c := calendar{
		minutes: set[0] &^ starBit,
		hours:   uint32(set[1] &^ starBit),
		days:    uint32(set[2] &^ starBit),
		months:  uint16(set[3] &^ starBit),
		either:  (set[2]|set[4])&starBit == 0,
	}
	for first := range c.weekdays {
		for day := 1; day <= 31; day++ {
			if set[4]&(1<<((first+day-1)%7)) != 0 {
				c.weekdays[first] |= 1 << day
			}
		}
	}
	return c, nil
}

// fires is false for a calendar such as February 30.
func (c *calendar) fires() bool {
	for month := time.January; month <= time.December; month++ {
		if c.months&(1<<month) == 0 {
			continue
		}
		possible := c.days
		if c.either {
			possible = allDays
		}
		if possible&daysUpTo(daysIn(2024, month)) != 0 {
			return true
		}
	}
	return false
}

// next returns the first match after wall.
func (c *calendar) next(wall int64) (int64, bool) {
	at := momentOf(floorMinute(wall) + 60)
	if at.dayMask(c)&(1<<at.day) != 0 {
		if m := c.minutes >> at.minute; m != 0 && c.hours&(1<<at.hour) != 0 {
			return at.wall(at.day, at.hour, at.minute+bits.TrailingZeros64(m)), true
		}
		if h := c.hours >> (at.hour + 1); h != 0 {
			return at.wall(at.day, at.hour+1+bits.TrailingZeros32(h), bits.TrailingZeros64(c.minutes)), true
		}
	}
	later := ^daysUpTo(at.day)
	for range searchMonths {
		if mask := at.dayMask(c) & later; mask != 0 {
			return at.wall(bits.TrailingZeros32(mask), bits.TrailingZeros32(c.hours), bits.TrailingZeros64(c.minutes)), true
		}
		at.nextMonth()
		later = allDays
	}
	return 0, false
}

// prev returns the last match at or before wall.
func (c *calendar) prev(wall int64) (int64, bool) {
	at := momentOf(wall)
	if at.dayMask(c)&(1<<at.day) != 0 {
		if m := c.minutes << (63 - at.minute); m != 0 && c.hours&(1<<at.hour) != 0 {
			return at.wall(at.day, at.hour, at.minute-bits.LeadingZeros64(m)), true
		}
		if h := c.hours & (1<<at.hour - 1); h != 0 {
			return at.wall(at.day, bits.Len32(h)-1, bits.Len64(c.minutes)-1), true
		}
	}
	earlier := daysUpTo(at.day - 1)
	for range searchMonths {
		if mask := at.dayMask(c) & earlier; mask != 0 {
			return at.wall(bits.Len32(mask)-1, bits.Len32(c.hours)-1, bits.Len64(c.minutes)-1), true
		}
		at.prevMonth()
		earlier = allDays
	}
	return 0, false
}

// count returns how many matches lie after from, and at or before to.
func (c *calendar) count(from, to int64) int {
	if to <= from {
		return 0
	}
	perDay := bits.OnesCount32(c.hours) * bits.OnesCount64(c.minutes)
	at, end := momentOf(from), momentOf(to)
	n := -c.countInMonth(at, perDay)
	for at.year != end.year || at.month != end.month {
		n += bits.OnesCount32(at.dayMask(c)) * perDay
		at.nextMonth()
	}
	return n + c.countInMonth(end, perDay)
}

// countInMonth counts from the start of the month up to and including the minute.
func (c *calendar) countInMonth(at moment, perDay int) int {
	mask := at.dayMask(c)
	n := bits.OnesCount32(mask&daysUpTo(at.day-1)) * perDay
	if mask&(1<<at.day) == 0 {
		return n
	}
	n += bits.OnesCount32(c.hours&(1<<at.hour-1)) * bits.OnesCount64(c.minutes)
	if c.hours&(1<<at.hour) != 0 {
		n += bits.OnesCount64(c.minutes & (1<<(at.minute+1) - 1))
	}
	return n
}

// A moment is a wall-clock minute taken apart.
type moment struct {
	year, day, hour, minute int
	month                   time.Month
	first                   int // the weekday of the month's first, Sunday = 0
}

func momentOf(wall int64) moment {
	t := time.Unix(wall, 0).UTC()
	year, month, day := t.Date()
	hour, minute, _ := t.Clock()
	return moment{year: year, month: month, day: day, hour: hour, minute: minute, first: (int(t.Weekday()) + 36 - day) % 7}
}

func (m *moment) wall(day, hour, minute int) int64 {
	return time.Date(m.year, m.month, day, hour, minute, 0, 0, time.UTC).Unix()
}

// dayMask returns the days of the month that match.
func (m *moment) dayMask(c *calendar) uint32 {
	if c.months&(1<<m.month) == 0 {
		return 0
	}
	mask := c.days & c.weekdays[m.first]
	if c.either {
		mask = c.days | c.weekdays[m.first]
	}
	return mask & daysUpTo(daysIn(m.year, m.month))
}

func (m *moment) nextMonth() {
	m.first = (m.first + daysIn(m.year, m.month)) % 7
	if m.month++; m.month > time.December {
		m.year, m.month = m.year+1, time.January
	}
}

func (m *moment) prevMonth() {
	if m.month--; m.month < time.January {
		m.year, m.month = m.year-1, time.December
	}
	m.first = (m.first + 35 - daysIn(m.year, m.month)) % 7
}

// daysUpTo has bits 1 to day set.
func daysUpTo(day int) uint32 { return uint32(1<<(day+1) - 2) }

func daysIn(year int, month time.Month) int {
	switch month {
	case time.February:
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			return 29
		}
		return 28
	case time.April, time.June, time.September, time.November:
		return 30
	}
	return 31
}

func floorMinute(wall int64) int64 {
	rest := wall % 60
	if rest < 0 {
		rest += 60
	}
	return wall - rest
}
