package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/blobstore"
)

// The environment of the repository that is copied from.
const (
	envFromRepository = "PVCBACKUP_FROM_REPOSITORY"
	envFromPassword   = "PVCBACKUP_FROM_PASSWORD"
)

// fromFlags name another repository.
type fromFlags struct{ repo, passwordFile string }

func (f *fromFlags) register(t *tool, cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.repo, "from-repo", t.Getenv(envFromRepository),
		"URL of the other repository ($"+envFromRepository+")")
	flags.StringVar(&f.passwordFile, "from-password-file", "",
		"file that holds its password (default: $"+envFromPassword+")")
}

// openFrom opens the other repository.
func (t *tool) openFrom(ctx context.Context, f fromFlags) (*session, error) {
	if f.repo == "" {
		return nil, usage(fmt.Errorf("no repository to copy from: give --from-repo or set %s", envFromRepository))
	}
	password, err := secret(f.passwordFile, t.Getenv(envFromPassword))
	if err != nil {
		return nil, err
	}
	if password == "" {
		return nil, usage(fmt.Errorf(
			"no password of the repository to copy from: give --from-password-file or set %s", envFromPassword))
	}
	store, err := blobstore.Open(ctx, f.repo, &blobstore.Options{Openers: t.Openers})
	if err != nil {
		return nil, fmt.Errorf("the repository to copy from: %w", err)
	}
	r, err := repo.Open(ctx, store, password, &repo.OpenOptions{Clock: t.clock, OnIndex: t.memory.grown})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the repository to copy from: %w", err), store.Close())
	}
	return &session{store: store, repository: r}, nil
}
