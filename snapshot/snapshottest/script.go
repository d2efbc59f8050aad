package snapshottest

import (
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Script says how snapshots fare. Durations count from when the driver first
// saw the object. The zero value takes a snapshot and makes it ready at once.
type Script struct {
	// Taken is how long until the data has its point in time.
	Taken time.Duration
	// Ready is how long from then until it can be used.
	Ready time.Duration
	// NeverTaken leaves it bound to a content and nothing else.
	NeverTaken bool
	// NeverReady leaves it taken and not ready.
	NeverReady bool
	// NeverBound leaves it without content and without status.
	NeverBound bool
	// Error is shown as status.error, for ErrorFor, while nothing advances; zero
	// shows it for good.
	Error    string
	ErrorFor time.Duration
	// RestoreSize is reported; nil is the source's capacity.
	RestoreSize *resource.Quantity
	// DeleteAfter is how long a deleted snapshot stays, held by a finalizer.
	DeleteAfter time.Duration
	// NeverDelete holds it for good.
	NeverDelete bool
}

// scene is what a script shows at one moment.
type scene struct {
	bound, taken, ready bool
	failure             string
	// takenAfter is the point in time, from the first look.
	takenAfter time.Duration
}

func (s Script) at(elapsed time.Duration) scene {
	if s.NeverBound {
		return scene{}
	}
	out := scene{bound: true}
	if s.Error != "" {
		if s.ErrorFor <= 0 || elapsed < s.ErrorFor {
			out.failure = s.Error
			return out
		}
		elapsed -= s.ErrorFor
		out.takenAfter = s.ErrorFor
	}
	out.taken = !s.NeverTaken && elapsed >= s.Taken
	out.takenAfter += s.Taken
	out.ready = out.taken && !s.NeverReady && elapsed >= s.Taken+s.Ready
	return out
}
