package reconcilekit

import (
	"regexp"
	"strings"
	"time"
)

// DefaultWait is how long an error of [Waiting] waits that names no time.
const DefaultWait = 10 * time.Second

// classified is an error that says what it means.
type classified struct {
	class  Class
	reason string
	after  time.Duration
	err    error
}

// Waiting returns an error that says: nothing is wrong, look again after this
// long, or sooner when something changes. The reason becomes the reason of the
// condition Reconciling; err, which may be nil, its message. An after of zero
// or less is [DefaultWait].
func Waiting(reason string, after time.Duration, err error) error {
	if after <= 0 {
		after = DefaultWait
	}
	return &classified{class: ClassWaiting, reason: reason, after: after, err: err}
}

// Terminal returns an error that says: trying again cannot help until somebody
// changes something. The reason becomes the reason of the condition Stalled;
// err, which may be nil, its message.
func Terminal(reason string, err error) error {
	return &classified{class: ClassTerminal, reason: reason, err: err}
}

// Transient returns an error that says: try again, with back-off. It overrules
// what err, which may be nil, says of itself.
func Transient(reason string, err error) error {
	return &classified{class: ClassTransient, reason: reason, err: err}
}

// Error returns the text of the wrapped error, or the reason when there is none.
func (c *classified) Error() string {
	if c.err == nil {
		return c.reason
	}
	return c.err.Error()
}

func (c *classified) Unwrap() error { return c.err }

func (c *classified) verdict() verdict {
	reason := c.reason
	if reason == "" && c.err != nil {
		reason = judge(c.err).reason
	}
	return verdict{class: c.class, reason: reason, after: c.after}
}

var notInReason = regexp.MustCompile(`[^A-Za-z0-9_]+`)

// maxReason is the longest reason that both conditions (1024) and events (128) take.
const maxReason = 128

// reasonOr returns reason made fit for a condition and begun with a capital, or fallback when nothing of
// it is left: the API server would refuse the whole status for one bad reason.
func reasonOr(reason, fallback string) string {
	reason = strings.TrimLeft(notInReason.ReplaceAllString(reason, ""), "0123456789_")
	if len(reason) > maxReason {
		reason = reason[:maxReason]
	}
	if reason == "" {
		return fallback
	}
	return strings.ToUpper(reason[:1]) + reason[1:]
}
