package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"example.com/pvcbackup/backup/maintain"
	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/schedule/keep"
)

type forgetFlags struct {
	filterFlags
	rules    keep.Rules
	within   string
	timeZone string
	dryRun   bool
	prune    bool
}

// forgotten is what forget prints as JSON.
type forgotten struct {
	DryRun  bool            `json:"dryRun,omitempty"`
	Kept    int             `json:"kept"`
	Removed int             `json:"removed"`
	Series  []seriesVerdict `json:"series"`
	Prune   *pruned         `json:"prune,omitempty"`
}

// seriesVerdict is about the snapshots of one host and path, for which the rules count apart from others.
type seriesVerdict struct {
	Host      string    `json:"host"`
	Paths     []string  `json:"paths"`
	Snapshots []verdict `json:"snapshots"`
}

type verdict struct {
	ID      string    `json:"id"`
	Time    time.Time `json:"time"`
	Keep    bool      `json:"keep"`
	Reasons []string  `json:"reasons"`
}

func (t *tool) forgetCommand() *cobra.Command {
	var f forgetFlags
	cmd := &cobra.Command{
		Use: "forget", Short: "Remove the snapshots that no keep rule wants", Args: cobra.NoArgs,
		Long: "Remove the snapshots that no keep rule wants. The rules count for each host and path apart, and partial and empty\n" +
			"snapshots are not counted. The newest complete snapshot always stays. The data is freed by prune.",
		RunE: func(cmd *cobra.Command, _ []string) error { return t.forget(cmd.Context(), f) },
	}
	f.register(cmd, "path")
	flags := cmd.Flags()
	for _, rule := range []struct {
		to   *int
		name string
		what string
	}{
		{&f.rules.Last, "last", "the newest N"}, {&f.rules.Hourly, "hourly", "one of each of the newest N hours"},
		{&f.rules.Daily, "daily", "one of each of the newest N days"}, {&f.rules.Weekly, "weekly", "one of each of the newest N weeks"},
		{&f.rules.Monthly, "monthly", "one of each of the newest N months"}, {&f.rules.Yearly, "yearly", "one of each of the newest N years"},
	} {
		flags.IntVar(rule.to, "keep-"+rule.name, 0, "keep "+rule.what+"; -1 is no limit")
	}
	flags.StringVar(&f.within, "keep-within", "", "keep all that are at most this much older than the newest, such as 1y5m7d2h")
	flags.StringSliceVar(&f.rules.Tags, "keep-tag", nil, "keep all with this tag; may be repeated")
	flags.StringVar(&f.timeZone, "time-zone", "UTC", "where days and weeks begin, such as Europe/Berlin")
	flags.BoolVarP(&f.dryRun, "dry-run", "n", false, "say what would be removed, and remove nothing")
	flags.BoolVar(&f.prune, "prune", false, "prune afterwards")
	return cmd
}

func (f *forgetFlags) options() (o maintain.ForgetOptions, err error) {
	if f.within != "" {
		if f.rules.Within, err = keep.ParseSpan(f.within); err != nil {
			return o, usage(fmt.Errorf("--keep-within: %w", err))
		}
	}
	if f.rules.IsZero() {
		return o, usage(errors.New("no keep rule, so nothing would be removed: give at least one of --keep-last, --keep-hourly, " +
			"--keep-daily, --keep-weekly, --keep-monthly, --keep-yearly, --keep-within and --keep-tag"))
	}
	o = maintain.ForgetOptions{Rules: f.rules, DryRun: f.dryRun}
	if o.Location, err = time.LoadLocation(f.timeZone); err != nil {
		return o, usage(fmt.Errorf("--time-zone: %w", err))
	}
	return o, nil
}

func (t *tool) forget(ctx context.Context, f forgetFlags) error {
	o, err := f.options()
	if err != nil {
		return err
	}
	return t.with(ctx, exclusive, func(ctx context.Context, s *session) error {
		done := forgotten{DryRun: f.dryRun, Series: []seriesVerdict{}}
		all, err := s.repository.Snapshots(ctx)
		if err != nil {
			return fmt.Errorf("not every snapshot can be read, so none is forgotten: %w", err)
		}
		for _, series := range seriesOf(all, f.match) {
			o.Match = func(s *repo.Snapshot) bool { return f.match(s) && keyOf(s) == keyOf(&series) }
			report, err := maintain.Forget(ctx, s.repository, o)
			done.add(series, report)
			if err != nil {
				return err
			}
		}
		if f.prune && !f.dryRun {
			if done.Prune, err = t.prune(ctx, s, maintain.PruneOptions{Now: t.Now()}, false); err != nil {
				return err
			}
		}
		return t.show(done, done.write)
	})
}

// keyOf names a series.
func keyOf(s *repo.Snapshot) string { return s.Hostname + "\x00" + strings.Join(s.Paths, "\x00") }

// seriesOf returns one snapshot of every series that has a match.
func seriesOf(all []repo.SnapshotInfo, match func(*repo.Snapshot) bool) (series []repo.Snapshot) {
	for _, s := range all {
		if match(&s.Snapshot) {
			series = append(series, s.Snapshot)
		}
	}
	slices.SortStableFunc(series, func(a, b repo.Snapshot) int { return cmp.Compare(keyOf(&a), keyOf(&b)) })
	return slices.CompactFunc(series, func(a, b repo.Snapshot) bool { return keyOf(&a) == keyOf(&b) })
}

func (f *forgotten) add(series repo.Snapshot, report maintain.ForgetReport) {
	f.Kept += report.Kept
	f.Removed += report.Removed
	out := seriesVerdict{Host: series.Hostname, Paths: series.Paths, Snapshots: []verdict{}}
	for _, v := range report.Verdicts {
		out.Snapshots = append(out.Snapshots, verdict{ID: v.Item.ID, Time: v.Item.Time, Keep: v.Keep, Reasons: v.Reasons})
	}
	f.Series = append(f.Series, out)
}

func (f *forgotten) write(w io.Writer) {
	for _, series := range f.Series {
		fmt.Fprintf(w, "host %s, path %s\n", printable(series.Host), printable(strings.Join(series.Paths, ", ")))
		rows := [][]string{}
		for _, v := range series.Snapshots {
			action := "remove"
			if v.Keep {
				action = "keep"
			}
			rows = append(rows, []string{v.ID[:8], stamp(v.Time), action, strings.Join(v.Reasons, ", ")})
		}
		table(w, []string{"ID", "TIME (UTC)", "ACTION", "WHY"}, rows)
		fmt.Fprintln(w)
	}
	verb := "removed"
	if f.DryRun {
		verb = "would remove"
	}
	fmt.Fprintf(w, "%s %s, kept %d\n", verb, count(f.Removed, "snapshot"), f.Kept)
	if f.Prune != nil {
		f.Prune.write(w)
	}
}
