// Package schedule says when something that runs on a cron schedule is due, as pure functions of what is remembered.
//
// # What it does
//
// A [Spec] is five cron fields or a macro, and a time zone. [Spec.Compile] turns it into a [Schedule], which answers
// questions about its slots, the instants at which it fires: the next one, the newest one, how many, how far apart.
// [Schedule.Plan] combines the slots with what has happened ([State]) and what is wanted ([Policy]) and says what to
// start now and when to look again.
//
// The fields are minute, hour, day of month, month and day of week, with lists, ranges, steps and English names. If
// both day fields are restricted, a day matches when either does, as in cron. The macros are @hourly, @daily,
// @midnight, @weekly, @monthly, @yearly and @annually. H stands for a value that is derived from the seed, so that
// many objects with one expression spread out: H, H(a-b), H/n and H(a-b)/n.
//
// Daylight saving: a schedule that names hours fires once for each time of day that it names. In a repeated hour that
// is the first occurrence; a time that the clock skips is made up for at the first instant after the gap. A schedule
// that leaves the hour open (every hour) fires whenever the clock shows a matching minute, so it goes on at an even
// pace through changes of a whole hour.
//
// # Minimal use
//
//	s, err := schedule.Spec{Cron: "H 3 * * *", TimeZone: "Europe/Berlin"}.Compile(string(object.UID))
//	plan := s.Plan(state, policy, time.Now())
//	if !plan.Run.IsZero() {
//		start(plan.Run)
//	}
//	lookAgainAfter(plan.Look)
//
// # What the caller keeps
//
// Four facts must survive a restart, for example in an object's status; [State] is filled from them:
//
//   - a [Mark]: the fingerprint of the schedule and the moment since which it has been in force;
//   - LastSlot: written when a scheduled run is recorded, or when skipped slots are;
//   - Ran: whether any run was ever started (any record of an attempt will do);
//   - HandledTrigger: the token of the newest manual run, written once that run exists.
//
// Created is the object's creation, and Running is derived from whatever the run in flight has created. If a fact is
// lost the worst outcome is one extra run.
//
// # Guarantees
//
//   - Compile never panics, and what it accepts fires again and again.
//   - No slot is missed and none comes twice, in any zone.
//   - No call enumerates slots, except [Schedule.Slots]: a gap of years costs what a gap of an hour does.
//   - Plan starts at most one run for a slot, at most one for all that was missed, and never one for a slot that
//     passed before the schedule was created, edited or resumed.
//   - A [Schedule] is immutable and safe for concurrent use. Time zones are embedded.
//
// # What it never does
//
// It reads no clock, starts no goroutine, holds no state, and does no I/O beyond loading a zone in Compile.
package schedule
