package cli

import (
	"context"
	"os"

	"github.com/spf13/cobra"

	"example.com/pvcbackup/backup/repo"
)

// initialized is what init prints as JSON.
type initialized struct {
	URL          string `json:"url"`
	RepositoryID string `json:"repositoryID"`
	KeyID        string `json:"keyID"`
}

func (t *tool) initCommand() *cobra.Command {
	var from fromFlags
	var chunker bool
	cmd := &cobra.Command{
		Use: "init", Short: "Create a repository where there is proven to be none", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			var polynomial uint64
			if chunker {
				if polynomial, err = t.polynomialOf(cmd.Context(), from); err != nil {
					return err
				}
			}
			return t.init(cmd.Context(), polynomial)
		},
	}
	from.register(t, cmd)
	cmd.Flags().BoolVar(&chunker, "copy-chunker-params", false,
		"cut files as the repository --from-repo does, for copies of its snapshots")
	return cmd
}

func (t *tool) init(ctx context.Context, polynomial uint64) error {
	password, err := t.password()
	if err != nil {
		return err
	}
	store, err := t.store(ctx)
	if err != nil {
		return err
	}
	defer store.Close()
	r, err := repo.Init(ctx, store, password, &repo.InitOptions{
		OpenOptions: repo.OpenOptions{Clock: t.clock}, KeyOptions: t.keyOptions(), Polynomial: polynomial,
	})
	if err != nil {
		return err
	}
	made := initialized{URL: store.URL(), RepositoryID: r.ID(), KeyID: r.KeyID().String()}
	if t.json {
		return t.print(made)
	}
	t.say("created repository %.8s at %s", made.RepositoryID, made.URL)
	t.say("Keep the password: without it nothing can be restored.")
	return nil
}

// polynomialOf returns what another repository cuts files with.
func (t *tool) polynomialOf(ctx context.Context, from fromFlags) (uint64, error) {
	source, err := t.openFrom(ctx, from)
	if err != nil {
		return 0, err
	}
	return source.repository.Polynomial(), source.store.Close()
}

// keyOptions says who adds a key.
func (t *tool) keyOptions() repo.KeyOptions {
	host, _ := os.Hostname() // it only describes the key
	return repo.KeyOptions{Username: "pvcbackup", Hostname: host, Scrypt: t.scrypt}
}
