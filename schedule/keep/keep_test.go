package keep_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"example.com/pvcbackup/schedule/keep"
)

func at(t testing.TB, text string) time.Time {
	t.Helper()
	parsed, err := time.Parse(time.RFC3339, text)
	require.NoError(t, err)
	return parsed
}

// series makes items of "good 2026-01-01T00:00:00Z" and the like; the id is the position.
func series(t testing.TB, lines ...string) []keep.Item {
	var items []keep.Item
	for i, line := range lines {
		kind, when, _ := strings.Cut(line, " ")
		item := keep.Item{ID: fmt.Sprint(i), Time: at(t, when)}
		switch kind {
		case "good":
			item.Good = true
		case "running":
			item.InProgress = true
		case "pinned":
			item.Pinned, item.Good = true, true
		case "failed":
		default: // a tag
			item.Tags = []string{kind}
		}
		items = append(items, item)
	}
	return items
}

func TestApply(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	for _, tc := range []struct {
		name  string
		rules keep.Rules
		loc   *time.Location
		items []keep.Item
		want  []string // newest first: id, + or -, reasons
	}{
		{
			name: "zero rules keep everything", items: series(t, "good 2026-01-01T00:00:00Z", "failed 2026-01-01T01:00:00Z", "good 2026-01-01T02:00:00Z", "failed 2026-01-01T01:30:00Z"),
			want: []string{
				"2 + no rule is set, so everything stays; the newest good one",
				"3 + no rule is set, so everything stays",
				"1 + no rule is set, so everything stays",
				"0 + no rule is set, so everything stays",
			},
		}, {
			name: "the newest of each period stays", rules: keep.Rules{Hourly: 2, Daily: 2},
			items: series(t, "good 2026-01-01T10:00:00Z", "good 2026-01-01T11:00:00Z", "good 2026-01-02T10:00:00Z", "good 2026-01-02T11:00:00Z", "good 2026-01-02T11:30:00Z"),
			want: []string{
				"4 + the newest good one; hourly 1 of 2; daily 1 of 2",
				"3 - no rule keeps it",
				"2 + hourly 2 of 2",
				"1 + daily 2 of 2",
				"0 - no rule keeps it",
			},
		}, {
			name: "failed ones are not counted and go once a newer good one exists", rules: keep.Rules{Last: 2},
			items: series(t, "good 2026-01-01T01:00:00Z", "failed 2026-01-01T02:00:00Z", "good 2026-01-01T03:00:00Z", "failed 2026-01-01T04:00:00Z"),
			want: []string{
				"3 + not good, but newer than the newest good one",
				"2 + the newest good one; last 1 of 2",
				"1 - not good, and older than the newest good one",
				"0 + last 2 of 2",
			},
		}, {
			name: "without a good one nothing goes", rules: keep.Rules{Last: 1},
			items: series(t, "failed 2026-01-01T01:00:00Z", "failed 2026-01-01T02:00:00Z", "running 2026-01-01T03:00:00Z"),
			want: []string{
				"2 + in progress; nothing goes while there is no good one",
				"1 + nothing goes while there is no good one",
				"0 + nothing goes while there is no good one",
			},
		}, {
			name: "those in progress are exempt", rules: keep.Rules{Last: 1},
			items: series(t, "running 2026-01-01T01:00:00Z", "good 2026-01-01T02:00:00Z", "running 2026-01-01T03:00:00Z"),
			want:  []string{"2 + in progress", "1 + the newest good one; last 1 of 1", "0 + in progress"},
		}, {
			name: "pins and tags", rules: keep.Rules{Last: 1, Tags: []string{"release"}},
			items: series(t, "pinned 2026-01-01T01:00:00Z", "release 2026-01-01T02:00:00Z", "other 2026-01-01T03:00:00Z", "good 2026-01-01T04:00:00Z"),
			want: []string{
				"3 + the newest good one; last 1 of 1",
				"2 - not good, and older than the newest good one",
				`1 + tagged "release"`,
				"0 + pinned",
			},
		}, {
			name: "within is measured from the newest good one", rules: keep.Rules{Within: keep.Span{Days: 1}},
			items: series(t, "good 2020-01-01T00:59:59Z", "good 2020-01-01T01:00:00Z", "good 2020-01-02T01:00:00Z", "failed 2026-01-01T00:00:00Z"),
			want: []string{
				"3 + not good, but newer than the newest good one",
				"2 + the newest good one; within 1d of the newest good one",
				"1 + within 1d of the newest good one",
				"0 - no rule keeps it",
			},
		}, {
			name: "periods are those of the location", rules: keep.Rules{Daily: 2, Monthly: keep.Unlimited}, loc: berlin,
			items: series(t, "good 2026-01-31T12:00:00Z", "good 2026-01-31T23:30:00Z", "good 2026-02-01T12:00:00Z"),
			want: []string{
				"2 + the newest good one; daily 1 of 2; monthly 1 without limit",
				"1 - no rule keeps it",
				"0 + daily 2 of 2; monthly 2 without limit",
			},
		}, {
			name: "a repeated hour makes two", rules: keep.Rules{Hourly: 2}, loc: berlin,
			items: series(t, "good 2026-10-25T00:30:00Z", "good 2026-10-25T01:30:00Z"),
			want:  []string{"1 + the newest good one; hourly 1 of 2", "0 + hourly 2 of 2"},
		}, {
			name: "weeks begin on Monday and belong to one year", rules: keep.Rules{Weekly: 3, Yearly: 2},
			items: series(t, "good 2025-12-28T00:00:00Z", "good 2025-12-31T00:00:00Z", "good 2026-01-01T00:00:00Z", "good 2026-01-05T00:00:00Z"),
			want: []string{
				"3 + the newest good one; weekly 1 of 3; yearly 1 of 2",
				"2 + weekly 2 of 3",
				"1 + yearly 2 of 2",
				"0 + weekly 3 of 3",
			},
		},
		{name: "no items", rules: keep.Rules{Last: 1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var got []string
			for _, v := range keep.Apply(tc.items, tc.rules, tc.loc) {
				sign := map[bool]string{true: "+", false: "-"}[v.Keep]
				got = append(got, v.Item.ID+" "+sign+" "+strings.Join(v.Reasons, "; "))
			}
			require.Empty(t, cmp.Diff(tc.want, got))
		})
	}
}

