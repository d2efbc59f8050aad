package repo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"example.com/pvcbackup/blobstore"
)

const (
	ownerKey = "owner"
	maxOwner = 64 << 10
)

// owner is the content of the ownership marker.
type owner struct {
	RepositoryID string `json:"repository_id"`
	Owner        string `json:"owner"`
}

func parseOwner(text []byte) (owner, error) {
	var o owner
	if err := json.Unmarshal(text, &o); err != nil {
		return owner{}, damaged(ownerKey, "%w", err)
	}
	return o, nil
}

// loadOwner returns ErrNotFound when there is no marker.
func loadOwner(ctx context.Context, s Store) (owner, error) {
	text, err := s.GetBytes(ctx, ownerKey, maxOwner)
	if err != nil {
		return owner{}, fmt.Errorf("read %s: %w", ownerKey, err)
	}
	return parseOwner(text)
}

// checkOwner refuses a marker that names somebody else. No marker is no error.
func checkOwner(ctx context.Context, s Store, name string) error {
	o, err := loadOwner(ctx, s)
	if errors.Is(err, ErrNotFound) || err == nil && o.Owner == name {
		return nil
	}
	if err != nil {
		return err
	}
	return foreign(o.Owner, name)
}

func foreign(have, want string) error {
	return fmt.Errorf("%w: its owner is %q, not %q; use another prefix, or delete the object %q to take the repository over", ErrForeignOwner, have, want, ownerKey)
}

// Owner returns the free text of the ownership marker; ErrNotFound when there is none.
func (r *Repository) Owner(ctx context.Context) (string, error) {
	o, err := loadOwner(ctx, r.store)
	return o.Owner, err
}

// EnsureOwner writes the ownership marker if there is none. It returns ErrForeignOwner when somebody else's is there,
// and ErrDamaged when it names another repository. Init does this too; call it after Open before the first write, so
// that an Init that was interrupted is completed.
func (r *Repository) EnsureOwner(ctx context.Context, name string) error {
	want := owner{RepositoryID: r.ID(), Owner: name}
	text, err := json.Marshal(want)
	if err != nil {
		return err
	}
	err = r.store.PutBytes(ctx, ownerKey, text, &blobstore.PutOptions{OnlyIfAbsent: true, ContentType: "application/json"})
	if err != nil && !errors.Is(err, blobstore.ErrExists) {
		return fmt.Errorf("write %s: %w", ownerKey, err)
	}
	have, err := loadOwner(ctx, r.store) // also after a successful write: not every store honours the condition
	switch {
	case err != nil:
		return err
	case have.Owner != name:
		return foreign(have.Owner, name)
	case have.RepositoryID != want.RepositoryID:
		return damaged(ownerKey, "it names the repository %.64q, not %q", have.RepositoryID, want.RepositoryID)
	}
	return nil
}
