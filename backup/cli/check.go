package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"example.com/pvcbackup/backup/contract"
	"example.com/pvcbackup/backup/maintain"
)

// checked is what check prints as JSON.
type checked struct {
	Sound     bool           `json:"sound"`
	Snapshots int            `json:"snapshots"`
	Packs     int            `json:"packs"`
	Blobs     int            `json:"blobs"`
	PacksRead int            `json:"packsRead"`
	Problems  []problemFound `json:"problems"`
	Notes     []string       `json:"notes,omitempty"`
	Seconds   float64        `json:"seconds"`
}

type problemFound struct {
	Subject string `json:"subject"`
	Problem string `json:"problem"`
}

func (t *tool) checkCommand() *cobra.Command {
	var o maintain.CheckOptions
	cmd := &cobra.Command{
		Use: "check", Short: "Compare what the repository says with what is in the store (exit code 1 if it is not sound)", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.ReadFraction < 0 || o.ReadFraction > 1 {
				return usage(fmt.Errorf("--read-fraction is %g, and not between 0 and 1", o.ReadFraction))
			}
			start := t.Now()
			return t.with(cmd.Context(), checking, func(ctx context.Context, s *session) error {
				meter := t.meter("checking")
				o.Progress = meter.packs
				report, err := maintain.Check(ctx, s.repository, o)
				meter.stop()
				if err := errors.Join(err, s.confirmed(ctx)); err != nil {
					return err
				}
				return t.showCheck(report, seconds(start, t.Now()))
			})
		},
	}
	cmd.Flags().BoolVar(&o.ReadData, "read-data", false, "read every pack and verify every blob")
	cmd.Flags().Float64Var(&o.ReadFraction, "read-fraction", 0, "read this share of the packs, chosen by chance, such as 0.1")
	t.readFlags(cmd)
	return cmd
}

func (t *tool) showCheck(report *maintain.CheckReport, took float64) error {
	found := checked{
		Sound: len(report.Problems) == 0, Snapshots: report.Snapshots, Packs: report.Packs, Blobs: report.Blobs,
		PacksRead: report.PacksRead, Problems: []problemFound{}, Notes: report.Notes, Seconds: took,
	}
	for _, p := range report.Problems {
		found.Problems = append(found.Problems, problemFound{p.Subject, p.Err.Error()})
	}
	if !found.Sound {
		t.code = contract.ExitFailed
	}
	return t.show(found, func(w io.Writer) {
		fmt.Fprintf(w, "%s, %s with %s, %d of them read, in %.1f s\n",
			count(found.Snapshots, "snapshot"), count(found.Packs, "pack"), count(found.Blobs, "blob"), found.PacksRead, found.Seconds)
		for _, note := range found.Notes {
			fmt.Fprintln(w, "note:", printable(note))
		}
		for _, p := range found.Problems {
			fmt.Fprintf(w, "problem: %s: %s\n", printable(p.Subject), printable(p.Problem))
		}
		if found.Sound {
			fmt.Fprintln(w, "the repository is sound")
		} else {
			fmt.Fprintf(w, "the repository is NOT sound: %s\n", count(len(found.Problems), "problem"))
		}
	})
}
