package schedule_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"example.com/pvcbackup/schedule"
)

func specOf(cron string) schedule.Spec { return schedule.Spec{Cron: cron} }

func TestClockChanges(t *testing.T) {
	for _, tc := range []struct {
		name, cron, zone, after string
		want                    []string
	}{
		{"a skipped time fires at the first instant after the gap", "30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z",
			[]string{"2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"}},
		{"several skipped times fire once", "*/10 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z",
			[]string{"2026-03-29T01:00:00Z", "2026-03-30T00:00:00Z"}},
		{"a skipped time and the one at the end of the gap fire once", "0 2,3 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z",
			[]string{"2026-03-29T01:00:00Z", "2026-03-30T00:00:00Z", "2026-03-30T01:00:00Z"}},
		{"a repeated time fires at its first occurrence", "30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z",
			[]string{"2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"}},
		{"every hour goes on through the repeated hour", "30 * * * *", "Europe/Berlin", "2026-10-25T00:00:00Z",
			[]string{"2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z", "2026-10-25T02:30:00Z"}},
		{"every hour goes on through the skipped hour", "30 * * * *", "Europe/Berlin", "2026-03-29T00:00:00Z",
			[]string{"2026-03-29T00:30:00Z", "2026-03-29T01:30:00Z", "2026-03-29T02:30:00Z"}},
		{"autumn in New York", "30 1 * * *", "America/New_York", "2026-10-31T12:00:00Z",
			[]string{"2026-11-01T05:30:00Z", "2026-11-02T06:30:00Z"}},
		{"spring in New York", "30 2 * * *", "America/New_York", "2026-03-07T12:00:00Z",
			[]string{"2026-03-08T07:00:00Z", "2026-03-09T06:30:00Z"}},
		{"half an hour is repeated", "45 1 * * *", "Australia/Lord_Howe", "2026-04-04T00:00:00Z",
			[]string{"2026-04-04T14:45:00Z", "2026-04-05T15:15:00Z"}},
		{"half an hour is skipped", "15 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00:00Z",
			[]string{"2026-10-03T15:30:00Z", "2026-10-04T15:15:00Z"}},
		{"a whole day is skipped", "0 3 * * *", "Pacific/Apia", "2011-12-29T12:00:00Z",
			[]string{"2011-12-29T13:00:00Z", "2011-12-30T10:00:00Z", "2011-12-30T13:00:00Z", "2011-12-31T13:00:00Z"}},
		{"midnight is skipped", "0 0 * * *", "America/Sao_Paulo", "2018-11-03T00:00:00Z",
			[]string{"2018-11-03T03:00:00Z", "2018-11-04T03:00:00Z", "2018-11-05T02:00:00Z"}},
		{"an hour before midnight is repeated", "30 23 * * *", "America/Sao_Paulo", "2018-02-17T00:00:00Z",
			[]string{"2018-02-17T01:30:00Z", "2018-02-18T01:30:00Z", "2018-02-19T02:30:00Z"}},
		{"a day is repeated", "0 3 * * *", "Pacific/Kwajalein", "1969-09-29T12:00:00Z",
			[]string{"1969-09-29T16:00:00Z", "1969-10-01T15:00:00Z", "1969-10-02T15:00:00Z"}},
		{"the last day of a leap year", "0 3 * * *", "Europe/Berlin", "2040-12-30T12:00:00Z",
			[]string{"2040-12-31T02:00:00Z", "2041-01-01T02:00:00Z"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := compile(t, tc.cron, tc.zone)
			var got []string
			slot := at(t, tc.after)
			for range tc.want {
				slot, _ = s.Next(slot)
				got = append(got, slot.Format(time.RFC3339))
			}
			require.Empty(t, cmp.Diff(tc.want, got))
		})
	}
}

func TestLatestIsTheNewestSlotOfTheWindow(t *testing.T) {
	s := compile(t, "0,1 0 * * *", "")
	for _, tc := range []struct{ since, now, want string }{
		{"2026-01-01T00:00:00Z", "2026-01-01T00:00:59Z", ""},
		{"2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z", "2026-01-01T00:01:00Z"},
		{"2026-01-01T00:01:00Z", "2026-01-01T23:59:59Z", ""},
		{"2025-01-01T00:00:00Z", "2026-02-10T12:00:00Z", "2026-02-10T00:01:00Z"},
		{"2026-02-10T12:00:00Z", "2025-01-01T00:00:00Z", ""},
	} {
		slot, ok := s.Latest(at(t, tc.since), at(t, tc.now))
		require.Equal(t, tc.want != "", ok)
		if ok {
			require.Equal(t, tc.want, slot.Format(time.RFC3339))
		}
	}
}

