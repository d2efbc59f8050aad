package keep_test

import (
	"fmt"
	"slices"
	"time"

	"example.com/pvcbackup/schedule/keep"
)

// tidy removes from a series what no rule keeps, and returns the rest.
func tidy(series []keep.Item, rules keep.Rules) []keep.Item {
	var rest []keep.Item
	for _, v := range keep.Apply(series, rules, time.UTC) {
		if v.Keep {
			rest = append(rest, v.Item)
		}
	}
	slices.Reverse(rest) // verdicts come newest first
	return rest
}

// A backup a day for two months, tidied up each day: what stays reaches far back at little cost.
func Example() {
	rules := keep.Rules{Daily: 3, Weekly: 2, Monthly: 2}
	var series []keep.Item
	for day := range 60 {
		at := time.Date(2026, 1, 1+day, 3, 0, 0, 0, time.UTC)
		series = tidy(append(series, keep.Item{ID: at.Format(time.DateOnly), Time: at, Good: true}), rules)
	}
	for _, item := range series {
		fmt.Println(item.ID)
	}
	// Output:
	// 2026-02-22
	// 2026-02-27
	// 2026-02-28
	// 2026-03-01
}
