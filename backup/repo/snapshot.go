package repo

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// Snapshot says what was backed up when. The fields are restic's.
type Snapshot struct {
	Time           time.Time        `json:"time"`
	Parent         *ID              `json:"parent,omitempty"`
	Tree           *ID              `json:"tree"` // the root; must be set
	Paths          []string         `json:"paths"`
	Hostname       string           `json:"hostname,omitempty"`
	Username       string           `json:"username,omitempty"`
	UID            uint32           `json:"uid,omitempty"`
	GID            uint32           `json:"gid,omitempty"`
	Excludes       []string         `json:"excludes,omitempty"`
	Tags           []string         `json:"tags,omitempty"` // the only free text that restic keeps when it rewrites; without commas
	Original       *ID              `json:"original,omitempty"`
	ProgramVersion string           `json:"program_version,omitempty"`
	Summary        *SnapshotSummary `json:"summary,omitempty"`
}

// SnapshotSummary counts what a backup did. Sizes are in bytes.
type SnapshotSummary struct {
	BackupStart         time.Time `json:"backup_start"`
	BackupEnd           time.Time `json:"backup_end"`
	FilesNew            uint64    `json:"files_new"`
	FilesChanged        uint64    `json:"files_changed"`
	FilesUnmodified     uint64    `json:"files_unmodified"`
	DirsNew             uint64    `json:"dirs_new"`
	DirsChanged         uint64    `json:"dirs_changed"`
	DirsUnmodified      uint64    `json:"dirs_unmodified"`
	DataBlobs           int64     `json:"data_blobs"`
	TreeBlobs           int64     `json:"tree_blobs"`
	DataAdded           uint64    `json:"data_added"`
	DataAddedPacked     uint64    `json:"data_added_packed"`
	TotalFilesProcessed uint64    `json:"total_files_processed"`
	TotalBytesProcessed uint64    `json:"total_bytes_processed"`
}

// SnapshotInfo is a stored snapshot.
type SnapshotInfo struct {
	ID ID
	Snapshot
}

func parseSnapshot(text []byte) (*Snapshot, error) {
	var sn Snapshot
	if err := json.Unmarshal(text, &sn); err != nil {
		return nil, err
	}
	return &sn, sn.check()
}

func (sn *Snapshot) check() error {
	if sn.Tree == nil || sn.Tree.IsZero() {
		return errors.New("the snapshot has no tree")
	}
	return nil
}

// encodeSnapshot refuses snapshots that could not be used.
func (r *Repository) encodeSnapshot(sn *Snapshot) ([]byte, error) {
	if err := sn.check(); err != nil {
		return nil, err
	}
	for _, tag := range sn.Tags {
		if strings.Contains(tag, ",") {
			return nil, fmt.Errorf("tag %q contains a comma, which restic takes for the end of a tag", tag)
		}
	}
	if r.config.Version != 2 {
		return nil, fmt.Errorf("%w for writing: it is %d", ErrVersion, r.config.Version)
	}
	return json.Marshal(sn)
}

func (r *Repository) needTree(sn *Snapshot) error {
	if tree := (BlobHandle{TreeBlob, *sn.Tree}); !r.Has(tree) {
		return fmt.Errorf("the snapshot's %v: %w in the index", tree, ErrNotFound)
	}
	return nil
}

// SaveSnapshot writes a snapshot file: the commit point of a backup. The index must list its tree, so flush the writer
// before.
func (r *Repository) SaveSnapshot(ctx context.Context, sn *Snapshot) (ID, error) {
	text, err := r.encodeSnapshot(sn)
	if err != nil {
		return ID{}, err
	}
	if err := r.needTree(sn); err != nil {
		return ID{}, err
	}
	f, err := r.saveUnpacked(ctx, SnapshotFile, text)
	return f.ID, err
}

// LoadSnapshot reads a snapshot file.
func (r *Repository) LoadSnapshot(ctx context.Context, id ID) (*Snapshot, error) {
	text, err := r.LoadUnpacked(ctx, SnapshotFile, id)
	if err != nil {
		return nil, err
	}
	sn, err := parseSnapshot(text)
	if err != nil {
		return nil, damaged(SnapshotFile.Key(id), "%w", err)
	}
	return sn, nil
}

// Snapshots reads all snapshot files and returns them by time, then ID. With an error the result is what could be read:
// enough to restore from, never to decide what may be deleted.
func (r *Repository) Snapshots(ctx context.Context) ([]SnapshotInfo, error) {
	files, err := collectFiles(ctx, r.store, SnapshotFile)
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	var infos []SnapshotInfo
	var failures []error
	err = forEach(ctx, r.connections, files, func(ctx context.Context, f FileInfo) error {
		sn, err := r.LoadSnapshot(ctx, f.ID)
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			failures = append(failures, err)
		} else {
			infos = append(infos, SnapshotInfo{f.ID, *sn})
		}
		return nil
	})
	slices.SortFunc(infos, func(a, b SnapshotInfo) int {
		return cmp.Or(a.Time.Compare(b.Time), bytes.Compare(a.ID[:], b.ID[:]))
	})
	return infos, errors.Join(append(failures, err)...)
}

// ReplaceSnapshot writes a changed snapshot and then removes the old file. Original remembers the first ID.
func (r *Repository) ReplaceSnapshot(ctx context.Context, old ID, sn *Snapshot) (ID, error) {
	changed := *sn
	if changed.Original == nil {
		changed.Original = &old
	}
	text, err := r.encodeSnapshot(&changed)
	if err != nil {
		return ID{}, err
	}
	f, err := r.saveUnpacked(ctx, SnapshotFile, text)
	if err != nil {
		return ID{}, err
	}
	return f.ID, r.RemoveSnapshots(ctx, old)
}
