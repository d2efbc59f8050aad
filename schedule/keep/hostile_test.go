package keep_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/pvcbackup/schedule/keep"
)

func TestNoItemOrRuleDoesHarm(t *testing.T) {
	require.Empty(t, keep.Apply(nil, keep.Rules{Last: 1}, nil))
	times := []time.Time{
		{}, time.Unix(math.MinInt64, 0), time.Unix(math.MaxInt64, 0), time.Unix(0, 0), time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC),
	}
	var items []keep.Item
	for i, at := range times {
		items = append(items, keep.Item{Time: at, Good: true}, keep.Item{ID: "\x00", Time: at, Good: i%2 == 0, Tags: []string{"", "\xff"}})
	}
	huge := keep.Span{Years: math.MaxInt, Months: math.MaxInt, Days: math.MaxInt, Hours: math.MaxInt}
	negative := keep.Span{Years: math.MinInt, Months: -1, Days: math.MinInt, Hours: math.MinInt}
	for _, n := range []int{math.MinInt, -1, 0, 1, math.MaxInt} {
		for _, span := range []keep.Span{{}, huge, negative} {
			rules := keep.Rules{Last: n, Hourly: n, Daily: n, Weekly: n, Monthly: n, Yearly: n, Within: span, Tags: []string{""}}
			verdicts := keep.Apply(items, rules, nil)
			require.Len(t, verdicts, len(items))
			require.True(t, verdicts[0].Keep, "the newest good one stays")
			for _, v := range verdicts {
				require.NotEmpty(t, v.Reasons)
			}
		}
	}
}

func TestASpanOutOfRangeIsTheNearestThatCanBeWritten(t *testing.T) {
	at := time.Date(2026, 1, 5, 12, 0, 0, 0, time.UTC)
	require.Equal(t, at, keep.Span{Years: -1, Hours: math.MinInt}.Before(at))
	require.Equal(t, keep.Span{Hours: 100_000}.Before(at), keep.Span{Hours: math.MaxInt}.Before(at))
}

func TestHostileSpansAreShortErrors(t *testing.T) {
	for _, text := range []string{
		"", " ", "-1d", "1", "d", "1d1d", "1h1y", "1_000d", "\x00", "١d", "1e3d",
		strings.Repeat("9", 1<<20) + "d", strings.Repeat("x", 1<<20),
	} {
		_, err := keep.ParseSpan(text)
		require.Error(t, err, "%.20q", text)
		require.Less(t, len(err.Error()), 300)
	}
}
