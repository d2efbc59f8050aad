package repo

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"example.com/pvcbackup/backup/repo/internal/crypto"
	"golang.org/x/sync/errgroup"
)

// Repository is an opened repository. Its methods may be called by many goroutines.
type Repository struct {
	store       *gate
	clock       Clock
	connections int
	onIndex     func(bytes int64)

	config     config
	polynomial uint64
	master     crypto.Key
	cipher     *crypto.Cipher
	keyID      ID
	codec      *codec
	trees      treeReads

	mu         sync.Mutex
	idx        *index
	indexFiles map[ID]struct{} // those whose content idx holds
}

// OpenOptions refines Open. The zero value is right for most callers.
type OpenOptions struct {
	// KeyHint is the key file to try first. Every other try costs a full key derivation.
	KeyHint ID
	// Connections is how many requests loading sends at once. 0: 4.
	Connections int
	// OnIndex is told how much memory an index takes that was loaded, in bytes. nil: nobody is.
	OnIndex func(bytes int64)
	// Clock is for tests. nil: the time of day.
	Clock Clock
}

// Open opens the repository with a password, which is used as it is: strip a trailing newline before.
// Errors: ErrAbsent, ErrHalfInitialised, ErrWrongPassword, ErrVersion, ErrDamaged, and the store's.
func Open(ctx context.Context, s Store, password string, o *OpenOptions) (*Repository, error) {
	if o == nil {
		o = &OpenOptions{}
	}
	sealed, err := s.GetBytes(ctx, configKey, maxKeyFile)
	if errors.Is(err, ErrNotFound) {
		return nil, explainMissing(ctx, s)
	}
	if err != nil {
		return nil, fmt.Errorf("read config: %w", err)
	}
	candidates, err := keyCandidates(ctx, s, o.KeyHint)
	if err != nil {
		return nil, err
	}
	var failures []error
	for _, name := range candidates {
		r, err := openWith(ctx, s, name, password, sealed)
		if err == nil {
			r.clock, r.connections, r.onIndex, r.idx = o.Clock, o.Connections, o.OnIndex, newIndex()
			if r.clock == nil {
				r.clock = wallClock{}
			}
			if r.connections <= 0 {
				r.connections = 4
			}
			return r, nil
		}
		if !errors.Is(err, ErrDamaged) && !errors.Is(err, crypto.ErrUnauthenticated) && !errors.Is(err, ErrNotFound) {
			return nil, err
		}
		if !errors.Is(err, crypto.ErrUnauthenticated) || errors.Is(err, ErrDamaged) {
			failures = append(failures, err)
		}
	}
	return nil, errors.Join(append([]error{ErrWrongPassword}, failures...)...)
}

// explainMissing tells the reasons for a missing config apart.
func explainMissing(ctx context.Context, s Store) error {
	switch state, err := Probe(ctx, s); {
	case err != nil:
		return err
	case state == StateAbsent:
		return ErrAbsent
	case state == StateHalfInitialised:
		return ErrHalfInitialised
	}
	return errors.New("the config appeared while the repository was being opened: try again")
}

// keyCandidates returns the key files to try, the hint first.
func keyCandidates(ctx context.Context, s Store, hint ID) ([]ID, error) {
	var names []ID
	if !hint.IsZero() {
		names = append(names, hint)
	}
	files, err := collectFiles(ctx, s, KeyFile)
	if err != nil {
		return nil, err
	}
	for _, f := range files {
		if f.ID != hint && len(names) < maxKeys {
			names = append(names, f.ID)
		}
	}
	return names, nil
}

// openWith tries one key file. One that opens but does not fit the config is damage, and the next is tried: an Init
// that lost a race may have left it.
func openWith(ctx context.Context, s Store, name ID, password string, sealedConfig []byte) (*Repository, error) {
	k, err := loadKey(ctx, s, name)
	if err != nil {
		return nil, err
	}
	master, err := k.open(password)
	if errors.Is(err, crypto.ErrUnauthenticated) {
		return nil, err
	}
	if err != nil {
		return nil, damaged(KeyFile.Key(name), "%w", err)
	}
	r := &Repository{store: &gate{Store: s}, master: master, cipher: master.Cipher(), keyID: name, codec: newCodec()}
	text, err := r.cipher.OpenInPlace(append([]byte(nil), sealedConfig...))
	if err != nil {
		return nil, damaged(configKey, "key %s: %w", name.Short(), err)
	}
	r.config, r.polynomial, err = parseConfig(text)
	return r, err
}

// ID returns the repository's random identifier.
func (r *Repository) ID() string { return r.config.ID }

// KeyID returns the key file that the repository was opened with; it is the hint for the next Open.
func (r *Repository) KeyID() ID { return r.keyID }

// Polynomial returns the irreducible polynomial that chunkers are seeded with.
func (r *Repository) Polynomial() uint64 { return r.polynomial }

// Version returns 1 or 2. Only version 2 can be written to.
func (r *Repository) Version() int { return int(r.config.Version) }

// forEach calls fn for all items, several at once, and stops at the first error.
func forEach[T any](ctx context.Context, limit int, items []T, fn func(context.Context, T) error) error {
	g, inner := errgroup.WithContext(ctx)
	g.SetLimit(limit)
	for _, item := range items {
		if inner.Err() != nil {
			break
		}
		g.Go(func() error { return fn(inner, item) })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return context.Cause(ctx)
}
