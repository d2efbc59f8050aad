package schedule_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"example.com/pvcbackup/schedule"
)

func compile(t testing.TB, cron, zone string) *schedule.Schedule {
	t.Helper()
	s, err := schedule.Spec{Cron: cron, TimeZone: zone}.Compile("seed")
	require.NoError(t, err)
	return s
}

func at(t testing.TB, text string) time.Time {
	t.Helper()
	parsed, err := time.Parse(time.RFC3339, text)
	require.NoError(t, err)
	return parsed
}

func TestSpecsThatAreRefusedSayWhatToWriteInstead(t *testing.T) {
	for _, tc := range []struct{ cron, zone, field, want string }{
		{"", "", "schedule", "is empty"},
		{"  \n", "", "schedule", "is empty"},
		{"TZ=UTC", "", "schedule", "set the field timeZone"},
		{"CRON_TZ=", "", "schedule", "set the field timeZone"},
		{"TZ=", "", "schedule", "set the field timeZone"},
		{"TZ=Europe/Berlin 0 3 * * *", "", "schedule", "set the field timeZone"},
		{"CRON_TZ=Europe/Berlin 0 3 * * *", "", "schedule", "set the field timeZone"},
		{"@every -5m", "", "schedule", "*/30 * * * *"},
		{"@every 1h", "", "schedule", "*/30 * * * *"},
		{"@EVERY 1h", "", "schedule", "*/30 * * * *"},
		{"@hourlyfoo", "", "schedule", "is not a macro"},
		{"@daily 5", "", "schedule", "is not a macro"},
		{"@", "", "schedule", "is not a macro"},
		{"0 0 30 2 *", "", "schedule", "no such day"},
		{"0 0 30,31 2 *", "", "schedule", "no such day"},
		{"0 0 31 2,4,6,9,11 *", "", "schedule", "no such day"},
		{"garbage 0 3 * * *", "", "schedule", "has 6 fields"},
		{"0 0 3 * * *", "", "schedule", "no seconds"},
		{"0 3 * *", "", "schedule", "has 4 fields"},
		{"99 99 99 99 99", "", "schedule", `minute "99"`},
		{"0 24 * * *", "", "schedule", `hour "24"`},
		{"0 0 0 * *", "", "schedule", `day of month "0"`},
		{"0 0 * 13 *", "", "schedule", `month "13"`},
		{"0 0 * * 7", "", "schedule", "SUN for Sunday"},
		{"0 0 * * 1-7", "", "schedule", "SUN for Sunday"},
		{"0 22-2 * * *", "", "schedule", `hour "22-2"`},
		{"*/90 * * * *", "", "schedule", "between 1 and 60"},
		{"*/0 * * * *", "", "schedule", "between 1 and 60"},
		{"H/61 * * * *", "", "schedule", "between 1 and 60"},
		{"H/99999999999999999999 * * * *", "", "schedule", "between 1 and 60"},
		{"*-5 * * * *", "", "schedule", `minute "*-5"`},
		{", * * * *", "", "schedule", `minute ""`},
		{"1,,2 * * * *", "", "schedule", `minute ""`},
		{"+5 * * * *", "", "schedule", `minute "+5"`},
		{"H(5) * * * *", "", "schedule", `minute "H(5)"`},
		{"H(50-10) * * * *", "", "schedule", `minute "H(50-10)"`},
		{"H(0-99) * * * *", "", "schedule", `minute "H(0-99)"`},
		{"h * * * *", "", "schedule", `minute "h"`},
		{"0 3 * * MOND", "", "schedule", `day of week "MOND"`},
		{strings.Repeat("1,", 1000) + "1 * * * *", "", "schedule", "longer than"},
		{"0 3 * * *", "Local", "timeZone", "depends on the machine"},
		{"0 3 * * *", "local", "timeZone", "depends on the machine"},
		{"0 3 * * *", "localtime", "timeZone", "depends on the machine"},
		{"0 3 * * *", "Mars/Olympus", "timeZone", "Europe/Berlin"},
		{"0 3 * * *", "../etc/passwd", "timeZone", "Europe/Berlin"},
		{"0 3 * * *", "+02:00", "timeZone", "Europe/Berlin"},
	} {
		t.Run(tc.cron+" "+tc.zone, func(t *testing.T) {
			_, err := schedule.Spec{Cron: tc.cron, TimeZone: tc.zone}.Compile("")
			var spec *schedule.SpecError
			require.ErrorAs(t, err, &spec)
			require.Equal(t, tc.field, spec.Field)
			require.Contains(t, err.Error(), tc.want)
			require.Less(t, len(err.Error()), 700)
		})
	}
}

