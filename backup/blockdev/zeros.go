package blockdev

import (
	"context"
	"crypto/sha256"
	"fmt"

	"example.com/pvcbackup/backup/repo"
)

// zeros are the chunks without content: the usual one, and the last one if it is shorter.
type zeros struct {
	whole, tail int64
	wholeID     repo.ID
	tailID      repo.ID
}

func newZeros(g geometry) zeros {
	z := zeros{whole: g.length(0), tail: g.length(g.chunks() - 1)}
	text := make([]byte, z.whole)
	z.wholeID, z.tailID = sha256.Sum256(text), sha256.Sum256(text[:z.tail])
	return z
}

// id returns the ID of a chunk of zeros.
func (z *zeros) id(length int64) repo.ID {
	if length == z.whole {
		return z.wholeID
	}
	return z.tailID
}

func (z *zeros) has(id repo.ID) bool { return id == z.wholeID || id == z.tailID }

// save stores those that are in content.
func (z *zeros) save(ctx context.Context, w *repo.Writer, content []repo.ID) error {
	missing := map[repo.ID]int64{z.wholeID: z.whole, z.tailID: z.tail}
	for _, c := range content {
		length, ok := missing[c]
		if !ok {
			continue
		}
		if _, _, err := w.SaveBlob(ctx, repo.DataBlob, make([]byte, length)); err != nil {
			return fmt.Errorf("store the chunk of zeros: %w", err)
		}
		if delete(missing, c); len(missing) == 0 {
			break
		}
	}
	return nil
}
