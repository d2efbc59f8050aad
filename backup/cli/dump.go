package cli

import (
	"bufio"
	"context"
	"errors"
	"path"

	"github.com/spf13/cobra"

	"example.com/pvcbackup/backup/browse"
	"example.com/pvcbackup/backup/repo/tree"
	"example.com/pvcbackup/backup/restorer"
)

func (t *tool) dumpCommand() *cobra.Command {
	var f filterFlags
	cmd := &cobra.Command{
		Use: "dump ID|latest PATH", Short: "Write a file, or a folder as a tar stream, to standard output",
		Args: exactly(2, "a snapshot's ID, or latest, and a path"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if t.json {
				return usage(errors.New("dump writes data, so --json has no meaning"))
			}
			choice, err := restoreFlags{filterFlags: f}.selection(args[0])
			if err != nil {
				return err
			}
			return t.with(cmd.Context(), reading, func(ctx context.Context, s *session) error {
				return t.dump(ctx, s, choice, path.Join("/", args[1]))
			})
		},
	}
	f.register(cmd, "path-filter")
	t.readFlags(cmd)
	return cmd
}

func (t *tool) dump(ctx context.Context, s *session, choice selection, below string) error {
	node, err := s.base(ctx, choice, below)
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(t.Stdout, 256<<10)
	if node.Type == tree.File {
		err = browse.DumpFile(ctx, s.repository, node, out)
	} else {
		var done *browse.TarResult
		if done, err = browse.DumpTar(ctx, s.repository, node, out); err == nil && done.Sockets > 0 {
			t.warn("%s left out", count(done.Sockets, "socket"))
		}
	}
	return errors.Join(err, out.Flush())
}

// base chooses a snapshot and returns what it has at a path. It loads the index.
func (s *session) base(ctx context.Context, choice selection, below string) (*tree.Node, error) {
	chosen, err := s.choose(ctx, choice)
	if err != nil {
		return nil, err
	}
	if err := s.repository.LoadIndex(ctx); err != nil {
		return nil, err
	}
	return restorer.Base(ctx, s.repository, &chosen.Snapshot, below)
}
