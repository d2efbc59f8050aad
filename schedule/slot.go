package schedule

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"time"
)

// Kind says why a run is due.
type Kind string

// The kinds of runs.
const (
	// Scheduled runs belong to a slot of the schedule.
	Scheduled Kind = "scheduled"
	// Create is the first run of a new object, outside the schedule.
	Create Kind = "create"
	// Manual runs were asked for by a trigger.
	Manual Kind = "manual"
)

// A Slot identifies one run. The zero Slot is none.
type Slot struct {
	// Time is the slot of a scheduled run, the creation of the object for its first, and about the time of the request
	// for a manual one. Only the first two are the same each time they are planned.
	Time time.Time
	Kind Kind
	// ID is the same each time the run is planned and differs from that of every other run of the object. It is 16
	// characters long, fits into a DNS label, and sorts by time unless it is manual.
	ID string
	// Token is the trigger that a manual run serves, else empty.
	Token string
}

// IsZero says whether there is no run.
func (s Slot) IsZero() bool { return s.ID == "" }

const slotIDLayout = "20060102t150405z"

// SlotID names an instant, rounded down to seconds, so that names sort by time and fit into a DNS label:
// 20260102t030405z.
func SlotID(t time.Time) string { return t.UTC().Format(slotIDLayout) }

// ParseSlotID reads exactly what [SlotID] writes for the years 0 to 9999.
func ParseSlotID(id string) (time.Time, error) {
	t, err := time.Parse(slotIDLayout, id)
	if err != nil || SlotID(t) != id {
		return time.Time{}, fmt.Errorf("slot id %.40q is not of the form 20260102t030405z", id)
	}
	return t, nil
}

// manualID names the run for a token. The token served before is part of it, so that a token may be used again later.
func manualID(handled, token string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q", handled, token))
	return "m" + hex.EncodeToString(sum[:])[:15]
}

// Jitter returns a delay of at least 0 and less than limit, in whole seconds, that depends on nothing but its arguments
// and differs from slot to slot and from seed to seed.
func Jitter(seed string, limit time.Duration, slot time.Time) time.Duration {
	steps := uint64(max(limit, 0) / time.Second)
	if steps == 0 {
		return 0
	}
	var when [8]byte
	binary.BigEndian.PutUint64(when[:], uint64(slot.Unix()))
	return time.Duration(hash(seed, string(when[:]))%steps) * time.Second
}
