package reconcilekit

import "example.com/pvcbackup/reconcilekit/internal/stable"

// StableMessage returns the text of err made fit for a condition or an event;
// see [StableText]. It is empty for nil.
func StableMessage(err error) string {
	if err == nil {
		return ""
	}
	return StableText(err.Error())
}

// StableText returns text without what differs each time the same thing
// happens, and without credentials: URLs lose userinfo, query and fragment;
// UIDs, resource versions, times, fractional durations, network addresses and
// ports, pointers, long hexadecimal numbers and request ids become placeholders;
// line breaks become "; ". The result is at most 1000 bytes long and does not
// change when given to StableText again.
func StableText(text string) string { return stable.Text(text) }
