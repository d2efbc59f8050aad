package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"example.com/pvcbackup/backup/maintain"
)

// pruned is what prune prints as JSON. Sizes are in bytes.
type pruned struct {
	DryRun bool `json:"dryRun,omitempty"`
	// Deleted, Repacked and Unindexed count packs of which nothing is in use, of which a part is, and that no index
	// lists. Spared are packs that no index lists, too young to go.
	Deleted   int   `json:"deleted"`
	Repacked  int   `json:"repacked"`
	Unindexed int   `json:"unindexed"`
	Spared    int   `json:"spared"`
	Used      int64 `json:"used"`
	Unused    int64 `json:"unused"`
	Freed     int64 `json:"freed"`
}

func (t *tool) pruneCommand() *cobra.Command {
	var o maintain.PruneOptions
	var dryRun bool
	var maxRepack string
	cmd := &cobra.Command{
		Use: "prune", Short: "Free the data that no snapshot needs", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.MaxUnused < 0 || o.MaxUnused > 1 {
				return usage(fmt.Errorf("--max-unused is %g, and not between 0 and 1", o.MaxUnused))
			}
			if o.Grace < 0 {
				return usage(fmt.Errorf("--grace is %s, and not positive", o.Grace))
			}
			limit, err := parseSize(maxRepack)
			if err != nil {
				return usage(fmt.Errorf("--max-repack: %w", err))
			}
			o := maintain.PruneOptions{MaxUnused: orNone(o.MaxUnused), Grace: orNone(o.Grace), MaxRepack: limit, Now: t.Now()}
			return t.with(cmd.Context(), exclusive, func(ctx context.Context, s *session) error {
				done, err := t.prune(ctx, s, o, dryRun)
				if err != nil {
					return err
				}
				return t.show(done, done.write)
			})
		},
	}
	flags := cmd.Flags()
	flags.Float64Var(&o.MaxUnused, "max-unused", 0.05, "how much unused data may stay in packs that are in use, as a share of the data")
	flags.StringVar(&maxRepack, "max-repack", "", "how much data is moved at the most, such as 500M or 20G; the rest is for the next prune")
	flags.DurationVar(&o.Grace, "grace", 24*time.Hour, "how old a pack that no index lists must be to go")
	flags.BoolVarP(&dryRun, "dry-run", "n", false, "say what would be done, and change nothing")
	return cmd
}

// orNone turns a zero that was asked for into what package maintain takes for one.
func orNone[N float64 | time.Duration](n N) N {
	if n == 0 {
		return -1
	}
	return n
}

func (t *tool) prune(ctx context.Context, s *session, o maintain.PruneOptions, dryRun bool) (*pruned, error) {
	meter := t.meter("pruning")
	defer meter.stop()
	o.Progress = meter.bytes
	plan, err := maintain.PlanPrune(ctx, s.repository, o)
	if err != nil {
		return nil, err
	}
	done := &pruned{
		DryRun: dryRun, Deleted: len(plan.Unused), Repacked: len(plan.Repack), Unindexed: len(plan.Unindexed), Spared: plan.Spared,
		Used: plan.UsedBytes, Unused: plan.UnusedBytes, Freed: plan.FreedBytes,
	}
	if dryRun {
		return done, nil
	}
	done.Freed, err = plan.Execute(ctx)
	return done, err
}

func (p *pruned) write(w io.Writer) {
	verb := "freed"
	if p.DryRun {
		verb = "would free about"
	}
	fmt.Fprintf(w, "%s %s: %s deleted, %d rewritten, %d deleted that no index listed\n", verb, size(p.Freed), count(p.Deleted, "pack"), p.Repacked, p.Unindexed)
	fmt.Fprintf(w, "%s in use, %s not\n", size(p.Used), size(p.Unused))
	if p.Spared > 0 {
		fmt.Fprintf(w, "%s that no index lists may be of a backup that is being made, and stay for now\n", count(p.Spared, "pack"))
	}
}
