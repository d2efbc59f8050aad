package snapshot

import (
	"fmt"
	"time"
)

// Deadlines of a VolumeSnapshot, both counted from the object's creation. Zero
// is none.
type Deadlines struct {
	// Taken is how long it may last until the data has its point in time.
	Taken time.Duration
	// Ready is how long it may last until volumes can be made from it.
	Ready time.Duration
}

// Judge says whether to go on with a snapshot: nil when Ready, a WaitError
// while there is time, a DeadlineError when there is none left. A status.error
// alone is no reason to give up: storage systems report passing ones.
func Judge(o Observation, d Deadlines, now time.Time) error {
	if o.State == Ready {
		return nil
	}
	subject := subjectOf(o.Namespace, o.Name)
	limits := []Limit{{Name: "SnapshotReady", After: d.Ready}}
	if o.TakenAt.IsZero() {
		limits = append([]Limit{{Name: "SnapshotTaken", After: d.Taken}}, limits...)
	}
	return Wait{Subject: subject, Prefix: "Snapshot", State: string(o.State), Age: o.Age(now), LastError: o.LastError}.Within(limits...)
}

// Limit is one deadline: its name in CamelCase, and its length from the
// object's creation. Zero is none.
type Limit struct {
	Name  string
	After time.Duration
}

// Wait is something waited for, as of now.
type Wait struct {
	Subject   string        // the object, as "VolumeSnapshot namespace/name"
	Prefix    string        // of the reason
	State     string        // as observed
	Age       time.Duration // since its creation
	LastError string        // the last error seen; may be empty
}

// Within returns a WaitError, or a DeadlineError for the first limit that is
// over.
func (w Wait) Within(limits ...Limit) error {
	look := lookAgain
	for _, l := range limits {
		switch left := l.After - w.Age; {
		case l.After <= 0:
		case left <= 0:
			return &DeadlineError{Wait: w, Deadline: l.Name, Limit: l.After}
		default:
			look = min(look, left)
		}
	}
	return &WaitError{Wait: w, After: max(look, lookSoon)}
}

// WaitError says that there is nothing to do but to look again.
type WaitError struct {
	Wait
	// After is when to look again at the latest: in time for the next deadline,
	// between 1 and 30 seconds. A watch may tell earlier.
	After time.Duration
}

// Error implements error. The age is not in it: a message that changes with every look makes every look a write.
func (e *WaitError) Error() string {
	return fmt.Sprintf("%s is %s%s", e.Subject, e.State, lastError(e.LastError))
}

// Terminal is false.
func (e *WaitError) Terminal() bool { return false }

// Reason is the prefix and the state: SnapshotCreating, StagedPending.
func (e *WaitError) Reason() string { return e.Prefix + e.State }

// RetryAfter is After.
func (e *WaitError) RetryAfter() time.Duration { return e.After }

// DeadlineError says that the time for something is over.
type DeadlineError struct {
	Wait
	// Deadline is which one: SnapshotTaken, SnapshotReady, Staged.
	Deadline string
	// Limit is how long it was.
	Limit time.Duration
}

// Error implements error.
func (e *DeadlineError) Error() string {
	return fmt.Sprintf("%s is still %s after %s; deadline %s is %s%s",
		e.Subject, e.State, e.Age.Round(time.Second), e.Deadline, e.Limit, lastError(e.LastError))
}

// Terminal is true.
func (e *DeadlineError) Terminal() bool { return true }

// Reason is Deadline followed by DeadlineExceeded.
func (e *DeadlineError) Reason() string { return e.Deadline + "DeadlineExceeded" }

func lastError(text string) string {
	if text == "" {
		return ""
	}
	return "; the last error seen: " + text
}
