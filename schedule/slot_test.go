package schedule_test

import (
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/pvcbackup/schedule"
)

func TestSlotIDsSortByTimeAndFitIntoDNSLabels(t *testing.T) {
	label := regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`)
	previous := ""
	for year := 1; year < 9999; year += 7 {
		id := schedule.SlotID(time.Date(year, time.Month(year%12+1), year%28+1, year%24, year%60, 59, 1, time.UTC))
		require.Regexp(t, label, id)
		require.Len(t, id, 16)
		require.Greater(t, id, previous)
		previous = id
	}
	berlin := time.FixedZone("", 3600)
	require.Equal(t, "20260102t030405z", schedule.SlotID(time.Date(2026, 1, 2, 4, 4, 5, 999, berlin)))
}

func TestParseSlotIDRefusesWhatSlotIDDoesNotWrite(t *testing.T) {
	for _, id := range []string{"", "20260102T030405Z", "20260102t030405", "20260102t030405z ", "20260132t030405z", "20260102t030405.1z", "m0123456789abcde"} {
		_, err := schedule.ParseSlotID(id)
		require.ErrorContains(t, err, "slot id", id)
	}
}

func FuzzParseSlotID(f *testing.F) {
	f.Add("20260102t030405z")
	f.Add("00000101t000000z")
	f.Add("20260102t030405.5z")
	f.Fuzz(func(t *testing.T, id string) {
		slot, err := schedule.ParseSlotID(id)
		if err == nil && schedule.SlotID(slot) != id {
			t.Fatalf("%q was read as %v", id, slot)
		}
	})
}

func TestJitterIsEvenStableAndBounded(t *testing.T) {
	slot := at(t, "2026-01-01T03:00:00Z")
	const limit = 10 * time.Minute
	minutes := make([]int, 10)
	for i := range 5000 {
		delay := schedule.Jitter(string(rune(i+1)), limit, slot)
		require.Equal(t, delay, schedule.Jitter(string(rune(i+1)), limit, slot))
		require.GreaterOrEqual(t, delay, time.Duration(0))
		require.Less(t, delay, limit)
		minutes[delay/time.Minute]++
	}
	for _, n := range minutes {
		require.InDelta(t, 500, n, 130)
	}
	require.NotEqual(t, schedule.Jitter("a", time.Hour, slot), schedule.Jitter("a", time.Hour, slot.Add(time.Hour)))
	require.NotEqual(t, schedule.Jitter("a", time.Hour, slot), schedule.Jitter("b", time.Hour, slot))
	for _, none := range []time.Duration{-time.Hour, 0, time.Second - 1, time.Second} {
		require.Zero(t, schedule.Jitter("a", none, slot))
	}
}

func TestMarkMovesOnlyWithTheFingerprint(t *testing.T) {
	created, now := at(t, "2026-01-01T00:00:00Z"), at(t, "2026-01-01T10:00:00Z")
	first := schedule.Mark{}.Update("a", created, now)
	require.Equal(t, schedule.Mark{Fingerprint: "a", Since: created}, first)
	require.Equal(t, first, first.Update("a", created, now.Add(time.Hour)))
	require.Equal(t, schedule.Mark{Fingerprint: "b", Since: now}, first.Update("b", created, now))
}

func TestFingerprintChangesWithWhateverCouldBringAPastSlotBack(t *testing.T) {
	spec, policy := schedule.Spec{Cron: "0 3 * * *"}, schedule.Policy{}
	base := schedule.Fingerprint(spec, policy)
	require.Len(t, base, 16)
	seen := map[string]bool{base: true}
	for _, edited := range []string{
		schedule.Fingerprint(schedule.Spec{Cron: "0 4 * * *"}, policy),
		schedule.Fingerprint(schedule.Spec{Cron: "0 3 * * *", TimeZone: "Europe/Berlin"}, policy),
		schedule.Fingerprint(schedule.Spec{Cron: "0 3 * * *", HashMacros: true}, policy),
		schedule.Fingerprint(spec, schedule.Policy{Suspend: true}),
		schedule.Fingerprint(spec, schedule.Policy{StartingDeadline: time.Hour}),
	} {
		require.False(t, seen[edited])
		seen[edited] = true
	}
	for _, same := range []string{
		schedule.Fingerprint(schedule.Spec{Cron: " 0  3 * * *", TimeZone: "UTC"}, policy),
		schedule.Fingerprint(spec, schedule.Policy{RunOnCreate: true, Jitter: time.Hour, Overlap: schedule.Allow}),
	} {
		require.Equal(t, base, same)
	}
}
