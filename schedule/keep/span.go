package keep

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// maxSpanPart keeps calendar arithmetic in range.
const maxSpanPart = 100_000

// A Span is a stretch of calendar time, written as 1y5m7d2h. The zero Span is none. Numbers beyond what ParseSpan takes,
// and below zero, count as the nearest that it does.
type Span struct {
	Years, Months, Days, Hours int
}

// ParseSpan reads numbers followed by y, m (months), d or h, each at most once and in this order: 1y5m7d2h. Parts may be
// left out, but not all of them. Numbers go up to 100000.
func ParseSpan(text string) (Span, error) {
	var s Span
	rest := text
	for _, part := range []struct {
		unit   byte
		number *int
	}{{'y', &s.Years}, {'m', &s.Months}, {'d', &s.Days}, {'h', &s.Hours}} {
		digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
		if digits == 0 || digits == len(rest) || rest[digits] != part.unit {
			continue
		}
		n, err := strconv.Atoi(rest[:digits])
		if err != nil || n > maxSpanPart {
			return Span{}, fmt.Errorf("span %.40q: a number is greater than %d", text, maxSpanPart)
		}
		*part.number, rest = n, rest[digits+1:]
	}
	if text == "" || rest != "" {
		return Span{}, fmt.Errorf("span %.40q is not of the form 1y5m7d2h (years, months, days, hours, in this order)", text)
	}
	return s, nil
}

// IsZero says whether the span is none.
func (s Span) IsZero() bool { return s == Span{} }

// String writes what ParseSpan reads, without parts that are 0; the zero Span is 0h.
func (s Span) String() string {
	var b strings.Builder
	for _, part := range []struct {
		unit   byte
		number int
	}{{'y', s.Years}, {'m', s.Months}, {'d', s.Days}, {'h', s.Hours}} {
		if part.number != 0 {
			b.WriteString(strconv.Itoa(part.number))
			b.WriteByte(part.unit)
		}
	}
	if b.Len() == 0 {
		return "0h"
	}
	return b.String()
}

// MarshalText is String.
func (s Span) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText is ParseSpan; an empty text is the zero Span.
func (s *Span) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*s = Span{}
		return nil
	}
	parsed, err := ParseSpan(string(text))
	if err != nil {
		return err
	}
	*s = parsed
	return nil
}

// Before returns the time that lies the span before t, by the calendar of t's location. A day of the month that does
// not exist becomes the last one of that month.
func (s Span) Before(t time.Time) time.Time {
	for _, number := range []*int{&s.Years, &s.Months, &s.Days, &s.Hours} {
		*number = min(max(*number, 0), maxSpanPart)
	}
	year, month, day := t.Date()
	first := time.Date(year-s.Years, month-time.Month(s.Months), 1, 0, 0, 0, 0, time.UTC)
	last := first.AddDate(0, 1, -1).Day()
	hour, minute, second := t.Clock()
	moved := time.Date(first.Year(), first.Month(), min(day, last)-s.Days, hour, minute, second, t.Nanosecond(), t.Location())
	return moved.Add(-time.Duration(s.Hours) * time.Hour)
}