func TestNextIsAfterFractionsOfASecondToo(t *testing.T) {
	s := compile(t, "* * * * *", "")
	slot, _ := s.Next(at(t, "2026-01-01T00:00:59.999Z"))
	require.Equal(t, "2026-01-01T00:01:00Z", slot.Format(time.RFC3339))
	slot, _ = s.Next(at(t, "2026-01-01T00:01:00.001Z"))
	require.Equal(t, "2026-01-01T00:02:00Z", slot.Format(time.RFC3339))
	slot, _ = s.Latest(at(t, "2026-01-01T00:00:00Z"), at(t, "2026-01-01T00:01:00.001Z"))
	require.Equal(t, "2026-01-01T00:01:00Z", slot.Format(time.RFC3339))
}

func TestExtremeTimesDoNoHarm(t *testing.T) {
	for _, zone := range []string{"", "Europe/Amsterdam", "Pacific/Apia"} {
		for _, spec := range []string{"* * * * *", "0 3 * * *", "0 0 29 2 *"} {
			s := compile(t, spec, zone)
			for _, extreme := range []time.Time{{}, time.Unix(math.MaxInt64, 0), time.Unix(math.MinInt64, 0), time.Unix(0, math.MaxInt64)} {
				next, ok := s.Next(extreme)
				require.True(t, !ok || next.After(extreme))
				s.Latest(time.Time{}, extreme)
				s.Count(time.Time{}, extreme)
				s.LongestGap(extreme)
				s.Plan(schedule.State{}, schedule.Policy{}, extreme)
			}
			_, ok := s.Next(time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC))
			require.False(t, ok, "no slot after the year 9999")
		}
	}
}

// With a step per slot this would take minutes.
func TestNoCallEnumeratesSlots(t *testing.T) {
	started := time.Now()
	for _, spec := range []string{"* * * * *", "* 0-22 * * *"} {
		s := compile(t, spec, "Europe/Berlin")
		since, now := at(t, "1026-01-01T00:00:00Z"), at(t, "2026-01-01T00:00:00Z")
		slot, ok := s.Latest(since, now)
		require.True(t, ok)
		require.WithinRange(t, slot, now.Add(-2*time.Hour), now)
		require.Greater(t, s.Count(since, now), 500_000_000)
		plan := s.Plan(schedule.State{Created: since}, schedule.Policy{}, now)
		require.Greater(t, plan.Skipped, 500_000_000)
	}
	require.Less(t, time.Since(started), 10*time.Second)
}

func TestSlotsStopWhenAsked(t *testing.T) {
	s := compile(t, "0 * * * *", "")
	since := at(t, "2026-01-01T00:00:00Z")
	require.Len(t, slices.Collect(s.Slots(since, since.Add(5*time.Hour))), 5)
	for slot := range s.Slots(since, since.Add(5*time.Hour)) {
		require.Equal(t, since.Add(time.Hour), slot)
		break
	}
}

func TestIntervalAndLongestGap(t *testing.T) {
	for _, tc := range []struct {
		cron, now         string
		interval, longest time.Duration
	}{
		{"0 * * * *", "2026-01-01T00:30:00Z", time.Hour, time.Hour},
		{"0 2 * * 1-5", "2026-01-05T03:00:00Z", 24 * time.Hour, 72 * time.Hour}, // Monday: the newest result may be Friday's
		{"0 2 * * 1-5", "2026-01-06T03:00:00Z", 24 * time.Hour, 24 * time.Hour}, // Tuesday
		{"0 2 * * 1-5", "2026-01-09T03:00:00Z", 24 * time.Hour, 72 * time.Hour}, // Friday: the weekend has begun
		{"0 2 * * 1-5", "2026-01-09T01:00:00Z", 72 * time.Hour, 24 * time.Hour}, // before Friday's slot
		{"0,1 0 * * *", "2026-01-01T12:00:00Z", time.Minute, 23*time.Hour + 59*time.Minute},
		{"0 0 1 * *", "2026-02-15T00:00:00Z", 31 * 24 * time.Hour, 31 * 24 * time.Hour},
	} {
		s := compile(t, tc.cron, "")
		require.Equal(t, tc.interval, s.Interval(at(t, tc.now)), "%s at %s", tc.cron, tc.now)
		require.Equal(t, tc.longest, s.LongestGap(at(t, tc.now)), "%s at %s", tc.cron, tc.now)
	}
}

func TestLocationIsTheZoneOfTheSpec(t *testing.T) {
	require.Equal(t, "Europe/Berlin", compile(t, "0 3 * * *", "Europe/Berlin").Location().String())
	require.Equal(t, time.UTC, compile(t, "0 3 * * *", "").Location())
}