func randomSeries(random *rand.Rand) []keep.Item {
	items := make([]keep.Item, random.IntN(60))
	start := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	for i := range items {
		items[i] = keep.Item{
			ID:         fmt.Sprint(i),
			Time:       start.Add(time.Duration(random.IntN(10000)) * 20 * time.Minute),
			Good:       random.IntN(3) > 0,
			InProgress: random.IntN(15) == 0,
			Pinned:     random.IntN(30) == 0,
		}
	}
	return items
}

func randomRules(random *rand.Rand) keep.Rules {
	n := func() int { return max(0, random.IntN(12)-6) }
	return keep.Rules{
		Last: n(), Hourly: n(), Daily: n(), Weekly: n(), Monthly: n(), Yearly: random.IntN(12) - 6,
		Within: keep.Span{Months: n() / 4, Days: n() / 2, Hours: n()},
	}
}

func checkPromises(t *testing.T, items []keep.Item, rules keep.Rules, random *rand.Rand) {
	before := slices.Clone(items)
	verdicts := keep.Apply(items, rules, nil)
	require.Equal(t, before, items, "items are changed")
	require.Len(t, verdicts, len(items))

	isGood := func(i keep.Item) bool { return i.Good && !i.InProgress }
	verdictOf := map[string]keep.Verdict{}
	var kept, good []keep.Item
	newestSeen := false
	for i, v := range verdicts {
		require.NotEmpty(t, v.Reasons)
		require.False(t, i > 0 && v.Item.Time.After(verdicts[i-1].Item.Time), "newest first")
		require.True(t, v.Keep || !v.Item.InProgress && !v.Item.Pinned && !rules.IsZero())
		if isGood(v.Item) {
			require.True(t, v.Keep || newestSeen, "the newest good one must stay")
			newestSeen = true
			good = append(good, v.Item)
		}
		if v.Keep {
			kept = append(kept, v.Item)
		}
		verdictOf[v.Item.ID] = v
	}
	if len(good) > 0 {
		require.True(t, slices.ContainsFunc(kept, isGood), "no good one would be left")
	}
	for _, v := range keep.Apply(kept, rules, nil) {
		require.True(t, v.Keep, "more goes the second time: %v", v)
	}
	for _, v := range keep.Apply(good, rules, nil) {
		require.Equal(t, verdictOf[v.Item.ID].Keep, v.Keep || v.Item.Pinned, "items that are not good change the verdict on a good one")
	}
	random.Shuffle(len(items), func(i, j int) { items[i], items[j] = items[j], items[i] })
	require.Empty(t, cmp.Diff(verdicts, keep.Apply(items, rules, nil)), "verdicts depend on the order of the items")
}

