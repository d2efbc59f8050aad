package keep_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"example.com/pvcbackup/schedule/keep"
)

func ExampleApply() {
	day := func(d int) time.Time { return time.Date(2026, 1, d, 3, 0, 0, 0, time.UTC) }
	items := []keep.Item{
		{ID: "a", Time: day(1), Good: true},
		{ID: "b", Time: day(2), Good: true},
		{ID: "c", Time: day(3)},
		{ID: "d", Time: day(4), Good: true},
		{ID: "e", Time: day(5), InProgress: true},
	}
	for _, v := range keep.Apply(items, keep.Rules{Daily: 2}, time.UTC) {
		fmt.Println(v.Item.ID, v.Keep, strings.Join(v.Reasons, "; "))
	}
	// Output:
	// e true in progress
	// d true the newest good one; daily 1 of 2
	// c false not good, and older than the newest good one
	// b true daily 2 of 2
	// a false no rule keeps it
}

func ExampleRules_IsZero() {
	fmt.Println(keep.Rules{}.IsZero(), keep.Rules{Last: 1}.IsZero())
	// Output: true false
}

func ExampleParseSpan() {
	span, err := keep.ParseSpan("1y5m7d2h")
	fmt.Println(span.Months, span, err)
	_, err = keep.ParseSpan("1w")
	fmt.Println(err)
	// Output:
	// 5 1y5m7d2h <nil>
	// span "1w" is not of the form 1y5m7d2h (years, months, days, hours, in this order)
}

func ExampleSpan_Before() {
	fmt.Println(keep.Span{Months: 1}.Before(time.Date(2026, 3, 31, 12, 0, 0, 0, time.UTC)))
	// Output: 2026-02-28 12:00:00 +0000 UTC
}

func ExampleSpan_UnmarshalText() {
	var rules struct{ Within keep.Span }
	err := json.Unmarshal([]byte(`{"Within": "7d"}`), &rules)
	fmt.Println(rules.Within.Days, err)
	// Output: 7 <nil>
}