func TestSpecErrorIsTerminalWithAReason(t *testing.T) {
	_, err := schedule.Spec{Cron: "nonsense"}.Compile("")
	var terminal interface{ Terminal() bool }
	var reason interface{ Reason() string }
	require.ErrorAs(t, fmt.Errorf("wrapped: %w", err), &terminal)
	require.ErrorAs(t, err, &reason)
	require.True(t, terminal.Terminal())
	require.Equal(t, "InvalidSchedule", reason.Reason())
}

func TestSpecsThatAreAcceptedAndTheirNextSlots(t *testing.T) {
	after := at(t, "2026-01-01T00:00:30Z") // a Thursday
	for _, tc := range []struct {
		cron string
		want []string
	}{
		{"* * * * *", []string{"2026-01-01T00:01:00Z", "2026-01-01T00:02:00Z"}},
		{"*/15 * * * *", []string{"2026-01-01T00:15:00Z", "2026-01-01T00:30:00Z", "2026-01-01T00:45:00Z", "2026-01-01T01:00:00Z"}},
		{"5/20 * * * *", []string{"2026-01-01T00:05:00Z", "2026-01-01T00:25:00Z", "2026-01-01T00:45:00Z", "2026-01-01T01:05:00Z"}},
		{"*/60 */24 * * *", []string{"2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z"}},
		{"0 3 * * MON", []string{"2026-01-05T03:00:00Z", "2026-01-12T03:00:00Z"}},
		{"0 3 * * mon-wed/2", []string{"2026-01-05T03:00:00Z", "2026-01-07T03:00:00Z", "2026-01-12T03:00:00Z"}},
		{"0 3 ? JAN,jul *", []string{"2026-01-01T03:00:00Z", "2026-01-02T03:00:00Z"}},
		{"0,30 22-23,0-1 * * *", []string{"2026-01-01T00:30:00Z", "2026-01-01T01:00:00Z", "2026-01-01T01:30:00Z", "2026-01-01T22:00:00Z"}},
		{"0 0 13 * 5", []string{"2026-01-02T00:00:00Z", "2026-01-09T00:00:00Z", "2026-01-13T00:00:00Z"}},
		{"0 0 31 * *", []string{"2026-01-31T00:00:00Z", "2026-03-31T00:00:00Z"}},
		{"0 0 29 2 *", []string{"2028-02-29T00:00:00Z", "2032-02-29T00:00:00Z"}},
		{"0 0 30 2 1", []string{"2026-02-02T00:00:00Z", "2026-02-09T00:00:00Z"}},
		{"@hourly", []string{"2026-01-01T01:00:00Z", "2026-01-01T02:00:00Z"}},
		{"@daily", []string{"2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z"}},
		{"@midnight", []string{"2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z"}},
		{"@weekly", []string{"2026-01-04T00:00:00Z", "2026-01-11T00:00:00Z"}},
		{"@monthly", []string{"2026-02-01T00:00:00Z", "2026-03-01T00:00:00Z"}},
		{"@yearly", []string{"2027-01-01T00:00:00Z", "2028-01-01T00:00:00Z"}},
		{" @annually ", []string{"2027-01-01T00:00:00Z", "2028-01-01T00:00:00Z"}},
	} {
		t.Run(tc.cron, func(t *testing.T) {
			s := compile(t, tc.cron, "")
			var got []string
			slot := after
			for range tc.want {
				var ok bool
				slot, ok = s.Next(slot)
				require.True(t, ok)
				got = append(got, slot.Format(time.RFC3339))
			}
			require.Empty(t, cmp.Diff(tc.want, got))
		})
	}
}

func TestLeapDaysAreFoundAcrossYear2100(t *testing.T) {
	slot, ok := compile(t, "0 0 29 2 *", "").Next(at(t, "2096-03-01T00:00:00Z"))
	require.True(t, ok)
	require.Equal(t, "2104-02-29T00:00:00Z", slot.Format(time.RFC3339))
}

func TestEmptyZoneMeansUTC(t *testing.T) {
	for _, zone := range []string{"", "UTC", "Etc/UTC"} {
		slot, _ := compile(t, "0 3 * * *", zone).Next(at(t, "2026-07-01T00:00:00Z"))
		require.Equal(t, "2026-07-01T03:00:00Z", slot.Format(time.RFC3339))
	}
}

