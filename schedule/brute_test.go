package schedule_test

import (
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/robfig/cron/v3"
	"github.com/stretchr/testify/require"
)

// matches is the naive reading of an expression.
func matches(t testing.TB, expression string) (match func(wall int64) bool, everyHour bool) {
	parsed, err := cron.ParseStandard(expression)
	require.NoError(t, err)
	c := parsed.(*cron.SpecSchedule)
	const star = uint64(1) << 63
	return func(wall int64) bool {
		w := time.Unix(wall, 0).UTC()
		if c.Minute&(1<<w.Minute()) == 0 || c.Hour&(1<<w.Hour()) == 0 || c.Month&(1<<w.Month()) == 0 {
			return false
		}
		dom, dow := c.Dom&(1<<w.Day()) != 0, c.Dow&(1<<w.Weekday()) != 0
		if (c.Dom|c.Dow)&star != 0 {
			return dom && dow
		}
		return dom || dow
	}, c.Hour&^star == 1<<24-1
}

// A clock lists what a zone's wall clock shows, minute by minute.
type clock struct {
	first int64 // Unix seconds
	walls []int64
}

const warmUp = 50 * 60 // minutes: what was shown within two days before

func newClock(loc *time.Location, from, to int64) clock {
	c := clock{first: from - warmUp*60}
	for at := c.first; at <= to; at += 60 {
		_, offset := time.Unix(at, 0).In(loc).Zone()
		c.walls = append(c.walls, at+int64(offset))
	}
	return c
}

// slots walks the clock the way that the documentation tells it: with fixed hours, a time fires when it is shown for
// the first time, and times that the clock jumps over fire at once; with every hour, whatever is shown fires.
func (c clock) slots(match func(int64) bool, everyHour bool) []int64 {
	var slots []int64
	seen := map[int64]bool{}
	for i, wall := range c.walls {
		fires := match(wall) && (everyHour || !seen[wall])
		if i > 0 && !everyHour {
			for skipped := c.walls[i-1] + 60; skipped < wall; skipped += 60 {
				fires = fires || match(skipped) && !seen[skipped]
				seen[skipped] = true
			}
		}
		seen[wall] = true
		if fires && i >= warmUp {
			slots = append(slots, c.first+int64(i)*60)
		}
	}
	return slots
}

func zoneNames(t testing.TB) []string {
	data, err := os.ReadFile("testdata/zones.txt")
	require.NoError(t, err)
	names := strings.Fields(string(data))
	require.Greater(t, len(names), 500)
	return names
}

var bruteSpecs = []string{
	"30 * * * *", "*/20 * * * *", "0 0 * * *", "30 1 * * *", "*/15 2 * * *", "15 0,1,2,3 * * *", "0 */2 * * *",
	"59 23 * * *", "0,1 0 * * *", "30 6-16/4 * * 1-5", "10 0-22 * * 6,0", "0 3 1,15,30 * 2", "5 * 1-7 * *",
}

// Every kind of change that any zone has made since 1975 (the last seconds in offsets are from 1972) or will make.
func TestNoSlotIsMissedOrComesTwiceInAnyZone(t *testing.T) {
	type kind struct{ before, after, clock int64 }
	done := map[kind]bool{}
	for _, name := range zoneNames(t) {
		loc, err := time.LoadLocation(name)
		require.NoError(t, err)
		for from := at(t, "1975-01-01T00:00:00Z"); ; {
			_, change := from.In(loc).ZoneBounds()
			if change.IsZero() || change.Year() > 2037 {
				break
			}
			if !change.After(from) {
				change = from.Add(24 * time.Hour) // ZoneBounds takes the last day of a leap year for the next year
			}
			from = change
			_, before := change.Add(-time.Second).Zone()
			_, after := change.Zone()
			k := kind{int64(before), int64(after), (change.Unix() + int64(after)) % (24 * 60 * 60)}
			if before == after || done[k] {
				continue
			}
			done[k] = true
			compareAround(t, name, loc, change)
		}
	}
	require.Greater(t, len(done), 200)
}

func compareAround(t *testing.T, name string, loc *time.Location, change time.Time) {
	from, to := change.Add(-26*time.Hour), change.Add(50*time.Hour)
	c := newClock(loc, from.Unix(), to.Unix())
	for _, spec := range bruteSpecs {
		s := compile(t, spec, name)
		want := c.slots(matches(t, spec))
		var got []int64
		for slot := range s.Slots(from.Add(-time.Second), to) {
			got = append(got, slot.Unix())
		}
		require.Empty(t, cmp.Diff(want, got), "%s in %s around %s", spec, name, change)
		require.Equal(t, len(want), s.Count(from.Add(-time.Second), to), "%s in %s around %s", spec, name, change)
		for i := len(want) - 1; i > 0; i-- {
			slot, ok := s.Latest(from, time.Unix(want[i]-1, 0))
			require.True(t, ok && slot.Unix() == want[i-1] || want[i-1] == from.Unix(), "%s in %s: %s", spec, name, slot)
		}
	}
}

// Next, Latest and Count agree with a minute-by-minute walk for random windows.
func TestRandomWindowsAgreeWithBruteForce(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	names := zoneNames(t)
	for range 400 {
		checkWindow(t, bruteSpecs[random.IntN(len(bruteSpecs))], names[random.IntN(len(names))],
			at(t, "1976-01-01T00:00:00Z").Unix()+random.Int64N(60*365*24*60*60), random.Int64N(3*24*60*60))
	}
}

func checkWindow(t *testing.T, spec, zone string, from, length int64) {
	loc, err := time.LoadLocation(zone)
	require.NoError(t, err)
	s := compile(t, spec, zone)
	minute := from - from%60
	since, now := time.Unix(from, 0), time.Unix(from+length, 0)
	var want []int64
	for _, slot := range newClock(loc, minute, from+length).slots(matches(t, spec)) {
		if slot > from && slot <= from+length {
			want = append(want, slot)
		}
	}
	require.Equal(t, len(want), s.Count(since, now), "count of %s in %s from %s to %s", spec, zone, since, now)
	latest, ok := s.Latest(since, now)
	next, _ := s.Next(since)
	if len(want) == 0 {
		require.False(t, ok, "%s in %s from %s to %s has %s", spec, zone, since, now, latest)
		require.True(t, next.After(now))
		return
	}
	require.Equal(t, want[len(want)-1], latest.Unix(), "latest of %s in %s from %s to %s", spec, zone, since, now)
	require.Equal(t, want[0], next.Unix(), "next of %s in %s after %s", spec, zone, since)
}

func FuzzSlotsAgreeWithBruteForce(f *testing.F) {
	for i, spec := range bruteSpecs {
		f.Add(spec, uint16(i*41), int64(1_300_000_000+i*5_000_000), uint32(100_000))
	}
	names := zoneNames(f)
	f.Fuzz(func(t *testing.T, spec string, zone uint16, from int64, length uint32) {
		if strings.Contains(spec, "H") {
			return // hashed, which the naive reading does not know
		}
		if _, err := specOf(spec).Compile(""); err != nil {
			return
		}
		const first, years = 160_000_000, 65 * 365 * 24 * 60 * 60
		checkWindow(t, spec, names[int(zone)%len(names)], first+(from%years+years)%years, int64(length%(4*24*60*60)))
	})
}
