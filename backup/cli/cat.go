package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"example.com/pvcbackup/backup/repo"
)

// folders are the types of files by their names on the command line.
var folders = map[string]repo.FileType{
	"pack": repo.PackFile, "index": repo.IndexFile, "snapshot": repo.SnapshotFile, "key": repo.KeyFile,
	"lock": repo.LockFile,
}

const catWhat = "config, or key, snapshot, index, lock, pack, tree or blob with an ID"

func (t *tool) catCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "cat WHAT [ID]", Short: "Show one object of the repository, for finding out what is wrong with it",
		Long: "Show " + catWhat + ". Of a pack its header is shown. Neither keys nor passwords are.",
		Args: between(1, 2, catWhat),
		RunE: func(cmd *cobra.Command, args []string) error {
			known := folders[args[0]] != "" || args[0] == "tree" || args[0] == "blob"
			if !(args[0] == "config" && len(args) == 1 || known && len(args) == 2) {
				return usage(fmt.Errorf("cat shows %s, not %.100q", catWhat, strings.Join(args, " ")))
			}
			if t.json && (args[0] == "blob" || args[0] == "tree") {
				return usage(fmt.Errorf("cat %s writes data, so --json has no meaning", args[0]))
			}
			return t.with(cmd.Context(), reading, func(ctx context.Context, s *session) error {
				return t.cat(ctx, s.repository, args[0], append(args, "")[1])
			})
		},
	}
	t.readFlags(cmd)
	return cmd
}

func (t *tool) cat(ctx context.Context, r *repo.Repository, what, prefix string) error {
	switch what {
	case "config":
		return t.print(map[string]any{
			"version": r.Version(), "id": r.ID(), "chunker_polynomial": strconv.FormatUint(r.Polynomial(), 16),
		})
	case "tree", "blob":
		return t.catBlob(ctx, r, what, prefix)
	}
	id, err := fileByID(ctx, r, folders[what], prefix)
	if err != nil {
		return err
	}
	switch what {
	case "key":
		return t.catKey(ctx, r, id)
	case "pack":
		return t.catPack(ctx, r, id)
	}
	text, err := r.LoadUnpacked(ctx, folders[what], id)
	if err != nil {
		return err
	}
	return t.print(json.RawMessage(text))
}

// keyShown is a key file without what it keeps secret.
type keyShown struct {
	keyLine
	KDF string `json:"kdf"`
	N   int    `json:"N"`
	R   int    `json:"r"`
	P   int    `json:"p"`
}

func (t *tool) catKey(ctx context.Context, r *repo.Repository, id repo.ID) error {
	keys, err := r.ListKeys(ctx)
	if err != nil {
		return err
	}
	for _, k := range keys {
		if k.ID == id {
			return t.print(keyShown{lineOfKey(k), "scrypt", k.Scrypt.N, k.Scrypt.R, k.Scrypt.P})
		}
	}
	return fmt.Errorf("key %s: %w", id.Short(), repo.ErrNotFound)
}

// packShown is the header of a pack.
type packShown struct {
	ID    repo.ID    `json:"id"`
	Size  int64      `json:"size"`
	Time  time.Time  `json:"time"`
	Blobs []blobLine `json:"blobs"`
}

func (t *tool) catPack(ctx context.Context, r *repo.Repository, id repo.ID) error {
	file, err := r.StatFile(ctx, repo.PackFile, id)
	if err != nil {
		return err
	}
	blobs, err := r.PackHeader(ctx, id, file.Size)
	if err != nil {
		return err
	}
	shown := packShown{ID: id, Size: file.Size, Time: file.ModTime, Blobs: []blobLine{}}
	for _, b := range blobs {
		shown.Blobs = append(shown.Blobs, lineOfBlob(b))
	}
	return t.print(shown)
}

// catBlob writes the content of a blob as it is.
func (t *tool) catBlob(ctx context.Context, r *repo.Repository, what, prefix string) error {
	if err := r.LoadIndex(ctx); err != nil {
		return err
	}
	found := map[repo.BlobHandle]bool{}
	for _, blobs := range r.IndexPacks() {
		for _, b := range blobs {
			if strings.HasPrefix(b.ID.String(), prefix) && (what == "blob" || b.Type == repo.TreeBlob) {
				found[b.BlobHandle] = true
			}
		}
	}
	if len(found) != 1 {
		return usage(fmt.Errorf("%d blobs in the index have an ID that starts with %.64q", len(found), prefix))
	}
	h := slices.Collect(maps.Keys(found))[0]
	content, err := r.LoadBlob(ctx, h, nil)
	if err != nil {
		return err
	}
	_, err = t.Stdout.Write(content)
	return err
}

// fileByID returns the file whose ID starts with a prefix.
func fileByID(ctx context.Context, r *repo.Repository, kind repo.FileType, prefix string) (found repo.ID, err error) {
	n := 0
	for file, err := range r.ListFiles(ctx, kind) {
		if err != nil {
			return found, err
		}
		if strings.HasPrefix(file.ID.String(), prefix) {
			n, found = n+1, file.ID
		}
	}
	if n != 1 {
		return found, usage(fmt.Errorf("%d objects below %s/ have an ID that starts with %.64q", n, kind, prefix))
	}
	return found, nil
}
