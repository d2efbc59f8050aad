package repo

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strconv"
)

// maxIndexBlobs is how many blobs an index file lists before the next one is begun.
const maxIndexBlobs = 50_000

// IndexedPack is what an index says about a pack.
type IndexedPack struct {
	ID    ID
	Blobs []PackedBlob
}

// indexJSON is the content of an index file. Older writers add "supersedes", which readers ignore: removed index files
// are deleted.
type indexJSON struct {
	Packs []packJSON `json:"packs"`
}

type packJSON struct {
	ID    ID         `json:"id"`
	Blobs []blobJSON `json:"blobs"`
}

type blobJSON struct {
	ID          ID       `json:"id"`
	Type        BlobType `json:"type"`
	Offset      uint32   `json:"offset"`
	Length      uint32   `json:"length"`
	PlainLength uint32   `json:"uncompressed_length,omitempty"`
}

// encodeIndex writes what encoding/json would write for indexJSON, in a tenth of the time; a fuzz test holds the two equal.
func encodeIndex(packs []IndexedPack) []byte {
	blobs := 0
	for _, p := range packs {
		blobs += len(p.Blobs)
	}
	text := append(make([]byte, 0, 100+100*len(packs)+160*blobs), `{"packs":[`...)
	for i, p := range packs {
		if i > 0 {
			text = append(text, ',')
		}
		text = hex.AppendEncode(append(text, `{"id":"`...), p.ID[:])
		text = append(text, `","blobs":[`...)
		for j, b := range p.Blobs {
			if j > 0 {
				text = append(text, ',')
			}
			text = appendIndexBlob(text, b)
		}
		text = append(text, `]}`...)
	}
	return append(text, `]}`...)
}

func appendIndexBlob(text []byte, b PackedBlob) []byte {
	text = hex.AppendEncode(append(text, `{"id":"`...), b.ID[:])
	text = append(append(text, `","type":"`...), b.Type.String()...)
	text = strconv.AppendUint(append(text, `","offset":`...), uint64(b.Offset), 10)
	text = strconv.AppendUint(append(text, `,"length":`...), uint64(b.Length), 10)
	if b.PlainLength > 0 {
		text = strconv.AppendUint(append(text, `,"uncompressed_length":`...), uint64(b.PlainLength), 10)
	}
	return append(text, '}')
}

func parseIndex(text []byte) ([]IndexedPack, error) {
	file, ok := scanIndex(text)
	if !ok {
		file = indexJSON{}
		if err := json.Unmarshal(text, &file); err != nil {
			return nil, err
		}
	}
	packs := make([]IndexedPack, len(file.Packs))
	for i, p := range file.Packs {
		if p.ID.IsZero() {
			return nil, errors.New("a pack has no id")
		}
		blobs := make([]PackedBlob, len(p.Blobs))
		for j, b := range p.Blobs {
			blobs[j] = PackedBlob{BlobHandle{b.Type, b.ID}, b.Offset, b.Length, b.PlainLength}
			if err := blobs[j].check(); err != nil {
				return nil, fmt.Errorf("pack %s: %w", p.ID.Short(), err)
			}
		}
		packs[i] = IndexedPack{p.ID, blobs}
	}
	return packs, nil
}

// LoadIndexFile reads one index file.
func (r *Repository) LoadIndexFile(ctx context.Context, id ID) ([]IndexedPack, error) {
	text, err := r.LoadUnpacked(ctx, IndexFile, id)
	if err != nil {
		return nil, err
	}
	packs, err := parseIndex(text)
	if err != nil {
		return nil, damaged(IndexFile.Key(id), "%w", err)
	}
	return packs, nil
}

// SaveIndex writes index files that list the packs, as many as it takes. What they list is known to this repository
// afterwards.
func (r *Repository) SaveIndex(ctx context.Context, packs iter.Seq[IndexedPack]) ([]FileInfo, error) {
	var written []FileInfo
	var pending []IndexedPack
	blobs := 0
	flush := func() error {
		f, err := r.saveIndexFile(ctx, pending)
		if err == nil {
			written = append(written, f)
			pending, blobs = nil, 0
		}
		return err
	}
	for p := range packs {
		pending = append(pending, p)
		if blobs += len(p.Blobs); blobs >= maxIndexBlobs {
			if err := flush(); err != nil {
				return written, err
			}
		}
	}
	if len(pending) > 0 {
		if err := flush(); err != nil {
			return written, err
		}
	}
	return written, nil
}

// saveIndexFile writes one index file, and only then makes its blobs known.
func (r *Repository) saveIndexFile(ctx context.Context, packs []IndexedPack) (FileInfo, error) {
	f, err := r.saveUnpacked(ctx, IndexFile, encodeIndex(packs))
	if err != nil {
		return FileInfo{}, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.indexFiles == nil {
		r.indexFiles = map[ID]struct{}{}
	}
	r.indexFiles[f.ID] = struct{}{}
	for _, p := range packs {
		r.idx.add(p.ID, p.Blobs)
	}
	return f, nil
}

// indexAttempts is how often LoadIndex begins anew when an index file disappears between being listed and being read.
const indexAttempts = 3

// LoadIndex reads all index files, in place of what was loaded before. An index file that cannot be read is an error:
// with a part of the index, data would be stored twice and blobs in use would look unused. List snapshots first, and
// load the index then: otherwise a new snapshot may need an index that was not loaded.
func (r *Repository) LoadIndex(ctx context.Context) error {
	for attempt := 1; ; attempt++ {
		err := r.loadIndexOnce(ctx)
		if err == nil || attempt == indexAttempts || !errors.Is(err, ErrNotFound) {
			return err
		}
	}
}

func (r *Repository) loadIndexOnce(ctx context.Context) error {
	files, err := collectFiles(ctx, r.store, IndexFile)
	if err != nil {
		return err
	}
	fresh, loaded := newIndex(), make(map[ID]struct{}, len(files))
	err = forEach(ctx, r.connections, files, func(ctx context.Context, f FileInfo) error {
		packs, err := r.LoadIndexFile(ctx, f.ID)
		if err != nil {
			return err
		}
		for _, p := range packs {
			fresh.add(p.ID, p.Blobs)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("load the index: %w", err)
	}
	for _, f := range files {
		loaded[f.ID] = struct{}{}
	}
	r.mu.Lock()
	r.idx, r.indexFiles = fresh, loaded
	r.mu.Unlock()
	if r.onIndex != nil {
		r.onIndex(fresh.memory())
	}
	return nil
}

func (r *Repository) index() *index {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.idx
}

// Has reports whether an index lists the blob.
func (r *Repository) Has(h BlobHandle) bool {
	_, ok := r.index().first(h)
	return ok
}

// BlobSize returns the length of a blob's plaintext in bytes, and whether an index lists it.
func (r *Repository) BlobSize(h BlobHandle) (plain uint32, ok bool) {
	b, ok := r.index().first(h)
	return b.Size(), ok
}

// Locations returns all places where a blob is.
func (r *Repository) Locations(h BlobHandle) []Location { return r.index().lookup(h) }

// IndexPacks yields what the loaded index says, pack by pack, blobs by offset. The slice may be kept.
func (r *Repository) IndexPacks() iter.Seq2[ID, []PackedBlob] { return r.index().byPack() }
