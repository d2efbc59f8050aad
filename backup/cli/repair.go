package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"example.com/pvcbackup/backup/maintain"
	"example.com/pvcbackup/backup/repo"
)

// repaired is what repair index prints as JSON.
type repaired struct {
	DryRun bool `json:"dryRun,omitempty"`
	// Packs and Blobs are what the new index lists.
	Packs int `json:"packs"`
	Blobs int `json:"blobs"`
	// Added, Changed, Repeated and Missing are packs: no index listed them; one listed them otherwise; several did; they
	// are not in the store.
	Added    []repo.ID `json:"added"`
	Changed  []repo.ID `json:"changed"`
	Repeated []repo.ID `json:"repeated"`
	Missing  []repo.ID `json:"missing"`
	// Unreadable are packs whose header cannot be read. What an old index says about those kept stays.
	Unreadable []unreadablePack `json:"unreadable"`
	// Damaged are index files that could not be read, Replaced how many index files go.
	Damaged  []repo.ID `json:"damaged"`
	Replaced int       `json:"replaced"`
}

type unreadablePack struct {
	ID      repo.ID `json:"id"`
	Problem string  `json:"problem"`
	Kept    bool    `json:"kept"`
}

func (t *tool) repairCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "repair", Short: "Repair what check found", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return usage(errors.New("repair what? There is repair index")) },
	}
	cmd.AddCommand(t.repairIndexCommand())
	return cmd
}

func (t *tool) repairIndexCommand() *cobra.Command {
	var o maintain.RepairOptions
	var dryRun bool
	cmd := &cobra.Command{
		Use: "index", Short: "Make a new index from the packs", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return t.with(cmd.Context(), exclusive, func(ctx context.Context, s *session) error {
				meter := t.meter("reading headers")
				o.Progress = meter.packs
				plan, err := maintain.PlanIndexRepair(ctx, s.repository, o)
				meter.stop()
				if err == nil && !dryRun {
					err = plan.Execute(ctx)
				}
				if err != nil {
					return err
				}
				done := repairedBy(plan, dryRun)
				return t.show(done, done.write)
			})
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.DropMissing, "drop-missing-packs", false,
		"leave out packs that an index lists and the store does not have")
	flags.BoolVar(&o.SkipUnreadable, "skip-unreadable-packs", false,
		"go on without the headers of packs that cannot be read")
	flags.BoolVarP(&dryRun, "dry-run", "n", false, "say what would be done, and change nothing")
	return cmd
}

func repairedBy(plan *maintain.IndexRepair, dryRun bool) repaired {
	done := repaired{
		DryRun: dryRun, Packs: plan.Packs, Blobs: plan.Blobs, Added: orEmpty(plan.Added), Changed: orEmpty(plan.Changed),
		Repeated: orEmpty(plan.Repeated), Missing: orEmpty(plan.Missing), Unreadable: []unreadablePack{},
		Damaged: orEmpty(plan.Damaged), Replaced: plan.Replaced,
	}
	for _, pack := range plan.Unreadable {
		done.Unreadable = append(done.Unreadable, unreadablePack{pack.ID, pack.Err.Error(), pack.Kept})
	}
	return done
}

// orEmpty is an empty list in JSON for what is none.
func orEmpty(ids []repo.ID) []repo.ID { return append([]repo.ID{}, ids...) }

func (r *repaired) write(w io.Writer) {
	for _, found := range []struct {
		packs []repo.ID
		what  string
	}{
		{r.Added, "was in no index"}, {r.Changed, "was listed otherwise than its header says"},
		{r.Missing, "is not in the store: what was in it is lost"},
	} {
		for _, id := range found.packs {
			fmt.Fprintf(w, "pack %s %s\n", id, found.what)
		}
	}
	for _, pack := range r.Unreadable {
		end := "it is in no index now"
		if pack.Kept {
			end = "what an index said about it stays"
		}
		fmt.Fprintf(w, "pack %s: its header cannot be read (%s): %s\n", pack.ID, printable(pack.Problem), end)
	}
	for _, id := range r.Damaged {
		fmt.Fprintf(w, "index %s was damaged\n", id)
	}
	verb := "the new index lists"
	if r.DryRun {
		verb = "the new index would list"
	}
	fmt.Fprintf(w, "%s %s in %s, in the place of %s\n", verb,
		count(r.Blobs, "blob"), count(r.Packs, "pack"), count(r.Replaced, "index file"))
	if len(r.Missing)+len(r.Unreadable) > 0 {
		fmt.Fprintln(w, "Run check: it says which snapshots need what is gone. "+
			"The next backup stores again what its source still has.")
	}
}
