package jobmover

import (
	"fmt"
	"time"

	"example.com/pvcbackup/backup"
	"example.com/pvcbackup/backup/contract"
)

// nodeGrace is what the node gets to end a Pod at its deadline by itself, before the attempt is given up from here.
// The node is the better judge: it lets the mover give back its locks, and keeps its message.
const nodeGrace = terminationGrace*time.Second + 30*time.Second

// Judge holds the deadlines against an attempt. One that broke a deadline has ended, with a failed result that says
// which and why; Stop ends what is left of it. An attempt that ended by itself is never judged. It is pure.
func Judge(seen Observed, d backup.MoverDeadlines, now time.Time) backup.MoverState {
	switch seen.Phase {
	case backup.MoverStarting:
		if over(seen.Created, d.Start, now) {
			return giveUp(seen, seen.Created.Add(d.Start), notStarted(seen, d.Start))
		}
	case backup.MoverRunning:
		// Without a newer look at the log nothing is known about progress, and nothing is held against the mover.
		if over(seen.ProgressChanged, d.NoProgress, seen.ProgressRead) {
			return giveUp(seen, seen.ProgressChanged.Add(d.NoProgress), failed(ReasonNoProgress, true, "the mover told no progress for %s%s: see whether the store and "+
				"the volume answer, or raise the no-progress deadline", d.NoProgress, last(seen.Progress)))
		}
	}
	if (seen.Phase == backup.MoverStarting || seen.Phase == backup.MoverRunning) && d.Run > 0 && over(seen.Created, d.Run+nodeGrace, now) {
		return giveUp(seen, seen.Created.Add(d.Run+nodeGrace), failed(ReasonDeadline, false, "the attempt took longer than its deadline of %s, and its node did not "+
			"end it: see whether the node answers, or raise the run deadline", d.Run))
	}
	return seen.MoverState
}

func over(since time.Time, limit time.Duration, now time.Time) bool {
	return limit > 0 && !since.IsZero() && now.Sub(since) >= limit
}

func notStarted(seen Observed, limit time.Duration) contract.Result {
	if seen.Reason == "" {
		return failed(ReasonNotStarted, true, "the mover did not start within %s", limit)
	}
	return failed(seen.Reason, true, "the mover did not start within %s: %s", limit, seen.Message)
}

func last(p *contract.Progress) string {
	if p == nil {
		return ""
	}
	return fmt.Sprintf(" since %s at %d bytes", p.Stage, p.Bytes)
}

// giveUp says that the attempt ended when the deadline passed, which is the same at every look.
func giveUp(seen Observed, at time.Time, result contract.Result) backup.MoverState {
	state := seen.MoverState
	state.Since, state.Phase, state.Reason, state.Message, state.Result = at, backup.MoverEnded, "", "", &result
	return state
}
