package schedule_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/pvcbackup/schedule"
)

// hostile are texts that somebody may put anywhere.
var hostile = []string{
	"", " ", "\x00", "\n", "\xff\xfe", "%s%n", "../../etc/passwd", "TZ=UTC", "CRON_TZ=../../x", "* * * * *\x00",
	"H(", "H()", "H(9-1)", "H/0", "*/-1", "1-", "-", ",", "*,", "99999999999999999999", "@", "@every 1ns", "☃ ☃ ☃ ☃ ☃",
	strings.Repeat("*", 1<<20), strings.Repeat("1,", 1<<19) + "1 * * * *", strings.Repeat(" ", 1<<20),
}

func TestHostileSpecsAreShortTypedErrors(t *testing.T) {
	for _, text := range hostile {
		for _, spec := range []schedule.Spec{
			{Cron: text}, {Cron: "0 3 * * *", TimeZone: text + "x"}, {Cron: text, TimeZone: text, HashMacros: true},
		} {
			_, err := spec.Compile(text)
			var problem *schedule.SpecError
			require.ErrorAs(t, err, &problem, "%.40q", spec)
			require.Less(t, len(err.Error()), 1000)
		}
	}
}

// instants are times at the ends of what can be written down.
var instants = []time.Time{
	{}, time.Unix(0, 0), time.Unix(math.MinInt64, 0), time.Unix(math.MaxInt64, 0), time.Unix(1<<55, 0), time.Unix(-1<<55, 0),
	time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC), time.Date(-9999, 1, 1, 0, 0, 0, 0, time.UTC),
	time.Date(2026, 1, 5, 12, 0, 0, 1, time.UTC),
}

func TestNoTimeOrPolicyDoesHarm(t *testing.T) {
	compiled := []*schedule.Schedule{nil, {}, must("* * * * *", ""), must("30 2 29 2 *", "Europe/Berlin"), must("0 3 * * *", "Pacific/Apia")}
	durations := []time.Duration{0, -1, math.MinInt64, math.MaxInt64, time.Hour}
	for _, s := range compiled {
		for _, now := range instants {
			s.Next(now)
			require.GreaterOrEqual(t, s.Interval(now), time.Duration(0))
			require.GreaterOrEqual(t, s.LongestGap(now), time.Duration(0))
			for _, since := range instants {
				require.GreaterOrEqual(t, s.Count(since, now), 0)
				if slot, ok := s.Latest(since, now); ok {
					require.True(t, slot.After(since) && !slot.After(now))
				}
				for range s.Slots(since, now) {
					break
				}
			}
			for _, d := range durations {
				policy := schedule.Policy{StartingDeadline: d, Jitter: d, Overlap: "nonsense", RunOnCreate: true}
				state := schedule.State{Created: now, Since: now, LastSlot: now, Trigger: "\x00", Running: schedule.Slot{Kind: "nonsense"}}
				require.GreaterOrEqual(t, s.Plan(state, policy, now).Look, time.Duration(0))
				require.GreaterOrEqual(t, schedule.Jitter("", d, now), time.Duration(0))
			}
		}
	}
}

func TestTheZeroScheduleHasNoSlots(t *testing.T) {
	for _, s := range []*schedule.Schedule{nil, {}} {
		_, ok := s.Next(time.Time{})
		require.False(t, ok)
		require.Equal(t, time.UTC, s.Location())
		require.Zero(t, s.Plan(schedule.State{Created: instants[1]}, schedule.Policy{}, instants[8]))
	}
}

func TestHostileTokensMakeNames(t *testing.T) {
	for _, text := range hostile {
		plan := must("0 3 * * *", "").Plan(schedule.State{Trigger: text + "x", HandledTrigger: text}, schedule.Policy{Seed: text}, instants[8])
		require.Regexp(t, "^m[0-9a-f]{15}$", plan.Run.ID)
		require.Len(t, schedule.Fingerprint(schedule.Spec{Cron: text, TimeZone: text}, schedule.Policy{}), 16)
		_, err := schedule.ParseSlotID(text)
		require.Error(t, err)
		require.Less(t, len(err.Error()), 300)
	}
}
