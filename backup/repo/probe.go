package repo

import (
	"context"
	"errors"
	"fmt"
)

// State says what is at a place, without a password.
type State uint8

// The states. StateUnknown comes with an error, always and only.
const (
	StateUnknown State = iota
	// StateAbsent: there is proven to be nothing.
	StateAbsent
	// StateHalfInitialised: no config, but keys, snapshots or an ownership marker.
	StateHalfInitialised
	// StateRepository: there is a config.
	StateRepository
)

// String returns a word for messages.
func (s State) String() string {
	return [...]string{"unknown", "absent", "half-initialised", "repository"}[min(s, StateRepository)]
}

// Probe finds out whether there is a repository. Only successful answers of the store prove an absence; a denied or
// failed request is an error.
func Probe(ctx context.Context, s Store) (State, error) {
	switch found, err := exists(ctx, s, configKey); {
	case err != nil:
		return StateUnknown, err
	case found:
		return StateRepository, nil
	}
	for _, prefix := range []string{string(KeyFile) + "/", string(SnapshotFile) + "/"} {
		for _, err := range s.List(ctx, prefix) {
			if err != nil {
				return StateUnknown, fmt.Errorf("list %s: %w", prefix, err)
			}
			return StateHalfInitialised, nil
		}
	}
	switch found, err := exists(ctx, s, ownerKey); {
	case err != nil:
		return StateUnknown, err
	case found:
		return StateHalfInitialised, nil
	}
	return StateAbsent, nil
}

func exists(ctx context.Context, s Store, key string) (bool, error) {
	_, err := s.Stat(ctx, key)
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for %s: %w", key, err)
	}
	return true, nil
}
