package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"example.com/pvcbackup/backup/browse"
	"example.com/pvcbackup/backup/repo"
)

// usageFound is what stats prints as JSON. Sizes are in bytes.
type usageFound struct {
	Snapshots    int    `json:"snapshots"`
	Files        uint64 `json:"files"`
	Dirs         uint64 `json:"dirs"`
	Others       uint64 `json:"others"`
	RestoreBytes uint64 `json:"restoreBytes"`
	DataBlobs    uint64 `json:"dataBlobs"`
	TreeBlobs    uint64 `json:"treeBlobs"`
	BlobBytes    uint64 `json:"blobBytes"`
	StoredBytes  uint64 `json:"storedBytes"`
}

func (t *tool) statsCommand() *cobra.Command {
	var f filterFlags
	cmd := &cobra.Command{
		Use: "stats [ID…]", Short: "Say how much data snapshots hold, and how much of the store they need",
		RunE: func(cmd *cobra.Command, args []string) error {
			return t.with(cmd.Context(), reading, func(ctx context.Context, s *session) error {
				snapshots, err := s.several(ctx, f, args)
				if err != nil {
					return err
				}
				if err := s.repository.LoadIndex(ctx); err != nil {
					return err
				}
				found, err := browse.Stats(ctx, s.repository, snapshots)
				if err != nil {
					return err
				}
				return t.show(usageFound(*found), func(w io.Writer) { writeUsage(w, found) })
			})
		},
	}
	f.register(cmd, "path")
	t.readFlags(cmd)
	return cmd
}

// several returns the snapshots with these IDs, or, without one, those that match.
func (s *session) several(ctx context.Context, f filterFlags, ids []string) (chosen []repo.SnapshotInfo, err error) {
	if len(ids) > 0 && (f.host != "" || f.path != "" || len(f.tags) > 0) {
		return nil, usage(fmt.Errorf("the snapshots are named by their IDs, so --host, --path and --tag have no meaning"))
	}
	all, err := s.repository.Snapshots(ctx)
	if err != nil && (len(ids) == 0 || len(all) == 0) {
		return nil, fmt.Errorf("not every snapshot can be read: %w", err)
	}
	for _, id := range ids {
		one, err := byID(all, id)
		if err != nil {
			return nil, err
		}
		chosen = append(chosen, one)
	}
	for _, one := range all {
		if len(ids) == 0 && f.match(&one.Snapshot) {
			chosen = append(chosen, one)
		}
	}
	return chosen, nil
}

func writeUsage(w io.Writer, u *browse.Usage) {
	fmt.Fprintf(w, "%s: %s, %s and %d others, which take %s when they are restored\n", count(u.Snapshots, "snapshot"),
		count(u.Files, "file"), count(u.Dirs, "folder"), u.Others, size(u.RestoreBytes))
	fmt.Fprintf(w, "needed: %s of data and %d of trees, of %s, which take %s in the store\n", count(u.DataBlobs, "blob"),
		u.TreeBlobs, size(u.BlobBytes), size(u.StoredBytes))
}
