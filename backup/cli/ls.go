package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"time"

	"github.com/spf13/cobra"

	"example.com/pvcbackup/backup/browse"
	"example.com/pvcbackup/backup/repo/tree"
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
	node, err := s.base(ctx, choice, below)
	if err != nil {
		return err
	}
	return browse.Walk(ctx, s.repository, below, node, func(at string, n *tree.Node) error { return t.entry(t.Stdout, at, n) })
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
