package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/spf13/cobra"

	"example.com/pvcbackup/backup/browse"
	"example.com/pvcbackup/backup/repo/tree"
	"example.com/pvcbackup/backup/restorer"
)

// changeLine is how a difference is printed as JSON, one on a line.
type changeLine struct {
	Path   string    `json:"path"`
	Change string    `json:"change"`
	Type   tree.Type `json:"type"`
	// Was is the type before, if that changed.
	Was    tree.Type `json:"was,omitempty"`
	Fields []string  `json:"fields,omitempty"`
}

// diffSums is the last line.
type diffSums struct {
	Added       diffTotals `json:"added"`
	Removed     diffTotals `json:"removed"`
	Modified    uint64     `json:"modified"`
	Metadata    uint64     `json:"metadata"`
	TypeChanged uint64     `json:"typeChanged"`
}

type diffTotals struct {
	Files  uint64 `json:"files"`
	Dirs   uint64 `json:"dirs"`
	Others uint64 `json:"others"`
	// DataBlobs, TreeBlobs and BlobBytes are what only this side needs.
	DataBlobs uint64 `json:"dataBlobs"`
	TreeBlobs uint64 `json:"treeBlobs"`
	BlobBytes uint64 `json:"blobBytes"`
}

func (t *tool) diffCommand() *cobra.Command {
	var f filterFlags
	cmd := &cobra.Command{
		Use: "diff ID|latest ID|latest [PATH]", Short: "Show what changed between two snapshots",
		Args: between(2, 3, "two snapshots' IDs, or latest, and perhaps a path"),
		RunE: func(cmd *cobra.Command, args []string) error {
			below := path.Join(append([]string{"/"}, args[2:]...)...)
			return t.with(cmd.Context(), reading, func(ctx context.Context, s *session) error {
				return t.diff(ctx, s, f.named(args[0]), f.named(args[1]), below)
			})
		},
	}
	f.register(cmd, "path-filter")
	t.readFlags(cmd)
	return cmd
}

// named says which snapshot is meant: the filters are for latest only.
func (f filterFlags) named(id string) selection {
	if id == "latest" {
		return selection{host: f.host, path: f.path, tags: f.tags, oneSeries: true}
	}
	return selection{id: id}
}

func (t *tool) diff(ctx context.Context, s *session, from, to selection, below string) error {
	var nodes [2]*tree.Node
	for i, choice := range []selection{from, to} {
		chosen, err := s.choose(ctx, choice)
		if err != nil {
			return err
		}
		if i == 0 {
			err = s.repository.LoadIndex(ctx)
		}
		if err == nil {
			nodes[i], err = restorer.Base(ctx, s.repository, &chosen.Snapshot, below)
		}
		if err != nil {
			return fmt.Errorf("snapshot %s: %w", chosen.ID.Short(), err)
		}
	}
	encoder := json.NewEncoder(t.Stdout)
	encoder.SetEscapeHTML(false)
	sums, err := browse.Diff(ctx, s.repository, nodes[0], nodes[1], func(c browse.Change) error {
		c.Path = path.Join(below, c.Path)
		if t.json {
			return encoder.Encode(lineOfChange(c))
		}
		return writeChange(t.Stdout, c)
	})
	if err != nil {
		return err
	}
	if t.json {
		return encoder.Encode(map[string]diffSums{"statistics": sumsOf(sums)})
	}
	return writeSums(t.Stdout, sums)
}

func lineOfChange(c browse.Change) changeLine {
	line := changeLine{Path: c.Path, Change: c.Kind.String(), Fields: c.Fields}
	if c.Before != nil {
		line.Type = c.Before.Type
	}
	if c.After != nil {
		line.Was, line.Type = line.Type, c.After.Type
	}
	if c.Kind != browse.TypeChanged {
		line.Was = ""
	}
	return line
}

// changeMarks are stock restic's.
var changeMarks = map[browse.ChangeKind]string{
	browse.Added: "+", browse.Removed: "-", browse.Modified: "M", browse.Metadata: "U", browse.TypeChanged: "T",
}

func writeChange(w io.Writer, c browse.Change) error {
	line := lineOfChange(c)
	text := changeMarks[c.Kind] + " " + printable(c.Path)
	if line.Type == tree.Dir && c.Path != "/" {
		text += "/"
	}
	switch {
	case c.Kind == browse.Metadata:
		text += " (" + strings.Join(c.Fields, ", ") + ")"
	case c.Kind == browse.TypeChanged:
		text += fmt.Sprintf(" (%s, was %s)", line.Type, line.Was)
	}
	_, err := fmt.Fprintln(w, text)
	return err
}

func sumsOf(s *browse.DiffStats) diffSums {
	totals := func(t browse.Totals, b browse.Blobs) diffTotals {
		return diffTotals{t.Files, t.Dirs, t.Others, b.Data, b.Trees, b.Bytes}
	}
	return diffSums{
		Added: totals(s.Added, s.NewBlobs), Removed: totals(s.Removed, s.GoneBlobs),
		Modified: s.Modified, Metadata: s.Metadata, TypeChanged: s.TypeChanged,
	}
}

func writeSums(w io.Writer, s *browse.DiffStats) error {
	_, err := fmt.Fprintf(w, "\nadded %s, %s, %d others; removed %s, %s, %d others\n"+
		"%d modified, %d with other metadata, %d of another type\n"+
		"%s of data that was not needed before, %s no longer needed\n",
		count(s.Added.Files, "file"), count(s.Added.Dirs, "folder"), s.Added.Others,
		count(s.Removed.Files, "file"), count(s.Removed.Dirs, "folder"), s.Removed.Others,
		s.Modified, s.Metadata, s.TypeChanged, size(s.NewBlobs.Bytes), size(s.GoneBlobs.Bytes))
	return err
}
