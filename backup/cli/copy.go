package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"example.com/pvcbackup/backup/copier"
	"example.com/pvcbackup/backup/repo"
)

// copied is what copy prints as JSON. Sizes are in bytes.
type copied struct {
	DryRun bool `json:"dryRun,omitempty"`
	// Copied are the snapshots that were copied, Present those of which there was a copy.
	Copied  []copyLine `json:"copied"`
	Present []copyLine `json:"present"`
	Blobs   int64      `json:"blobs"`
	// Bytes are before compression, Added is what they take in the store.
	Bytes int64 `json:"bytes"`
	Added int64 `json:"added"`
	// SameChunker says that both repositories cut files alike.
	SameChunker bool    `json:"sameChunker"`
	Seconds     float64 `json:"seconds"`
}

type copyLine struct {
	From string `json:"from"`
	To   string `json:"to,omitempty"`
}

func (t *tool) copyCommand() *cobra.Command {
	var filters filterFlags
	var from fromFlags
	var o copier.Options
	cmd := &cobra.Command{
		Use: "copy [ID…]", Short: "Copy snapshots from another repository into this one",
		RunE: func(cmd *cobra.Command, args []string) error {
			source, err := t.openFrom(cmd.Context(), from)
			if err != nil {
				return err
			}
			defer source.store.Close()
			return t.hold(cmd.Context(), source, reading, func(ctx context.Context, source *session) error {
				return t.with(ctx, writing, func(ctx context.Context, s *session) error {
					snapshots, err := source.several(ctx, filters, args)
					if err != nil {
						return err
					}
					return t.copy(ctx, source.repository, s.repository, snapshots, o)
				})
			})
		},
	}
	from.register(t, cmd)
	filters.register(cmd, "path")
	cmd.Flags().BoolVarP(&o.DryRun, "dry-run", "n", false, "say what would be copied, and change nothing")
	return cmd
}

func (t *tool) copy(
	ctx context.Context, from, to *repo.Repository, snapshots []repo.SnapshotInfo, o copier.Options,
) error {
	start, meter := t.Now(), t.meter("copying")
	o.MemoryBudget = t.memory.budget()
	o.Progress = func(p copier.Progress) { meter.bytes(int64(p.Bytes), int64(p.TotalBytes)) }
	result, err := copier.Copy(ctx, from, to, snapshots, o)
	meter.stop()
	if err != nil {
		return err
	}
	if !result.SameChunker && len(result.Copied) > 0 {
		t.warn("the repositories cut files differently, so backups into this one will store again what was copied: " +
			"a repository made by init --copy-chunker-params does not")
	}
	done := copied{
		DryRun: o.DryRun, Copied: linesOfCopies(result.Copied), Present: linesOfCopies(result.Present),
		Blobs: result.Stats.DataBlobs + result.Stats.TreeBlobs, Bytes: result.Stats.Bytes, Added: result.Stats.PackedBytes,
		SameChunker: result.SameChunker, Seconds: seconds(start, t.Now()),
	}
	return t.show(done, done.write)
}

func linesOfCopies(copies []copier.Copied) []copyLine {
	lines := []copyLine{}
	for _, c := range copies {
		line := copyLine{From: c.From.String()}
		if !c.To.IsZero() {
			line.To = c.To.String()
		}
		lines = append(lines, line)
	}
	return lines
}

func (c *copied) write(w io.Writer) {
	for _, line := range c.Copied {
		if c.DryRun {
			fmt.Fprintf(w, "would copy snapshot %.8s\n", line.From)
		} else {
			fmt.Fprintf(w, "copied snapshot %.8s as %.8s\n", line.From, line.To)
		}
	}
	if c.DryRun {
		fmt.Fprintf(w, "would copy %s, %d are there already\n", count(len(c.Copied), "snapshot"), len(c.Present))
		return
	}
	fmt.Fprintf(w, "copied %s, %d were there already; added %s of data in %s, which take %s in the store\n",
		count(len(c.Copied), "snapshot"), len(c.Present), size(c.Bytes), count(c.Blobs, "blob"), size(c.Added))
}
