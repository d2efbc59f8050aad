package browse

import (
	"bytes"
	"context"
	"fmt"

	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/backup/repo/tree"
)

const (
	aheadBytes = 16 << 20 // of trees that are held before they are asked for
	aheadTrees = 256
)

// trees loads trees, and with each some of those that are asked for next: in the store they are neighbours.
type trees struct {
	repo  *repo.Repository
	ahead map[repo.ID][]byte
	bytes int
}

func treeHandle(id repo.ID) repo.BlobHandle { return repo.BlobHandle{Type: repo.TreeBlob, ID: id} }

// get returns a tree, which is the caller's. next names trees that will be asked for soon; it is only called if needed.
func (t *trees) get(ctx context.Context, id repo.ID, next func() []repo.ID) ([]byte, error) {
	if encoded, ok := t.ahead[id]; ok {
		delete(t.ahead, id)
		t.bytes -= len(encoded)
		return encoded, nil
	}
	var found []byte
	err := t.repo.LoadBlobs(ctx, t.choose(id, next()), func(h repo.BlobHandle, encoded []byte) error {
		if h.ID == id {
			found = bytes.Clone(encoded)
			return nil
		}
		t.ahead[h.ID] = bytes.Clone(encoded)
		t.bytes += len(encoded)
		return nil
	})
	if found == nil && err != nil && ctx.Err() == nil {
		found, err = t.repo.LoadBlob(ctx, treeHandle(id), nil) // another one may be to blame
	}
	if found == nil {
		return nil, fmt.Errorf("tree %s: %w", id.Short(), err)
	}
	return found, nil
}

// choose returns what is fetched with id. What was fetched and never asked for makes room.
func (t *trees) choose(id repo.ID, next []repo.ID) []repo.BlobHandle {
	if t.ahead == nil || t.bytes >= aheadBytes/2 {
		t.ahead, t.bytes = map[repo.ID][]byte{}, 0
	}
	handles := []repo.BlobHandle{treeHandle(id)}
	room := aheadBytes - t.bytes
	for _, other := range next {
		size, listed := t.repo.BlobSize(treeHandle(other))
		if _, held := t.ahead[other]; held || !listed || other == id {
			continue
		}
		if room -= int(size); room < 0 {
			break
		}
		handles = append(handles, treeHandle(other))
	}
	return handles
}

// upcoming returns the folders that follow in a tree. A decoder is a value: this copy runs ahead.
func upcoming(nodes tree.Decoder) (ids []repo.ID) {
	for len(ids) < aheadTrees {
		n, err := nodes.Next()
		if err != nil {
			return ids // whoever gets there will see it
		}
		if n.Type == tree.Dir {
			ids = append(ids, n.Subtree)
		}
	}
	return ids
}
