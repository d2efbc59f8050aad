package cli

import (
	"context"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"example.com/pvcbackup/backup/archiver"
	"example.com/pvcbackup/backup/repo"
)

// snapshotLine is how a snapshot is printed as JSON.
type snapshotLine struct {
	ID    string    `json:"id"`
	Time  time.Time `json:"time"`
	Host  string    `json:"host"`
	Paths []string  `json:"paths"`
	Tags  []string  `json:"tags,omitempty"`
	// Complete snapshots are of a whole source that was not empty. Others are never taken for the latest.
	Complete bool `json:"complete"`
	// Files, Bytes and Added are zero if the snapshot does not say.
	Files uint64 `json:"files,omitempty"`
	Bytes uint64 `json:"bytes,omitempty"`
	Added uint64 `json:"added,omitempty"`
}

func lineOf(s repo.SnapshotInfo) snapshotLine {
	line := snapshotLine{ID: s.ID.String(), Time: s.Time, Host: s.Hostname, Paths: s.Paths, Tags: s.Tags, Complete: archiver.Complete(s.Tags)}
	if sum := s.Summary; sum != nil {
		line.Files, line.Bytes, line.Added = sum.TotalFilesProcessed, sum.TotalBytesProcessed, sum.DataAddedPacked
	}
	return line
}

// filterFlags choose snapshots.
type filterFlags struct {
	host, path string
	tags       []string
}

func (f *filterFlags) register(cmd *cobra.Command, pathFlag string) {
	cmd.Flags().StringVar(&f.host, "host", "", "only snapshots of this host")
	cmd.Flags().StringVar(&f.path, pathFlag, "", "only snapshots of this path")
	cmd.Flags().StringSliceVar(&f.tags, "tag", nil, "only snapshots with this tag; may be repeated, then with all of them")
}

func (f filterFlags) match(s *repo.Snapshot) bool {
	return mine(f.host, f.path)(s) && hasTags(s.Tags, f.tags)
}

func (t *tool) snapshotsCommand() *cobra.Command {
	var f filterFlags
	cmd := &cobra.Command{
		Use: "snapshots", Short: "List snapshots, the newest last", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return t.with(cmd.Context(), reading, func(ctx context.Context, s *session) error {
				// What can be read is shown even when something cannot.
				all, failed := s.repository.Snapshots(ctx)
				lines := []snapshotLine{}
				for _, snapshot := range all {
					if f.match(&snapshot.Snapshot) {
						lines = append(lines, lineOf(snapshot))
					}
				}
				if failed != nil && len(all) == 0 {
					return failed
				}
				if failed != nil {
					t.warn("not every snapshot can be read: %v", failed)
					t.code = failure("", failed).ExitCode()
				}
				return t.show(map[string]any{"snapshots": lines}, func(w io.Writer) { snapshotTable(w, lines) })
			})
		},
	}
	f.register(cmd, "path")
	t.readFlags(cmd)
	return cmd
}

func snapshotTable(w io.Writer, lines []snapshotLine) {
	rows := [][]string{}
	for _, line := range lines {
		volume := "-"
		if line.Files > 0 || line.Bytes > 0 {
			volume = size(line.Bytes)
		}
		rows = append(rows, []string{line.ID[:8], stamp(line.Time), line.Host, strings.Join(line.Paths, ", "), volume, strings.Join(line.Tags, ",")})
	}
	table(w, []string{"ID", "TIME (UTC)", "HOST", "PATH", "SIZE", "TAGS"}, rows)
}
