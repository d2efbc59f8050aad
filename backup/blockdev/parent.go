package blockdev

import (
	"context"
	"errors"
	"fmt"

	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/backup/repo/tree"
)

// Names in a snapshot.
const (
	dirName = "data"
	// ImageName is the file that is the volume, in the directory data.
	ImageName = "volume.img"
)

// parent is the snapshot that a run compares with.
type parent struct {
	id   repo.ID
	info Info
	// dir and image are its nodes; nil when its trees cannot be read.
	dir, image *tree.Node
}

// loadParent reads the trees of a snapshot. Trees that are damaged are as good as none.
func (b *backup) loadParent(ctx context.Context, chosen *repo.SnapshotInfo) (*parent, error) {
	info, _ := InfoOf(chosen.Tags)
	p := &parent{id: chosen.ID, info: info}
	dir, err := b.only(ctx, *chosen.Tree, dirName, tree.Dir)
	if err != nil || dir == nil {
		return p, err
	}
	image, err := b.only(ctx, dir.Subtree, ImageName, tree.File)
	if err != nil || image == nil || image.Size != uint64(info.Size) {
		return p, err
	}
	p.dir, p.image = dir, image
	return p, nil
}

// only returns the node that a tree consists of, or nil.
func (b *backup) only(ctx context.Context, id repo.ID, name string, kind tree.Type) (*tree.Node, error) {
	text, err := b.repo.LoadBlob(ctx, repo.BlobHandle{Type: repo.TreeBlob, ID: id}, nil)
	switch {
	case errors.Is(err, repo.ErrNotFound), errors.Is(err, repo.ErrDamaged):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("tree %s of the parent: %w", id.Short(), err)
	}
	var found *tree.Node
	for n, err := range tree.All(text) {
		if err != nil || found != nil || n.Name != name || n.Type != kind {
			return nil, nil
		}
		found = n
	}
	return found, nil
}

// unfit says why what is stored of the parent cannot be taken over for a volume of this geometry, or "".
func (b *backup) unfit(p *parent, g geometry) (Reason, string) {
	if p == nil {
		return NoParent, "there is no snapshot of this volume to compare with"
	}
	because := func(reason Reason, format string, args ...any) (Reason, string) {
		return reason, "snapshot " + p.id.Short() + " " + fmt.Sprintf(format, args...)
	}
	switch {
	case p.image == nil:
		return because(ParentUnreadable, "has no trees that can be used")
	case p.info.ChunkSize != g.chunk:
		return because(ChunkSizeChanged, "is cut into chunks of %d bytes, and not %d", p.info.ChunkSize, g.chunk)
	case p.info.Volume != b.o.Volume:
		return because(VolumeChanged, "is of volume %.200q, and not %.200q", p.info.Volume, b.o.Volume)
	case p.info.Size > g.size:
		return because(VolumeShrunk, "is of %d bytes, and the volume has %d", p.info.Size, g.size)
	case p.info.Handle == "":
		return because(NoHandle, "does not say which state of the volume it holds")
	}
	if problem := b.incomplete(p); problem != "" {
		return because(ParentIncomplete, "%s", problem)
	}
	return "", ""
}

// incomplete looks every chunk of the parent up.
func (b *backup) incomplete(p *parent) string {
	g := geometry{size: p.info.Size, chunk: p.info.ChunkSize}
	if len(p.image.Content) != g.chunks() {
		return fmt.Sprintf("has %d chunks, and not %d", len(p.image.Content), g.chunks())
	}
	for k, id := range p.image.Content {
		size, ok := b.repo.BlobSize(repo.BlobHandle{Type: repo.DataBlob, ID: id})
		if !ok || int64(size) != g.length(k) {
			return fmt.Sprintf("has a chunk %d that is not in the repository", k)
		}
	}
	return ""
}
