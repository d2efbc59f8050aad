package repo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"example.com/pvcbackup/backup/repo/id"
	"example.com/pvcbackup/blobstore"
)

const (
	runPrefix   = "runs/"
	maxSnapshot = 16 << 20
)

// CommitRun writes the snapshot of a run, once: the first caller's bytes are kept under the run's name, and every
// caller puts exactly those at snapshots/. won reports whether they are of this call's snapshot. A name has up to 200
// letters, digits, dots, dashes and underscores. The index must list the tree.
func (r *Repository) CommitRun(ctx context.Context, name string, sn *Snapshot) (snapshot ID, won bool, err error) {
	if !validName(name) {
		return ID{}, false, fmt.Errorf("run name %.250q is not made of 1 to 200 letters, digits, dots, dashes and underscores", name)
	}
	text, err := r.encodeSnapshot(sn)
	if err != nil {
		return ID{}, false, err
	}
	if err := r.needTree(sn); err != nil {
		return ID{}, false, err
	}
	ours, hash := r.sealUnpacked(text)
	sum := [32]byte(hash)
	err = r.store.PutBytes(ctx, runPrefix+name, ours, &blobstore.PutOptions{OnlyIfAbsent: true, SHA256: &sum, ContentType: "application/octet-stream"})
	if err != nil && !errors.Is(err, blobstore.ErrExists) {
		return ID{}, false, fmt.Errorf("write %s%s: %w", runPrefix, name, err)
	}
	// Also after a success: not every store honours the condition.
	stored, _, err := r.loadRun(ctx, name)
	if err != nil {
		return ID{}, false, err
	}
	snapshot, err = r.putSnapshot(ctx, stored)
	return snapshot, bytes.Equal(stored, ours), err
}

// FindRun returns the snapshot that a run committed; ErrNotFound when there is none. A commit that was interrupted
// after the run's name was taken is finished, if the loaded index lists the tree.
func (r *Repository) FindRun(ctx context.Context, name string) (ID, *Snapshot, error) {
	if !validName(name) {
		return ID{}, nil, fmt.Errorf("run name %.250q is not valid", name)
	}
	stored, sn, err := r.loadRun(ctx, name)
	if err != nil {
		return ID{}, nil, err
	}
	snapshot := id.Hash(stored)
	found, err := exists(ctx, r.store, SnapshotFile.Key(snapshot))
	if err != nil || found {
		return snapshot, sn, err
	}
	if err := r.needTree(sn); err != nil {
		return ID{}, nil, fmt.Errorf("run %s was never committed, or its snapshot was removed: %w", name, err)
	}
	_, err = r.putSnapshot(ctx, stored)
	return snapshot, sn, err
}

// CheckRun reads what is kept under a run's name. Errors: ErrNotFound, and ErrDamaged when it is no snapshot.
func (r *Repository) CheckRun(ctx context.Context, name string) error {
	_, _, err := r.loadRun(ctx, name)
	return err
}

// loadRun returns the bytes kept under a run's name, and the snapshot they are.
func (r *Repository) loadRun(ctx context.Context, name string) ([]byte, *Snapshot, error) {
	stored, err := r.store.GetBytes(ctx, runPrefix+name, maxSnapshot)
	if err != nil {
		return nil, nil, fmt.Errorf("read %s%s: %w", runPrefix, name, err)
	}
	text, err := r.openUnpacked(runPrefix+name, bytes.Clone(stored))
	if err != nil {
		return nil, nil, err
	}
	sn, err := parseSnapshot(text)
	if err != nil {
		return nil, nil, damaged(runPrefix+name, "%w", err)
	}
	return stored, sn, nil
}

func (r *Repository) putSnapshot(ctx context.Context, stored []byte) (ID, error) {
	snapshot := id.Hash(stored)
	return snapshot, putFile(ctx, r.store, SnapshotFile.Key(snapshot), stored, snapshot)
}

// RemoveSnapshots deletes snapshot files, and before each the run that committed it, so that no FindRun brings it back.
// Those that are gone already are no error. Call it under the exclusive lock.
func (r *Repository) RemoveSnapshots(ctx context.Context, ids ...ID) error {
	doomed := map[ID]bool{}
	for _, snapshot := range ids {
		doomed[snapshot] = true
	}
	if len(doomed) == 0 {
		return nil
	}
	var keys []string
	for o, err := range r.store.List(ctx, runPrefix) {
		if err != nil {
			return fmt.Errorf("list %s: %w", runPrefix, err)
		}
		if validName(strings.TrimPrefix(o.Key, runPrefix)) && o.Size <= maxSnapshot {
			keys = append(keys, o.Key)
		}
	}
	err := forEach(ctx, r.connections, keys, func(ctx context.Context, key string) error {
		stored, err := r.store.GetBytes(ctx, key, maxSnapshot)
		if errors.Is(err, ErrNotFound) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", key, err)
		}
		if !doomed[id.Hash(stored)] {
			return nil
		}
		return remove(ctx, r.store, key)
	})
	if err != nil {
		return err
	}
	for _, snapshot := range ids {
		if err := r.RemoveFile(ctx, SnapshotFile, snapshot); err != nil {
			return err
		}
	}
	return nil
}

// validName reports whether a run's name can be a part of a key.
func validName(name string) bool {
	if name == "" || len(name) > 200 || name[0] == '.' {
		return false
	}
	return strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == ""
}
