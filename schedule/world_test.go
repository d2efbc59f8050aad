package schedule_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/pvcbackup/schedule"
)

// A world is a caller that keeps exactly what the package asks it to keep, and lives through a random history.
type world struct {
	t        *testing.T
	random   *rand.Rand
	spec     schedule.Spec
	schedule *schedule.Schedule
	policy   schedule.Policy
	state    schedule.State
	mark     schedule.Mark
	now      time.Time

	ran     map[string]bool
	newest  time.Time // slot of the newest scheduled run
	tokens  int
	skipped int
	started int
}

var (
	worldSpecs = []string{"0 * * * *", "*/7 3 * * *", "30 2 * * *", "0 2 * * 1-5", "*/10 * * * *", "0,1 0 * * *", "15 */5 1,15 * *"}
	worldZones = []string{"", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"}
)

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{t: t, random: rand.New(rand.NewPCG(seed, 7)), ran: map[string]bool{}}
	w.now = at(t, "2026-03-01T00:00:00Z").Add(time.Duration(w.random.Int64N(int64(300 * 24 * time.Hour)))).Truncate(time.Second)
	w.state.Created = w.now
	w.policy = schedule.Policy{
		Seed:             "uid",
		RunOnCreate:      w.chance(2),
		Overlap:          []schedule.Overlap{"", schedule.Forbid, schedule.Replace, schedule.Allow}[w.random.IntN(4)],
		StartingDeadline: []time.Duration{0, time.Second, time.Hour, 48 * time.Hour}[w.random.IntN(4)],
		Jitter:           []time.Duration{0, time.Minute, 24 * time.Hour}[w.random.IntN(3)],
	}
	w.respec()
	return w
}

func (w *world) chance(oneIn int) bool { return w.random.IntN(oneIn) == 0 }

func (w *world) respec() {
	w.spec = schedule.Spec{Cron: worldSpecs[w.random.IntN(len(worldSpecs))], TimeZone: worldZones[w.random.IntN(len(worldZones))]}
	w.schedule = compile(w.t, w.spec.Cron, w.spec.TimeZone)
}

func (w *world) step(edits bool) {
	switch {
	case edits && w.chance(15):
		w.respec()
	case edits && w.chance(15):
		w.policy.Suspend = !w.policy.Suspend
	case edits && w.chance(15):
		w.tokens++
		w.state.Trigger = fmt.Sprint(w.tokens)
	case w.chance(3):
		w.finish()
	}
	w.mark = w.mark.Update(schedule.Fingerprint(w.spec, w.policy), w.state.Created, w.now)
	w.state.Since = w.mark.Since

	plan := w.schedule.Plan(w.state, w.policy, w.now)
	w.check(plan)
	w.apply(plan)
	if plan.Look > 0 && w.chance(2) {
		w.now = w.now.Add(plan.Look)
	} else {
		w.now = w.now.Add(time.Duration(w.random.Int64N(int64([]time.Duration{time.Minute, time.Hour, 60 * time.Hour}[w.random.IntN(3)]))))
	}
}

func (w *world) finish() {
	if w.state.Running.Kind == schedule.Manual {
		w.state.HandledTrigger = w.state.Running.Token
	}
	w.state.Running = schedule.Slot{}
}

func (w *world) apply(plan schedule.Plan) {
	if plan.Skipped > 0 {
		w.skipped += plan.Skipped
		w.state.LastSlot = plan.NewestSkipped
	}
	run := plan.Run
	if run.IsZero() {
		return
	}
	require.False(w.t, w.ran[run.ID], "run %s is started twice", run.ID)
	w.ran[run.ID] = true
	if run.Kind == schedule.Manual && (w.policy.Overlap == schedule.Allow || w.chance(2)) {
		w.state.HandledTrigger = run.Token
	}
	w.state.Ran, w.state.Running = true, run
	if run.Kind == schedule.Scheduled {
		w.started++
		w.newest, w.state.LastSlot = run.Time, run.Time
	}
}

func (w *world) check(plan schedule.Plan) {
	t, run := w.t, plan.Run
	require.Equal(t, !w.policy.Suspend, plan.Look > 0, "look %s", plan.Look)
	if w.policy.Suspend {
		require.Zero(t, plan.Next)
	} else {
		require.Equal(t, plan.Look, plan.Next.Sub(w.now))
	}
	busy := !w.state.Running.IsZero()
	switch run.Kind {
	case schedule.Scheduled:
		newest, ok := w.schedule.Latest(time.Time{}, w.now)
		require.True(t, ok)
		require.Equal(t, newest, run.Time, "only the newest slot runs")
		require.True(t, run.Time.After(w.state.Created) && run.Time.After(w.mark.Since), "no past slot runs")
		require.True(t, run.Time.After(w.newest), "slots run in order")
		require.False(t, w.policy.Suspend)
		require.Equal(t, schedule.SlotID(run.Time), run.ID)
		require.Equal(t, busy && w.policy.Overlap == schedule.Replace, plan.Replace)
		require.True(t, !busy || w.policy.Overlap == schedule.Allow || w.policy.Overlap == schedule.Replace)
	case schedule.Create:
		require.True(t, w.policy.RunOnCreate && !w.state.Ran && !busy && !w.policy.Suspend)
		require.Equal(t, w.state.Created, run.Time)
	case schedule.Manual:
		require.True(t, w.state.Trigger != w.state.HandledTrigger && !busy)
	}
	if run.IsZero() && plan.Look > 0 {
		before := w.schedule.Plan(w.state, w.policy, w.now.Add(plan.Look-1))
		require.Zero(t, before.Run, "the look comes too late for %s", before.Run.ID)
		if !busy || w.policy.Overlap == schedule.Allow {
			due := w.schedule.Plan(w.state, w.policy, w.now.Add(plan.Look))
			require.Equal(t, schedule.Scheduled, due.Run.Kind, "the look finds nothing to do")
		}
	}
}

func live(t *testing.T, seed uint64) {
	edits := newWorld(t, seed)
	for range 150 {
		edits.step(true)
	}
	steady := newWorld(t, seed)
	for range 100 {
		steady.step(false)
	}
	// Each slot since the creation was run, was skipped, or may still run.
	steady.finish()
	last := steady.schedule.Plan(steady.state, steady.policy, steady.now)
	steady.apply(last)
	open := steady.schedule.Count(steady.state.LastSlot, steady.now)
	if steady.state.LastSlot.IsZero() {
		open = steady.schedule.Count(steady.state.Created, steady.now)
	}
	require.LessOrEqual(t, open, 1)
	require.Equal(t, steady.schedule.Count(steady.state.Created, steady.now), steady.started+steady.skipped+open)
}

func TestNoHistoryBreaksThePromisesOfPlan(t *testing.T) {
	for seed := range uint64(200) {
		live(t, seed)
	}
}

func FuzzPlan(f *testing.F) {
	for seed := range uint64(10) {
		f.Add(seed * 1000003)
	}
	f.Fuzz(live)
}
