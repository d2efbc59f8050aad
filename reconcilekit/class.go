package reconcilekit

import (
	"context"
	"strconv"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Class says what an error means to the one who has to try again.
// Its zero value is [ClassNone].
type Class int

const (
	// ClassNone is the class of a nil error.
	ClassNone Class = iota
	// ClassConflict means that what was read is out of date: read and try again at once.
	ClassConflict
	// ClassTransient means that trying again may help; it is the class of every
	// error that says nothing about itself.
	ClassTransient
	// ClassWaiting means that nothing is wrong and something outside has to happen first.
	ClassWaiting
	// ClassTerminal means that trying again cannot help until somebody changes something.
	ClassTerminal
	// ClassStopping means that the work was cancelled, as when the manager stops.
	ClassStopping
)

// String returns the name of the class as used in metrics labels.
func (c Class) String() string {
	switch c {
	case ClassNone:
		return "None"
	case ClassConflict:
		return "Conflict"
	case ClassTransient:
		return "Transient"
	case ClassWaiting:
		return "Waiting"
	case ClassTerminal:
		return "Terminal"
	case ClassStopping:
		return "Stopping"
	default:
		return "Class(" + strconv.Itoa(int(c)) + ")"
	}
}

// Classify returns the class of err.
//
// It looks through wraps, and into joins and aggregates, where the class that
// retries soonest wins: Conflict, Transient, Waiting, Terminal, Stopping. The
// outermost opinion along a chain of wraps counts: that of this package's
// constructors, of controller-runtime's TerminalError, or of any error with a
// method Terminal() bool or RetryAfter() time.Duration. Errors of the API
// server are recognised. An error without an opinion is Transient.
//
// A bare sentinel beside another error in one fmt.Errorf with two %w counts as
// an error of its own; wrap the constructor around the whole.
func Classify(err error) Class { return judge(err).class }

// Reason returns the CamelCase condition reason of err: that of the error which
// decided its class, or else a general one for the class. It is empty for nil.
func Reason(err error) string {
	v := judge(err)
	if v.class == ClassNone {
		return ""
	}
	return reasonOr(v.reason, v.class.String())
}

// RetryAfter returns how long err asks to wait; zero when it does not say.
func RetryAfter(err error) time.Duration { return judge(err).after }

// verdict is what an error, or one branch of it, means.
type verdict struct {
	class  Class
	reason string
	after  time.Duration
	// invalid tells that the API server refused the content of a write (422).
	invalid bool
}

// sooner reports whether v is retried before w.
func (v verdict) sooner(w verdict) bool {
	switch {
	case v.class == ClassNone:
		return false
	case w.class == ClassNone:
		return true
	case v.class != w.class:
		return v.class < w.class
	case v.class == ClassWaiting:
		return v.after < w.after
	default:
		return v.reason != "" && w.reason == ""
	}
}

func judge(err error) verdict {
	if err == nil {
		return verdict{}
	}
	if own, ok := err.(*classified); ok {
		return own.verdict()
	}
	if v, ok := judgeAPI(err); ok {
		return v
	}
	if isTerminalError(err) {
		return verdict{class: ClassTerminal, reason: judgeInner(err).reason}
	}
	return judgeForeign(err)
}

// judgeForeign applies what an error says about itself on top of what it wraps.
func judgeForeign(err error) verdict {
	v := judgeInner(err)
	if r, ok := err.(interface{ Reason() string }); ok {
		v.reason = reasonOr(r.Reason(), v.reason)
	}
	if r, ok := err.(interface{ RetryAfter() time.Duration }); ok && r.RetryAfter() > 0 {
		v.class, v.after = ClassWaiting, r.RetryAfter()
	}
	if t, ok := err.(interface{ Terminal() bool }); ok {
		switch {
		case t.Terminal():
			v.class, v.after = ClassTerminal, 0
		case v.class == ClassTerminal:
			v.class = ClassTransient
		}
	}
	return v
}

// judgeInner judges what err wraps; an error that wraps nothing is Transient.
func judgeInner(err error) verdict {
	var soonest verdict
	for _, inner := range unwrap(err) {
		if v := judge(inner); v.sooner(soonest) {
			soonest = v
		}
	}
	switch {
	case soonest.class != ClassNone:
		return soonest
	case err == context.Canceled:
		return verdict{class: ClassStopping, reason: "Stopping"}
	case err == context.DeadlineExceeded:
		return verdict{class: ClassTransient, reason: "Timeout"}
	default:
		return verdict{class: ClassTransient}
	}
}

// unwrap returns the errors directly below err, also those of an aggregate of
// apimachinery, which hides them from the errors package.
func unwrap(err error) []error {
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		return []error{e.Unwrap()}
	case interface{ Unwrap() []error }:
		return e.Unwrap()
	case interface{ Errors() []error }:
		return e.Errors()
	default:
		return nil
	}
}

// leaves calls visit with every error of the tree below err that wraps nothing
// further or that stop says is to be taken whole.
func leaves(err error, stop func(error) bool, visit func(error)) {
	inner := unwrap(err)
	if stop(err) || len(inner) == 0 || (len(inner) == 1 && inner[0] == nil) {
		visit(err)
		return
	}
	for _, e := range inner {
		if e != nil {
			leaves(e, stop, visit)
		}
	}
}

// isTerminalError tells whether err itself, not what it wraps, is the terminal
// error of controller-runtime, which has no exported type.
func isTerminalError(err error) bool {
	if _, joined := err.(interface{ Errors() []error }); joined {
		return false
	}
	is, ok := err.(interface{ Is(error) bool })
	return ok && is.Is(reconcile.TerminalError(nil))
}
