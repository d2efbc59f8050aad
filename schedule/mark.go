package schedule

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"
)

// A Mark remembers since when a schedule has been in force. Keep it, for example in an object's status.
type Mark struct {
	// Fingerprint is what [Fingerprint] returned then.
	Fingerprint string
	// Since is what belongs into [State].Since.
	Since time.Time
}

// Update returns the mark to keep. A schedule that was never seen before is in force since the object was created; one
// whose fingerprint differs, since now; otherwise the mark stays as it is.
func (m Mark) Update(fingerprint string, created, now time.Time) Mark {
	switch m.Fingerprint {
	case fingerprint:
		return m
	case "":
		return Mark{Fingerprint: fingerprint, Since: created}
	}
	return Mark{Fingerprint: fingerprint, Since: now}
}

// Fingerprint changes when an edit could bring a past slot back: with the slots, the starting deadline, and Suspend. It
// does not change with the other fields of the policy, whose edit must not lose a slot that is waiting to start.
func Fingerprint(spec Spec, p Policy) string {
	zone := spec.TimeZone
	if zone == "" {
		zone = "UTC"
	}
	cron := strings.Join(strings.Fields(spec.Cron), " ")
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %t %t %d", cron, zone, spec.HashMacros, p.Suspend, max(p.StartingDeadline, 0)))
	return hex.EncodeToString(sum[:8])
}
