package cli

import (
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
	return &cobra.Command{
		Use: "init", Short: "Create a repository where there is proven to be none", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			password, err := t.password()
			if err != nil {
				return err
			}
			store, err := t.store(cmd.Context())
			if err != nil {
				return err
			}
			defer store.Close()
			r, err := repo.Init(cmd.Context(), store, password, &repo.InitOptions{OpenOptions: repo.OpenOptions{Clock: t.clock}, KeyOptions: t.keyOptions()})
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
		},
	}
}

// keyOptions says who adds a key.
func (t *tool) keyOptions() repo.KeyOptions {
	host, _ := os.Hostname() // it only describes the key
	return repo.KeyOptions{Username: "pvcbackup", Hostname: host, Scrypt: t.scrypt}
}
