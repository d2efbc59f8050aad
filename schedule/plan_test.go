package schedule_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"example.com/pvcbackup/schedule"
)

func scheduled(t testing.TB, slot string) schedule.Slot {
	return schedule.Slot{Time: at(t, slot), Kind: schedule.Scheduled, ID: schedule.SlotID(at(t, slot))}
}

func TestPlan(t *testing.T) {
	created := at(t, "2026-01-01T00:00:00Z")
	day := func(clock string) time.Time { return at(t, "2026-01-05T"+clock+"Z") }
	slot := func(clock string) schedule.Slot { return scheduled(t, "2026-01-05T"+clock+"Z") }
	manual := schedule.Slot{Time: day("02:30:00"), Kind: schedule.Manual, ID: "m"}
	// The schedule is hourly, at the full hour.
	for _, tc := range []struct {
		name   string
		state  schedule.State
		policy schedule.Policy
		now    time.Time
		want   schedule.Plan
	}{
		{
			name:  "between slots it waits for the next",
			state: schedule.State{LastSlot: day("03:00:00"), Ran: true}, now: day("03:10:00"),
			want: schedule.Plan{Look: 50 * time.Minute, Next: day("04:00:00")},
		}, {
			name:  "a slot runs when it comes",
			state: schedule.State{LastSlot: day("03:00:00"), Ran: true}, now: day("04:00:00"),
			want: schedule.Plan{Run: slot("04:00:00"), Look: time.Hour, Next: day("05:00:00")},
		}, {
			name:  "a slot that has run does not run again",
			state: schedule.State{LastSlot: day("04:00:00"), Ran: true}, now: day("04:00:00"),
			want: schedule.Plan{Look: time.Hour, Next: day("05:00:00")},
		}, {
			name:  "a slot may start until half the interval has passed",
			state: schedule.State{LastSlot: day("03:00:00"), Ran: true}, now: day("04:30:00"),
			want: schedule.Plan{Run: slot("04:00:00"), Look: 30 * time.Minute, Next: day("05:00:00")},
		}, {
			name:  "then it is skipped",
			state: schedule.State{LastSlot: day("03:00:00"), Ran: true}, now: day("04:30:01"),
			want: schedule.Plan{Look: 29*time.Minute + 59*time.Second, Next: day("05:00:00"), Skipped: 1, NewestSkipped: day("04:00:00")},
		}, {
			name:  "of all that was missed only the newest runs",
			state: schedule.State{LastSlot: day("00:00:00"), Ran: true}, now: day("04:10:00"),
			want: schedule.Plan{Run: slot("04:00:00"), Look: 50 * time.Minute, Next: day("05:00:00"), Skipped: 3, NewestSkipped: day("03:00:00")},
		}, {
			name:  "even if the deadline admits more",
			state: schedule.State{LastSlot: day("00:00:00"), Ran: true}, policy: schedule.Policy{StartingDeadline: 24 * time.Hour}, now: day("04:55:00"),
			want: schedule.Plan{Run: slot("04:00:00"), Look: 5 * time.Minute, Next: day("05:00:00"), Skipped: 3, NewestSkipped: day("03:00:00")},
		}, {
			name:  "what was recorded as skipped is not counted again",
			state: schedule.State{LastSlot: day("03:00:00"), Ran: true}, now: day("03:40:00"),
			want: schedule.Plan{Look: 20 * time.Minute, Next: day("04:00:00")},
		}, {
			name:  "a deadline that cannot be met counts as ten seconds",
			state: schedule.State{LastSlot: day("03:00:00"), Ran: true}, policy: schedule.Policy{StartingDeadline: time.Nanosecond}, now: day("04:00:10"),
			want: schedule.Plan{Run: slot("04:00:00"), Look: 59*time.Minute + 50*time.Second, Next: day("05:00:00")},
		}, {
			name:  "a slot at the time of an edit does not run",
			state: schedule.State{Since: day("04:00:00"), LastSlot: day("02:00:00"), Ran: true}, now: day("04:00:01"),
			want: schedule.Plan{Look: 59*time.Minute + 59*time.Second, Next: day("05:00:00")},
		}, {
			name:  "nothing runs while suspended",
			state: schedule.State{LastSlot: day("01:00:00"), Ran: true}, policy: schedule.Policy{Suspend: true}, now: day("04:00:00"),
			want: schedule.Plan{},
		}, {
			name:  "a new object runs at once if asked to",
			state: schedule.State{}, policy: schedule.Policy{RunOnCreate: true}, now: created.Add(time.Second),
			want: schedule.Plan{
				Run:  schedule.Slot{Time: created, Kind: schedule.Create, ID: "20260101t000000z"},
				Look: time.Hour - time.Second, Next: created.Add(time.Hour),
			},
		}, {
			name: "a new object does not otherwise", now: created.Add(time.Second),
			want: schedule.Plan{Look: time.Hour - time.Second, Next: created.Add(time.Hour)},
		}, {
			name:  "nor once anything has run",
			state: schedule.State{Ran: true}, policy: schedule.Policy{RunOnCreate: true}, now: created.Add(time.Second),
			want: schedule.Plan{Look: time.Hour - time.Second, Next: created.Add(time.Hour)},
		}, {
			name: "nor while suspended", policy: schedule.Policy{RunOnCreate: true, Suspend: true}, now: created.Add(time.Second),
			want: schedule.Plan{},
		}, {
			name: "a slot that is due stands in for the first run", policy: schedule.Policy{RunOnCreate: true}, now: created.Add(time.Hour),
			want: schedule.Plan{Run: scheduled(t, "2026-01-01T01:00:00Z"), Look: time.Hour, Next: created.Add(2 * time.Hour)},
		}, {
			name:  "a slot waits for the run in flight",
			state: schedule.State{Running: slot("03:00:00"), LastSlot: day("02:00:00"), Ran: true}, now: day("04:20:00"),
			want: schedule.Plan{Look: 40 * time.Minute, Next: day("05:00:00")},
		}, {
			name:  "and runs afterwards within its deadline",
			state: schedule.State{LastSlot: day("03:00:00"), Ran: true}, now: day("04:20:00"),
			want: schedule.Plan{Run: slot("04:00:00"), Look: 40 * time.Minute, Next: day("05:00:00")},
		}, {
			name:  "the slot of the run in flight does not run again",
			state: schedule.State{Running: slot("04:00:00"), LastSlot: day("03:00:00"), Ran: true}, policy: schedule.Policy{Overlap: schedule.Allow}, now: day("04:20:00"),
			want: schedule.Plan{Look: 40 * time.Minute, Next: day("05:00:00")},
		}, {
			name:  "Allow starts beside the run in flight",
			state: schedule.State{Running: slot("03:00:00"), Ran: true}, policy: schedule.Policy{Overlap: schedule.Allow}, now: day("04:20:00"),
			want: schedule.Plan{Run: slot("04:00:00"), Look: 40 * time.Minute, Next: day("05:00:00")},
		}, {
			name:  "Replace ends the run in flight",
			state: schedule.State{Running: slot("03:00:00"), Ran: true}, policy: schedule.Policy{Overlap: schedule.Replace}, now: day("04:20:00"),
			want: schedule.Plan{Run: slot("04:00:00"), Replace: true, Look: 40 * time.Minute, Next: day("05:00:00")},
		}, {
			name:  "but not one that a person asked for",
			state: schedule.State{Running: manual, LastSlot: day("03:00:00"), Ran: true}, policy: schedule.Policy{Overlap: schedule.Replace}, now: day("04:20:00"),
			want: schedule.Plan{Look: 40 * time.Minute, Next: day("05:00:00")},
		}, {
			name:  "Replace ends nothing if nothing is in flight",
			state: schedule.State{LastSlot: day("03:00:00"), Ran: true}, policy: schedule.Policy{Overlap: schedule.Replace}, now: day("04:00:00"),
			want: schedule.Plan{Run: slot("04:00:00"), Look: time.Hour, Next: day("05:00:00")},
		}, {
			name:  "a clock that was far ahead does not end the schedule",
			state: schedule.State{LastSlot: at(t, "2099-01-01T00:00:00Z"), Since: day("03:30:00"), Ran: true}, now: day("04:00:00"),
			want: schedule.Plan{Run: slot("04:00:00"), Look: time.Hour, Next: day("05:00:00")},
		}, {
			name:  "a clock that was a little ahead does not run a slot twice",
			state: schedule.State{LastSlot: day("04:00:00"), Ran: true}, now: day("03:59:30"),
			want: schedule.Plan{Look: time.Hour + 30*time.Second, Next: day("05:00:00")},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.state.Created = created
			got := compile(t, "0 * * * *", "").Plan(tc.state, tc.policy, tc.now)
			require.Empty(t, cmp.Diff(tc.want, got))
		})
	}
}

