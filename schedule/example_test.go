package schedule_test

import (
	"errors"
	"fmt"
	"time"

	"example.com/pvcbackup/schedule"
)

func must(cron, zone string) *schedule.Schedule {
	s, err := schedule.Spec{Cron: cron, TimeZone: zone}.Compile("0b9c1a8e")
	if err != nil {
		panic(err)
	}
	return s
}

func ExampleSpec_Compile() {
	s, err := schedule.Spec{Cron: "H 3 * * *", TimeZone: "Europe/Berlin"}.Compile("0b9c1a8e")
	if err != nil {
		fmt.Println(err)
		return
	}
	next, _ := s.Next(time.Date(2026, 7, 1, 0, 0, 0, 0, time.UTC))
	fmt.Println(next.In(s.Location()))
	// Output: 2026-07-01 03:11:00 +0200 CEST
}

func ExampleSpecError() {
	_, err := schedule.Spec{Cron: "@every 1h"}.Compile("")
	var problem *schedule.SpecError
	fmt.Println(errors.As(err, &problem), problem.Field, problem.Reason(), problem.Terminal())
	fmt.Println(err)
	// Output:
	// true schedule InvalidSchedule true
	// schedule "@every 1h": @every depends on when the program started; write fields such as */30 * * * * or 0 */6 * * *
}

// The clock jumps from 2:00 to 3:00 on March 29.
func ExampleSchedule_Next() {
	s := must("30 2 * * *", "Europe/Berlin")
	slot := time.Date(2026, 3, 27, 12, 0, 0, 0, time.UTC)
	for range 3 {
		slot, _ = s.Next(slot)
		fmt.Println(slot.In(s.Location()))
	}
	// Output:
	// 2026-03-28 02:30:00 +0100 CET
	// 2026-03-29 03:00:00 +0200 CEST
	// 2026-03-30 02:30:00 +0200 CEST
}

func ExampleSchedule_Latest() {
	now := time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC)
	slot, ok := must("0 2 * * 1-5", "").Latest(now.AddDate(-1, 0, 0), now)
	fmt.Println(slot, ok)
	// Output: 2026-01-05 02:00:00 +0000 UTC true
}

func ExampleSchedule_Count() {
	now := time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC)
	fmt.Println(must("* * * * *", "").Count(now.AddDate(-1, 0, 0), now))
	// Output: 525600
}

func ExampleSchedule_Slots() {
	now := time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC)
	for slot := range must("0 */8 * * *", "").Slots(now.AddDate(0, 0, -1), now) {
		fmt.Println(slot)
	}
	// Output:
	// 2026-01-04 16:00:00 +0000 UTC
	// 2026-01-05 00:00:00 +0000 UTC
	// 2026-01-05 08:00:00 +0000 UTC
}

func ExampleSchedule_Interval() {
	friday := time.Date(2026, 1, 9, 1, 0, 0, 0, time.UTC)
	fmt.Println(must("0 2 * * 1-5", "").Interval(friday))
	// Output: 72h0m0s
}

// On Monday after the slot, the newest result may still be that of Friday.
func ExampleSchedule_LongestGap() {
	monday := time.Date(2026, 1, 5, 2, 30, 0, 0, time.UTC)
	fmt.Println(must("0 2 * * 1-5", "").LongestGap(monday))
	// Output: 72h0m0s
}

func ExampleSchedule_Location() {
	fmt.Println(must("0 2 * * *", "Asia/Tokyo").Location())
	// Output: Asia/Tokyo
}

func ExampleSlotID() {
	id := schedule.SlotID(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	slot, err := schedule.ParseSlotID(id)
	fmt.Println(id, slot, err)
	// Output: 20260102t030405z 2026-01-02 03:04:05 +0000 UTC <nil>
}

func ExampleParseSlotID() {
	_, err := schedule.ParseSlotID("yesterday")
	fmt.Println(err)
	// Output: slot id "yesterday" is not of the form 20260102t030405z
}

func ExampleJitter() {
	slot := time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)
	fmt.Println(schedule.Jitter("one object", 10*time.Minute, slot), schedule.Jitter("another", 10*time.Minute, slot))
	// Output: 1m46s 5m22s
}

func ExampleSlot_IsZero() {
	fmt.Println(schedule.Slot{}.IsZero())
	// Output: true
}

// What was kept in an object's status, and what is in flight, decide what to do.
func ExampleSchedule_Plan() {
	now := time.Date(2026, 1, 5, 12, 20, 0, 0, time.UTC)
	state := schedule.State{
		Created:  now.AddDate(0, -1, 0),
		LastSlot: time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC),
		Ran:      true,
	}
	plan := must("0 * * * *", "").Plan(state, schedule.Policy{}, now)
	fmt.Println("run", plan.Run.Kind, plan.Run.ID)
	fmt.Println("skipped", plan.Skipped)
	fmt.Println("next", plan.Next.Format(time.Kitchen), "in", plan.Look)
	// Output:
	// run scheduled 20260105t120000z
	// skipped 2
	// next 1:00PM in 40m0s
}

// An edit at noon: the slots of the morning never fire under the new schedule.
func ExampleMark_Update() {
	created := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	noon := time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC)
	mark := schedule.Mark{}.Update(schedule.Fingerprint(schedule.Spec{Cron: "0 3 * * *"}, schedule.Policy{}), created, created)
	fmt.Println(mark.Since)
	mark = mark.Update(schedule.Fingerprint(schedule.Spec{Cron: "0 11 * * *"}, schedule.Policy{}), created, noon)
	fmt.Println(mark.Since)
	// Output:
	// 2026-01-01 00:00:00 +0000 UTC
	// 2026-01-05 12:00:00 +0000 UTC
}

func ExampleFingerprint() {
	spec := schedule.Spec{Cron: "0 3 * * *"}
	running := schedule.Fingerprint(spec, schedule.Policy{})
	suspended := schedule.Fingerprint(spec, schedule.Policy{Suspend: true})
	fmt.Println(running == suspended)
	// Output: false
}
