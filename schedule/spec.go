package schedule

import (
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // zones must not depend on the image that the program runs in
)

// maxCronLength is far above any sensible expression; it bounds the work that an expression can cause.
const maxCronLength = 1024

// Spec says when, as people write it.
type Spec struct {
	// Cron is five fields (minute, hour, day of month, month, day of week) or a macro such as @daily.
	Cron string
	// TimeZone is an IANA name such as Europe/Berlin. Empty means UTC.
	TimeZone string
	// HashMacros makes macros spread out by the seed: @daily becomes H H * * *, @midnight stays within the first three
	// hours of the day, and so on. Without it they fire at the full hour, at midnight, on Sunday or on the first.
	HashMacros bool
}

// SpecError says what is wrong with a [Spec]. Only an edit helps.
type SpecError struct {
	// Field is "schedule" or "timeZone".
	Field string
	// Value is what was given.
	Value string
	// Problem is what is wrong with it and what to write instead.
	Problem string
}

// Error is a sentence with field, value and problem.
func (e *SpecError) Error() string {
	return fmt.Sprintf("%s %.80q: %s", e.Field, e.Value, e.Problem)
}

// Terminal is true: trying again cannot help.
func (e *SpecError) Terminal() bool { return true }

// Reason is a condition reason.
func (e *SpecError) Reason() string { return "InvalidSchedule" }

// Compile checks the spec and makes it answer questions. The seed decides what H stands for; use something that
// identifies the object and never changes, such as its UID. The error is always a [*SpecError].
func (s Spec) Compile(seed string) (*Schedule, error) {
	loc, err := s.location()
	if err != nil {
		return nil, err
	}
	fields, err := s.fields()
	if err != nil {
		return nil, err
	}
	cal, err := newCalendar(fields, seed)
	if err != nil {
		return nil, s.problem("%s", err)
	}
	if !cal.fires() {
		return nil, s.problem("no such day ever comes; choose a day of the month that the month has")
	}
	return &Schedule{cal: cal, loc: loc, everyHour: cal.hours == 1<<24-1}, nil
}

func (s Spec) problem(format string, args ...any) error {
	return &SpecError{Field: "schedule", Value: s.Cron, Problem: fmt.Sprintf(format, args...)}
}

func (s Spec) location() (*time.Location, error) {
	fail := func(problem string) (*time.Location, error) {
		return nil, &SpecError{Field: "timeZone", Value: s.TimeZone, Problem: problem}
	}
	switch strings.ToLower(s.TimeZone) {
	case "", "utc":
		return time.UTC, nil
	case "local", "localtime":
		return fail("depends on the machine; name a zone such as Europe/Berlin, or leave it empty for UTC")
	}
	loc, err := time.LoadLocation(s.TimeZone)
	if err != nil {
		return fail("is not a zone of the IANA database; write a name such as Europe/Berlin, or leave it empty for UTC")
	}
	return loc, nil
}

// fields returns the five fields, with a macro written out.
func (s Spec) fields() ([]string, error) {
	if len(s.Cron) > maxCronLength {
		return nil, s.problem("is longer than %d bytes", maxCronLength)
	}
	fields := strings.Fields(s.Cron)
	if len(fields) == 0 {
		return nil, s.problem("is empty; write five fields or a macro such as @daily")
	}
	first := fields[0]
	switch {
	case strings.HasPrefix(first, "TZ="), strings.HasPrefix(first, "CRON_TZ="):
		return nil, s.problem("names a time zone; set the field timeZone instead")
	case strings.HasPrefix(strings.ToLower(first), "@every"):
		return nil, s.problem("@every depends on when the program started; write fields such as */30 * * * * or 0 */6 * * *")
	case strings.HasPrefix(first, "@"):
		return s.macro(fields)
	case len(fields) == 6:
		return nil, s.problem("has 6 fields; write 5: minute, hour, day of month, month, day of week (no seconds, no year)")
	case len(fields) != 5:
		return nil, s.problem("has %d fields; write 5: minute, hour, day of month, month, day of week", len(fields))
	}
	return fields, nil
}

func (s Spec) macro(fields []string) ([]string, error) {
	plain, hashed := "", ""
	switch fields[0] {
	case "@hourly":
		plain, hashed = "0 * * * *", "H * * * *"
	case "@daily":
		plain, hashed = "0 0 * * *", "H H * * *"
	case "@midnight":
		plain, hashed = "0 0 * * *", "H H(0-2) * * *"
	case "@weekly":
		plain, hashed = "0 0 * * 0", "H H * * H"
	case "@monthly":
		plain, hashed = "0 0 1 * *", "H H H * *"
	case "@yearly", "@annually":
		plain, hashed = "0 0 1 1 *", "H H H H *"
	}
	if plain == "" || len(fields) > 1 {
		return nil, s.problem("is not a macro; there are @hourly, @daily, @midnight, @weekly, @monthly, @yearly and @annually")
	}
	if s.HashMacros {
		return strings.Fields(hashed), nil
	}
	return strings.Fields(plain), nil
}