func TestTriggers(t *testing.T) {
	s := compile(t, "0 * * * *", "")
	now := at(t, "2026-01-05T04:20:00.7Z")
	state := schedule.State{Created: at(t, "2026-01-01T00:00:00Z"), LastSlot: at(t, "2026-01-05T03:00:00Z"), Ran: true, Trigger: "now"}

	plan := s.Plan(state, schedule.Policy{}, now)
	require.Equal(t, schedule.Manual, plan.Run.Kind, "a trigger comes before the slot that is due")
	require.Equal(t, now.Truncate(time.Second), plan.Run.Time)
	require.Len(t, plan.Run.ID, 16)

	again := s.Plan(state, schedule.Policy{}, now.Add(time.Hour))
	require.Equal(t, plan.Run.ID, again.Run.ID, "the run of a token always has the same name")

	require.Equal(t, plan.Run, s.Plan(state, schedule.Policy{Suspend: true}, now).Run, "a trigger is served while suspended")

	for _, overlap := range []schedule.Overlap{"", schedule.Replace, schedule.Allow} {
		busy := state
		busy.Running = scheduled(t, "2026-01-05T04:00:00Z")
		require.Zero(t, s.Plan(busy, schedule.Policy{Overlap: overlap}, now).Run, "a trigger waits for the run in flight")
	}

	served := state
	served.HandledTrigger = "now"
	require.Equal(t, scheduled(t, "2026-01-05T04:00:00Z"), s.Plan(served, schedule.Policy{}, now).Run, "a token that was served is not served again")

	other := served
	other.Trigger = "another"
	back := state
	back.HandledTrigger = "another"
	ids := map[string]bool{plan.Run.ID: true, s.Plan(other, schedule.Policy{}, now).Run.ID: true, s.Plan(back, schedule.Policy{}, now).Run.ID: true}
	require.Len(t, ids, 3, "a token that is used again later names another run")
}