func TestHashReachesEveryMinuteHourAndWeekdayEvenly(t *testing.T) {
	const objects = 10000
	for _, tc := range []struct {
		cron   string
		values int
		value  func(time.Time) int
	}{
		{"H * * * *", 60, func(s time.Time) int { return s.Minute() }},
		{"0 H * * *", 24, func(s time.Time) int { return s.Hour() }},
		{"0 0 H * *", 28, func(s time.Time) int { return s.Day() - 1 }},
		{"0 0 1 H *", 12, func(s time.Time) int { return int(s.Month()) - 1 }},
		{"0 0 * * H", 7, func(s time.Time) int { return int(s.Weekday()) }},
		{"0 0 * * H(MON-FRI)", 5, func(s time.Time) int { return int(s.Weekday()) - 1 }},
		{"H/15 * * * *", 15, func(s time.Time) int { return s.Minute() % 15 }},
		{"H(10-29) * * * *", 20, func(s time.Time) int { return s.Minute() - 10 }},
		{"H(0-29)/7 * * * *", 7, func(s time.Time) int { return s.Minute() % 7 }},
		{"H(0-4)/50 * * * *", 5, func(s time.Time) int { return s.Minute() }},
	} {
		t.Run(tc.cron, func(t *testing.T) {
			counts := make([]int, tc.values)
			start := at(t, "2025-12-31T23:59:59Z")
			for i := range objects {
				s, err := schedule.Spec{Cron: tc.cron}.Compile(fmt.Sprintf("0b9c1a8e-7a51-4c1e-9d53-%012d", i))
				require.NoError(t, err)
				slot, _ := s.Next(start)
				counts[tc.value(slot)]++
			}
			// Chi-squared, at six standard deviations above what chance gives.
			chi, expected := 0.0, float64(objects)/float64(tc.values)
			for _, n := range counts {
				require.Positive(t, n)
				chi += (float64(n) - expected) * (float64(n) - expected) / expected
			}
			free := float64(tc.values - 1)
			require.Less(t, chi, free+6*math.Sqrt(2*free), "uneven: %v", counts)
		})
	}
}

func TestHashedValuesNeverChange(t *testing.T) {
	for cron, want := range map[string]string{
		"H * * * *":             "2026-01-01T00:23:00Z",
		"H H * * *":             "2026-01-01T00:23:00Z",
		"H H * * H":             "2026-01-04T00:23:00Z",
		"H H H * *":             "2026-01-21T00:23:00Z",
		"H H H H *":             "2026-08-21T00:23:00Z",
		"H(30-59)/10 H/6 * * *": "2026-01-01T00:33:00Z",
	} {
		slot, _ := compile(t, cron, "").Next(at(t, "2025-12-31T23:59:59Z"))
		require.Equal(t, want, slot.Format(time.RFC3339), cron)
	}
}

func TestMacrosAreHashedOnlyOnRequest(t *testing.T) {
	for macro, hashed := range map[string]string{
		"@hourly": "H * * * *", "@daily": "H H * * *", "@midnight": "H H(0-2) * * *", "@weekly": "H H * * H",
		"@monthly": "H H H * *", "@yearly": "H H H H *", "@annually": "H H H H *",
	} {
		start := at(t, "2025-12-31T23:59:59Z")
		on, err := schedule.Spec{Cron: macro, HashMacros: true}.Compile("seed")
		require.NoError(t, err)
		got, _ := on.Next(start)
		want, _ := compile(t, hashed, "").Next(start)
		require.Equal(t, want, got, macro)
		plain, _ := compile(t, macro, "").Next(start)
		require.Zero(t, plain.Minute(), macro)
	}
}

func FuzzCompile(f *testing.F) {
	for _, seed := range []string{"TZ=UTC", "CRON_TZ=", "TZ=", "0 0 30 2 *", "@every -5m", "H H(0-5)/2 1-5/2 jan-mar,? MON", "0 0 29 2 *", "@daily", "*/7 3 * * *", "H(1-2", "0 0 31 2 6"} {
		f.Add(seed, "", "a", int64(1767225600))
		f.Add(seed, "America/New_York", "b", int64(0))
	}
	f.Fuzz(func(t *testing.T, cron, zone, seed string, unix int64) {
		s, err := schedule.Spec{Cron: cron, TimeZone: zone, HashMacros: unix%2 == 0}.Compile(seed)
		if err != nil {
			var spec *schedule.SpecError
			if !errors.As(err, &spec) || spec.Problem == "" {
				t.Fatalf("%q: %v is no SpecError with a problem", cron, err)
			}
			return
		}
		after := time.Unix(unix%(1<<36), 0)
		slot, ok := s.Next(after)
		if !ok || !slot.After(after) || slot.Sub(after) > 9*366*24*time.Hour {
			t.Fatalf("%q fires at %v, %v after %v", cron, slot, ok, after)
		}
		s.Next(time.Unix(unix, unix))
		s.Latest(time.Unix(-unix, 0), time.Unix(unix, 0))
		s.LongestGap(time.Unix(unix, 0))
	})
}