func TestPromisesHoldForRandomSeriesAndRules(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		checkPromises(t, randomSeries(random), randomRules(random), random)
	}
}

func FuzzApply(f *testing.F) {
	for seed := range uint64(8) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		random := rand.New(rand.NewPCG(seed, 3))
		checkPromises(t, randomSeries(random), randomRules(random), random)
	})
}

func TestParseSpan(t *testing.T) {
	for text, want := range map[string]keep.Span{
		"1y5m7d2h": {Years: 1, Months: 5, Days: 7, Hours: 2},
		"7d":       {Days: 7},
		"36h":      {Hours: 36},
		"1y2h":     {Years: 1, Hours: 2},
		"0h":       {},
		"100000d":  {Days: 100000},
	} {
		got, err := keep.ParseSpan(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "7", "d", "7 d", "7d ", "-7d", "+7d", "7D", "2h1d", "1d1d", "1w", "1.5d", "100001d", "99999999999999999999h", "7dx"} {
		_, err := keep.ParseSpan(text)
		require.ErrorContains(t, err, "span", text)
	}
}

func TestSpanIsMeasuredByTheCalendar(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	for _, tc := range []struct{ span, from, want string }{
		{"1m", "2026-03-31T12:00:00+02:00", "2026-02-28T12:00:00+01:00"},
		{"1y", "2024-02-29T12:00:00+01:00", "2023-02-28T12:00:00+01:00"},
		{"14m", "2026-01-15T00:00:00+01:00", "2024-11-15T00:00:00+01:00"},
		{"1d", "2026-03-29T12:00:00+02:00", "2026-03-28T12:00:00+01:00"},
		{"24h", "2026-03-29T12:00:00+02:00", "2026-03-28T11:00:00+01:00"},
	} {
		span, err := keep.ParseSpan(tc.span)
		require.NoError(t, err)
		require.Equal(t, tc.want, span.Before(at(t, tc.from).In(berlin)).Format(time.RFC3339), "%s before %s", tc.span, tc.from)
	}
}

func FuzzParseSpan(f *testing.F) {
	for _, seed := range []string{"1y5m7d2h", "7d", "0h", "2h1d", "100000y", "007d"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		span, err := keep.ParseSpan(text)
		if err != nil {
			return
		}
		written, err := span.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		var again keep.Span
		if err := again.UnmarshalText(written); err != nil || again != span {
			t.Fatalf("%q became %q became %v: %v", text, written, again, err)
		}
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		if span.Before(now).After(now) {
			t.Fatalf("%q lies in the future", text)
		}
	})
}
