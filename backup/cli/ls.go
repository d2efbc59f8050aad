package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"time"

	"github.com/spf13/cobra"

	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/backup/repo/tree"
	"example.com/pvcbackup/backup/restorer"
)

// entryLine is how an entry is printed as JSON, one on a line.
type entryLine struct {
	// Path is below the source, and begins with a slash.
	Path   string    `json:"path"`
	Type   tree.Type `json:"type"`
	Mode   string    `json:"mode"`
	UID    uint32    `json:"uid"`
	GID    uint32    `json:"gid"`
	Size   uint64    `json:"size,omitempty"`
	Time   time.Time `json:"time"`
	Target string    `json:"target,omitempty"`
}

func (t *tool) lsCommand() *cobra.Command {
	var f filterFlags
	cmd := &cobra.Command{
		Use: "ls ID|latest [PATH]", Short: "List what a snapshot holds", Args: between(1, 2, "a snapshot's ID, or latest, and perhaps a path"),
		RunE: func(cmd *cobra.Command, args []string) error {
			choice, err := restoreFlags{filterFlags: f}.selection(args[0])
			if err != nil {
				return err
			}
			below := path.Join(append([]string{"/"}, args[1:]...)...)
			return t.with(cmd.Context(), reading, func(ctx context.Context, s *session) error {
				return t.ls(ctx, s, choice, below)
			})
		},
	}
	f.register(cmd, "path-filter")
	t.readFlags(cmd)
	return cmd
}

func (t *tool) ls(ctx context.Context, s *session, choice selection, below string) error {
	chosen, err := s.choose(ctx, choice)
	if err != nil {
		return err
	}
	if err := s.repository.LoadIndex(ctx); err != nil {
		return err
	}
	node, err := restorer.Base(ctx, s.repository, &chosen.Snapshot, below)
	if err != nil {
		return err
	}
	return t.list(ctx, s.repository, below, node)
}

// list prints an entry, and then everything below it, depth first.
func (t *tool) list(ctx context.Context, r *repo.Repository, at string, node *tree.Node) error {
	if err := t.entry(t.Stdout, at, node); err != nil {
		return err
	}
	if node.Type != tree.Dir {
		return nil
	}
	encoded, err := r.LoadBlob(ctx, repo.BlobHandle{Type: repo.TreeBlob, ID: node.Subtree}, nil)
	if err != nil {
		return fmt.Errorf("%.200q: %w", at, err)
	}
	for child, err := range tree.All(encoded) {
		if err != nil {
			return fmt.Errorf("%.200q: %w", at, err)
		}
		if err := t.list(ctx, r, path.Join(at, child.Name), child); err != nil {
			return err
		}
	}
	return nil
}

func (t *tool) entry(w io.Writer, at string, node *tree.Node) error {
	line := entryLine{
		Path: at, Type: node.Type, Mode: node.Mode.String(), UID: node.UID, GID: node.GID, Size: node.Size, Time: node.ModTime, Target: node.LinkTarget,
	}
	if t.json {
		encoder := json.NewEncoder(w)
		encoder.SetEscapeHTML(false)
		return encoder.Encode(line)
	}
	arrow := ""
	if node.Type == tree.Symlink {
		arrow = " -> " + printable(node.LinkTarget)
	}
	_, err := fmt.Fprintf(w, "%s %5d %5d %10d %s %s%s\n", line.Mode, line.UID, line.GID, line.Size, stamp(line.Time), printable(at), arrow)
	return err
}
