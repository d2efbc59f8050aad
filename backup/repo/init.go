package repo

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/restic/chunker"

	"example.com/pvcbackup/backup/repo/internal/crypto"
	"example.com/pvcbackup/blobstore"
)

// InitOptions refines Init.
type InitOptions struct {
	OpenOptions
	KeyOptions
	// Owner is free text such as cluster/namespace/claim for the ownership marker. Empty: no marker.
	Owner string
	// Polynomial seeds the chunkers. 0: a random one. It must be irreducible and of degree 53 at most.
	Polynomial uint64

	version uint // 0: 2; tests make old repositories with it
}

// Init creates a repository, which must be proven absent: ErrAlreadyInitialised, ErrHalfInitialised or the store's error
// otherwise. Of several at once one wins; the others open the winner's repository if their password does, else they
// return ErrAlreadyInitialised. With an owner, a marker that names another one is ErrForeignOwner.
func Init(ctx context.Context, s Store, password string, o *InitOptions) (*Repository, error) {
	if o == nil {
		o = &InitOptions{}
	}
	clock := o.Clock
	if clock == nil {
		clock = wallClock{}
	}
	switch state, err := settledState(ctx, s, clock, o.Owner); {
	case err != nil:
		return nil, err
	case state == StateRepository:
		r, err := Open(ctx, s, password, &o.OpenOptions)
		return owned(ctx, r, justCreated(err), o.Owner)
	}
	text, err := newConfig(o)
	if err != nil {
		return nil, err
	}
	master := crypto.NewKey()
	keyID, err := saveKey(ctx, s, master, password, o.KeyOptions, clock.Now())
	if err != nil {
		return nil, err
	}
	won, err := saveConfig(ctx, s, master.Cipher().Seal(nil, text))
	if err != nil {
		return nil, err
	}
	open := o.OpenOptions
	open.KeyHint = keyID
	if !won {
		// A key that does not fit the winner's config would stop restic from opening the repository.
		if err := remove(ctx, s, KeyFile.Key(keyID)); err != nil {
			return nil, fmt.Errorf("%w; the key %s must be deleted", justCreated(err), keyID)
		}
		open.KeyHint = ID{}
	}
	r, err := Open(ctx, s, password, &open)
	if !won {
		err = justCreated(err)
	}
	return owned(ctx, r, err, o.Owner)
}

// justCreated explains why a repository that another process created meanwhile could not be used.
func justCreated(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w, which another process created at the same moment: %w", ErrAlreadyInitialised, err)
}

// owned completes what Open returned by the ownership marker.
func owned(ctx context.Context, r *Repository, err error, name string) (*Repository, error) {
	if err != nil {
		return nil, fmt.Errorf("open the new repository: %w", err)
	}
	if name != "" {
		if err := r.EnsureOwner(ctx, name); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// initLooks is how often, once a second, a half-initialised place is looked at: another Init may be under way there.
const initLooks = 6

// settledState returns StateAbsent, or StateRepository when another Init was seen to complete, or an error.
func settledState(ctx context.Context, s Store, clock Clock, name string) (State, error) {
	if name != "" {
		if err := checkOwner(ctx, s, name); err != nil {
			return StateUnknown, err
		}
	}
	for look := 1; ; look++ {
		switch state, err := Probe(ctx, s); {
		case err != nil:
			return StateUnknown, fmt.Errorf("nothing was created because it is unknown what is there: %w", err)
		case state == StateRepository && look == 1:
			return state, ErrAlreadyInitialised
		case state != StateHalfInitialised:
			return state, nil
		case look == initLooks:
			return state, ErrHalfInitialised
		}
		if err := sleep(ctx, clock, time.Second); err != nil {
			return StateUnknown, err
		}
	}
}

func newConfig(o *InitOptions) ([]byte, error) {
	polynomial := o.Polynomial
	if polynomial == 0 {
		p, err := chunker.RandomPolynomial()
		if err != nil {
			return nil, fmt.Errorf("choose a polynomial: %w", err)
		}
		polynomial = uint64(p)
	}
	if err := checkPolynomial(polynomial); err != nil {
		return nil, err
	}
	c := config{Version: 2, Polynomial: strconv.FormatUint(polynomial, 16)}
	if o.version != 0 {
		c.Version = o.version
	}
	var name ID
	_, _ = rand.Read(name[:]) // crypto/rand.Read never fails
	c.ID = hex.EncodeToString(name[:])
	return json.Marshal(c)
}

// saveConfig reports whether the config is now this one. It reads it back, as not every store honours the condition.
func saveConfig(ctx context.Context, s Store, sealed []byte) (bool, error) {
	err := s.PutBytes(ctx, configKey, sealed, &blobstore.PutOptions{OnlyIfAbsent: true, ContentType: "application/octet-stream"})
	if err != nil && !errors.Is(err, blobstore.ErrExists) {
		return false, fmt.Errorf("write config: %w", err)
	}
	stored, err := s.GetBytes(ctx, configKey, maxKeyFile)
	if err != nil {
		return false, fmt.Errorf("read config back: %w", err)
	}
	return bytes.Equal(stored, sealed), nil
}
