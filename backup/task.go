package backup

import (
	"context"
	"time"

	"example.com/pvcbackup/backup/contract"
	"example.com/pvcbackup/reconcilekit"
)

// Attempts bounds the tries of a task.
type Attempts struct {
	// Max is how many movers a task may have. Zero means 3.
	Max int
	// Backoff is the pause before the second try; it doubles with each further one. Zero means 10 s.
	Backoff time.Duration
}

const (
	defaultMaxAttempts = 3
	defaultBackoff     = 10 * time.Second
	// lookAtMover is how often a mover is looked at although no event came: for its progress and its deadlines.
	lookAtMover = 10 * time.Second
)

// TaskState is how far a task is.
type TaskState struct {
	// Attempt is the newest attempt, from 1.
	Attempt int
	// Mover is what was observed of it.
	Mover MoverState
	// Result is set when the task has ended: with the result of the attempt that succeeded, or of the last one.
	Result *contract.Result
}

// Advance does the next thing that is due for a task: it starts an attempt, observes it, or finds that the task ended.
// Until it has ended the error is a waiting one.
func Advance(ctx context.Context, mover Mover, task Task, limits Attempts, now time.Time) (TaskState, error) {
	var failedAt time.Time
	for attempt := 1; ; attempt++ {
		state, err := mover.Poll(ctx, task, attempt)
		if err != nil {
			return TaskState{Attempt: attempt}, err
		}
		out := TaskState{Attempt: attempt, Mover: state}
		switch state.Phase {
		case MoverEnded:
			if !limits.again(attempt, state.Result) {
				out.Result = state.Result
				return out, nil
			}
			failedAt = state.Since
		case MoverAbsent:
			if pause := limits.pause(attempt, failedAt, now); pause > 0 {
				return out, reconcilekit.Waiting("MoverBackoff", pause, nil)
			}
			if err := mover.Start(ctx, task, attempt); err != nil {
				return out, err
			}
			out.Mover.Phase = MoverStarting
			return out, reconcilekit.Waiting("MoverStarting", lookAtMover, nil)
		default:
			return out, waitingFor(state)
		}
	}
}

func waitingFor(state MoverState) error {
	reason := "Mover" + string(state.Phase)
	if state.Reason != "" {
		reason = state.Reason
	}
	return reconcilekit.Waiting(reason, lookAtMover, messageError(state.Message))
}

// again says whether another attempt is due after this one.
func (a Attempts) again(attempt int, result *contract.Result) bool {
	limit := a.Max
	if limit <= 0 {
		limit = defaultMaxAttempts
	}
	return result.Outcome == contract.Failed && result.Retry && attempt < limit
}

// pause is how long it still is until the attempt may start.
func (a Attempts) pause(attempt int, failedAt, now time.Time) time.Duration {
	if attempt == 1 || failedAt.IsZero() {
		return 0
	}
	backoff := a.Backoff
	if backoff <= 0 {
		backoff = defaultBackoff
	}
	return failedAt.Add(backoff << min(attempt-2, 10)).Sub(now)
}

// messageError is an error of only a message; nil without one.
func messageError(message string) error {
	if message == "" {
		return nil
	}
	return plainError(message)
}

type plainError string

func (e plainError) Error() string { return string(e) }
