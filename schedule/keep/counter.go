package keep

import "time"

// A counter keeps the first item that it sees of each period, up to a limit; below 0 there is none.
type counter struct {
	name   string
	limit  int
	period func(time.Time) int64
	seen   int
	last   int64
}

// wants says whether the item is the first of its period, and counts it.
func (c *counter) wants(t time.Time) bool {
	if c.limit >= 0 && c.seen >= c.limit {
		return false
	}
	if c.period != nil {
		p := c.period(t)
		if c.seen > 0 && p == c.last {
			return false
		}
		c.last = p
	}
	c.seen++
	return true
}

func (r Rules) counters(loc *time.Location) []*counter {
	return []*counter{
		{name: "last", limit: r.Last},
		{name: "hourly", limit: r.Hourly, period: func(t time.Time) int64 { return hour(t.In(loc)) }},
		{name: "daily", limit: r.Daily, period: func(t time.Time) int64 { return day(t.In(loc)) }},
		{name: "weekly", limit: r.Weekly, period: func(t time.Time) int64 { return week(t.In(loc)) }},
		{name: "monthly", limit: r.Monthly, period: func(t time.Time) int64 { return month(t.In(loc)) }},
		{name: "yearly", limit: r.Yearly, period: func(t time.Time) int64 { return int64(t.In(loc).Year()) }},
	}
}

// hour is the instant at which the hour began, so that a repeated hour makes two.
func hour(t time.Time) int64 { return t.Unix() - int64(t.Minute()*60+t.Second()) }

func day(t time.Time) int64 {
	y, m, d := t.Date()
	return time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Unix()
}

func week(t time.Time) int64 {
	y, w := t.ISOWeek()
	return int64(y)*100 + int64(w)
}

func month(t time.Time) int64 { return int64(t.Year())*12 + int64(t.Month()) }
