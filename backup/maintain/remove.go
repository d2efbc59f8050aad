package maintain

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/blobstore"
)

// Store is what removing a repository needs of its store; *blobstore.Store satisfies it.
type Store interface {
	List(ctx context.Context, prefix string) iter.Seq2[blobstore.Object, error]
	Delete(ctx context.Context, key string) error
	DeleteAll(ctx context.Context, prefix string) (int, error)
}

// ErrInUse is why a repository is not removed: it holds snapshots.
var ErrInUse = errors.New("the repository holds snapshots, so it is not removed")

// ErrYoung is why what looks like the rest of a repository is left alone for a while: it may be one that somebody is
// creating at this moment.
var ErrYoung = errors.New("somebody may be creating a repository here at this moment, so nothing is removed yet")

// youngAge is longer than the creation of a repository takes, even when the store has to be asked again and again.
const youngAge = 15 * time.Minute

// RemoveRepository deletes a repository that holds no snapshot any more. Call it under the exclusive lock, whose own
// object it leaves to be removed with the lock. What it deletes first is worthless without what it deletes last, so that
// after a crash either it can be called again, or RemoveRest recognises what is left.
func RemoveRepository(ctx context.Context, r *repo.Repository, store Store) error {
	snapshots, _, err := census(ctx, r)
	if err != nil {
		return err
	}
	if len(snapshots) > 0 {
		return fmt.Errorf("%w: %d of them", ErrInUse, len(snapshots))
	}
	for _, prefix := range []string{"data/", "index/", "runs/"} {
		if _, err := store.DeleteAll(ctx, prefix); err != nil {
			return err
		}
	}
	if err := removeObject(ctx, store, "config"); err != nil {
		return err
	}
	if _, err := store.DeleteAll(ctx, "keys/"); err != nil {
		return err
	}
	return removeObject(ctx, store, "owner")
}

// RemoveRest deletes what is left of a repository whose config is gone and that holds neither data nor snapshots: the
// rest of a removal, or of a creation, that was interrupted. Anything else is left as it is: ErrInUse, or ErrYoung if
// a key is so new that the repository may just be being created.
func RemoveRest(ctx context.Context, store Store, now time.Time) error {
	var keys []string
	for object, err := range store.List(ctx, "") {
		if err != nil {
			return fmt.Errorf("listing what is left: %w", err)
		}
		switch folder, _, _ := strings.Cut(object.Key, "/"); {
		case folder != "keys" && folder != "owner" && folder != "locks":
			return fmt.Errorf("%w: there is no config but %s", ErrInUse, object.Key)
		case folder == "keys" && now.Sub(object.ModTime) < youngAge:
			return fmt.Errorf("%w: its key is not %s old", ErrYoung, youngAge)
		}
		keys = append(keys, object.Key)
	}
	for _, key := range keys {
		if err := removeObject(ctx, store, key); err != nil {
			return err
		}
	}
	return nil
}

func removeObject(ctx context.Context, store Store, key string) error {
	if err := store.Delete(ctx, key); err != nil && !errors.Is(err, blobstore.ErrNotFound) {
		return err
	}
	return nil
}
