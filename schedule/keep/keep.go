package keep

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Unlimited as a count keeps one item of every period that has one. So does any other negative number.
const Unlimited = -1

// Rules say what stays. An item stays if any rule wants it. The zero Rules keep everything.
type Rules struct {
	// Last is how many of the newest good items stay.
	Last int
	// Hourly, Daily, Weekly (weeks begin on Monday), Monthly and Yearly are for how many of the newest such periods that
	// have a good item the newest of them stays.
	Hourly, Daily, Weekly, Monthly, Yearly int
	// Within keeps every good item that is at most this much older than the newest good one.
	Within Span
	// Tags keep every item that carries one of them, good or not.
	Tags []string
}

// IsZero says whether there is no rule, so that everything stays.
func (r Rules) IsZero() bool {
	return r.Last == 0 && r.Hourly == 0 && r.Daily == 0 && r.Weekly == 0 && r.Monthly == 0 && r.Yearly == 0 &&
		r.Within.IsZero() && len(r.Tags) == 0
}

// An Item is one backup.
type Item struct {
	// ID identifies it to the caller; of two items with the same time, the one with the greater ID counts as newer.
	ID string
	// Time is what it is a backup of: the slot or the moment of the snapshot.
	Time time.Time
	// Good says that it is complete and can be restored from.
	Good bool
	// InProgress says that it is not yet known whether it will be good.
	InProgress bool
	// Pinned says that somebody wants it to stay.
	Pinned bool
	// Tags are compared with those of the rules.
	Tags []string
}

// A Verdict says whether an item stays, and why.
type Verdict struct {
	Item    Item
	Keep    bool
	Reasons []string // at least one, such as "hourly 3 of 24"
}

// Apply judges the items of one series. Verdicts come newest first. Periods are those of the calendar in loc; nil is UTC.
// The items are not changed.
func Apply(items []Item, rules Rules, loc *time.Location) []Verdict {
	if loc == nil {
		loc = time.UTC
	}
	verdicts := make([]Verdict, len(items))
	for i, item := range items {
		verdicts[i].Item = item
	}
	slices.SortStableFunc(verdicts, func(a, b Verdict) int {
		return cmp.Or(b.Item.Time.Compare(a.Item.Time), cmp.Compare(b.Item.ID, a.Item.ID))
	})
	newest := slices.IndexFunc(verdicts, func(v Verdict) bool { return v.Item.counts() })
	counters := rules.counters(loc)
	for i := range verdicts {
		v := &verdicts[i]
		v.judgeByItself(rules)
		if newest >= 0 && v.Item.counts() {
			v.judgeAsGood(rules, counters, verdicts[newest].Item, loc)
		}
		v.conclude(i, newest)
	}
	return verdicts
}

// counts says whether an item takes part in the counting.
func (i Item) counts() bool { return i.Good && !i.InProgress }

func (v *Verdict) keep(format string, args ...any) {
	v.Keep = true
	v.Reasons = append(v.Reasons, fmt.Sprintf(format, args...))
}

// judgeByItself applies what does not depend on the other items.
func (v *Verdict) judgeByItself(rules Rules) {
	if v.Item.InProgress {
		v.keep("in progress")
	}
	if v.Item.Pinned {
		v.keep("pinned")
	}
	for _, tag := range v.Item.Tags {
		if slices.Contains(rules.Tags, tag) {
			v.keep("tagged %q", tag)
			break
		}
	}
	if rules.IsZero() {
		v.keep("no rule is set, so everything stays")
	}
}

// judgeAsGood applies what only good items take part in. It must see them newest first.
func (v *Verdict) judgeAsGood(rules Rules, counters []*counter, newest Item, loc *time.Location) {
	if v.Item.ID == newest.ID && v.Item.Time.Equal(newest.Time) {
		v.keep("the newest good one")
	}
	if !rules.Within.IsZero() && !v.Item.Time.Before(rules.Within.Before(newest.Time.In(loc))) {
		v.keep("within %s of the newest good one", rules.Within)
	}
	for _, c := range counters {
		if !c.wants(v.Item.Time) {
			continue
		}
		if c.limit < 0 {
			v.keep("%s %d without limit", c.name, c.seen)
		} else {
			v.keep("%s %d of %d", c.name, c.seen, c.limit)
		}
	}
}

// conclude gives the reasons that depend on where the newest good item stands.
func (v *Verdict) conclude(position, newest int) {
	switch {
	case newest < 0:
		v.keep("nothing goes while there is no good one")
	case v.Item.InProgress || v.Item.Good:
	case position < newest:
		v.keep("not good, but newer than the newest good one")
	case !v.Keep:
		v.Reasons = append(v.Reasons, "not good, and older than the newest good one")
	}
	if len(v.Reasons) == 0 {
		v.Reasons = append(v.Reasons, "no rule keeps it")
	}
}
