package schedule_test

import (
	"fmt"
	"time"

	"example.com/pvcbackup/schedule"
)

// remembered is what survives a restart, as an object's status would.
type remembered struct {
	mark     schedule.Mark
	lastSlot time.Time
	ran      bool
}

// look is what happens each time: it plans, starts what is due, writes down what that changed, and says when to look again.
func (r *remembered) look(spec schedule.Spec, policy schedule.Policy, created, now time.Time) (time.Duration, error) {
	compiled, err := spec.Compile(policy.Seed)
	if err != nil {
		return 0, err // only an edit helps
	}
	r.mark = r.mark.Update(schedule.Fingerprint(spec, policy), created, now)
	plan := compiled.Plan(schedule.State{Created: created, Since: r.mark.Since, LastSlot: r.lastSlot, Ran: r.ran}, policy, now)
	if plan.Skipped > 0 {
		fmt.Println(now.Format(time.Kitchen), "skipped", plan.Skipped)
		r.lastSlot = plan.NewestSkipped
	}
	if !plan.Run.IsZero() {
		fmt.Println(now.Format(time.Kitchen), "run", plan.Run.Kind, plan.Run.ID)
		r.ran = true
		if plan.Run.Kind == schedule.Scheduled {
			r.lastSlot = plan.Run.Time
		}
	}
	return plan.Look, nil
}

// A scheduler that was down for three hours: of what it missed, the newest slot is made up for.
func Example() {
	spec, policy := schedule.Spec{Cron: "0 * * * *"}, schedule.Policy{RunOnCreate: true, Seed: "0b9c1a8e"}
	created := time.Date(2026, 1, 5, 8, 30, 0, 0, time.UTC)
	var r remembered
	for _, now := range []time.Time{created, created.Add(time.Minute), created.Add(4 * time.Hour)} {
		again, err := r.look(spec, policy, created, now)
		fmt.Println(now.Format(time.Kitchen), "look again in", again, err)
	}
	// Output:
	// 8:30AM run create 20260105t083000z
	// 8:30AM look again in 30m0s <nil>
	// 8:31AM look again in 29m0s <nil>
	// 12:30PM skipped 3
	// 12:30PM run scheduled 20260105t120000z
	// 12:30PM look again in 30m0s <nil>
}