func TestJitterDelaysTheStartAndTheDeadlineCountsFromThere(t *testing.T) {
	s := compile(t, "0 * * * *", "")
	slot := at(t, "2026-01-05T04:00:00Z")
	state := schedule.State{LastSlot: slot.Add(-time.Hour), Ran: true}
	policy := schedule.Policy{Seed: "uid", Jitter: 20 * time.Minute, StartingDeadline: 5 * time.Minute}
	start := slot.Add(schedule.Jitter("uid", 20*time.Minute, slot))
	require.True(t, start.After(slot))

	early := s.Plan(state, policy, slot)
	require.Equal(t, schedule.Plan{Look: start.Sub(slot), Next: start}, early)
	require.Equal(t, scheduled(t, "2026-01-05T04:00:00Z"), s.Plan(state, policy, start).Run)
	require.Equal(t, scheduled(t, "2026-01-05T04:00:00Z"), s.Plan(state, policy, start.Add(5*time.Minute)).Run)
	late := s.Plan(state, policy, start.Add(5*time.Minute+1))
	require.Zero(t, late.Run)
	require.Equal(t, 1, late.Skipped)
}

func TestJitterNeverReachesTheNextSlot(t *testing.T) {
	s := compile(t, "0,10 * * * *", "")
	policy := schedule.Policy{Seed: "uid", Jitter: 24 * time.Hour}
	state := schedule.State{}
	now := at(t, "2026-01-05T04:30:00Z")
	for range 200 {
		next, _ := s.Next(now)
		after, _ := s.Next(next)
		plan := s.Plan(state, policy, now)
		require.Less(t, plan.Next.Sub(next), after.Sub(next)/2)
		now, state.LastSlot = next, next
	}
}

func TestPlanAllocatesNothingUnlessARunIsDue(t *testing.T) {
	s := compile(t, "H * * * *", "Europe/Berlin")
	now := at(t, "2026-01-05T04:30:00Z")
	last, _ := s.Latest(time.Time{}, now)
	state := schedule.State{Created: at(t, "2025-01-01T00:00:00Z"), LastSlot: last, Ran: true, Trigger: "a", HandledTrigger: "a"}
	policy := schedule.Policy{Seed: "0b9c1a8e-7a51-4c1e-9d53-0123456789ab", Jitter: time.Minute, RunOnCreate: true}
	require.Zero(t, testing.AllocsPerRun(100, func() { s.Plan(state, policy, now) }))
	state.LastSlot = at(t, "2025-01-01T00:00:00Z")
	policy.StartingDeadline = time.Second
	require.Zero(t, testing.AllocsPerRun(100, func() { s.Plan(state, policy, last.Add(10*time.Minute)) }))
}

func BenchmarkPlan(b *testing.B) {
	now := at(b, "2026-06-15T04:30:00Z")
	for _, cron := range []string{"0 * * * *", "0 3 * * *", "* * * * *", "*/7 3 * * *", "30 6-16/4 * * 1-5", "0 0 29 2 *"} {
		s := compile(b, cron, "America/New_York")
		last, _ := s.Latest(time.Time{}, now)
		for name, since := range map[string]time.Time{"NothingMissed": last, "YearMissed": now.AddDate(-1, 0, 0)} {
			b.Run(name+"/"+cron, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					s.Plan(schedule.State{LastSlot: since, Ran: true}, schedule.Policy{Seed: "uid", Jitter: time.Minute}, now)
				}
			})
		}
	}
}
