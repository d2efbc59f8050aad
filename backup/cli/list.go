package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"example.com/pvcbackup/backup/repo"
)

const listWhat = "packs, blobs, indexes, snapshots, keys or locks"

// lists are the types of files by the arguments of list.
var lists = map[string]repo.FileType{
	"packs": repo.PackFile, "indexes": repo.IndexFile, "snapshots": repo.SnapshotFile, "keys": repo.KeyFile,
	"locks": repo.LockFile,
}

func (t *tool) listCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "list WHAT", Short: "List the objects of a type: " + listWhat, Args: exactly(1, listWhat),
		RunE: func(cmd *cobra.Command, args []string) error {
			kind, known := lists[args[0]]
			if !known && args[0] != "blobs" {
				return usage(fmt.Errorf("list shows %s, not %.100q", listWhat, args[0]))
			}
			return t.with(cmd.Context(), reading, func(ctx context.Context, s *session) error {
				if !known {
					return t.listBlobs(ctx, s.repository)
				}
				return t.listFiles(ctx, s.repository, kind)
			})
		},
	}
	t.readFlags(cmd)
	return cmd
}

// fileLine is how an object is printed as JSON, one on a line.
type fileLine struct {
	ID   repo.ID   `json:"id"`
	Size int64     `json:"size"`
	Time time.Time `json:"time"`
}

func (t *tool) listFiles(ctx context.Context, r *repo.Repository, kind repo.FileType) error {
	for file, err := range r.ListFiles(ctx, kind) {
		if err != nil {
			return err
		}
		if err := t.line(fileLine{file.ID, file.Size, file.ModTime}, file.ID.String()); err != nil {
			return err
		}
	}
	return nil
}

// blobLine is how a blob is printed as JSON. Offset and Length are of what is stored, Size is that of the content.
type blobLine struct {
	Type   repo.BlobType `json:"type"`
	ID     repo.ID       `json:"id"`
	Pack   string        `json:"pack,omitempty"`
	Offset uint32        `json:"offset"`
	Length uint32        `json:"length"`
	Size   uint32        `json:"size"`
}

func lineOfBlob(b repo.PackedBlob) blobLine {
	return blobLine{Type: b.Type, ID: b.ID, Offset: b.Offset, Length: b.Length, Size: b.Size()}
}

// listBlobs lists what the index lists.
func (t *tool) listBlobs(ctx context.Context, r *repo.Repository) error {
	if err := r.LoadIndex(ctx); err != nil {
		return err
	}
	for pack, blobs := range r.IndexPacks() {
		for _, b := range blobs {
			line := lineOfBlob(b)
			line.Pack = pack.String()
			if err := t.line(line, b.Type.String()+" "+b.ID.String()); err != nil {
				return err
			}
		}
	}
	return nil
}

// line writes a value as one line of JSON if that was asked for, else a text.
func (t *tool) line(value any, text string) error {
	if !t.json {
		_, err := io.WriteString(t.Stdout, text+"\n")
		return err
	}
	encoder := json.NewEncoder(t.Stdout)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
}
