package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"example.com/pvcbackup/backup/repo"
)

// keyLine is how a key is printed as JSON.
type keyLine struct {
	ID      string    `json:"id"`
	Created time.Time `json:"created"`
	User    string    `json:"user"`
	Host    string    `json:"host"`
	Current bool      `json:"current"`
}

func (t *tool) keysCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "keys", Short: "List, add and remove passwords of the repository"}
	cmd.AddCommand(t.keysListCommand(), t.keysAddCommand(), t.keysPasswdCommand(), t.keysRemoveCommand())
	return cmd
}

func (t *tool) keysListCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "list", Short: "List the keys; each opens with a password of its own", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return t.with(cmd.Context(), reading, func(ctx context.Context, s *session) error {
				keys, err := s.repository.ListKeys(ctx)
				if err != nil {
					return err
				}
				slices.SortStableFunc(keys, func(a, b repo.KeyInfo) int { return a.Created.Compare(b.Created) })
				lines := []keyLine{}
				for _, k := range keys {
					lines = append(lines, lineOfKey(k))
				}
				return t.show(map[string]any{"keys": lines}, func(w io.Writer) { keyTable(w, lines) })
			})
		},
	}
	t.readFlags(cmd)
	return cmd
}

func lineOfKey(k repo.KeyInfo) keyLine {
	return keyLine{k.ID.String(), k.Created, k.Username, k.Hostname, k.Current}
}

func keyTable(w io.Writer, lines []keyLine) {
	rows := [][]string{}
	for _, line := range lines {
		current := ""
		if line.Current {
			current = "opened with it"
		}
		rows = append(rows, []string{line.ID[:8], stamp(line.Created), line.User, line.Host, current})
	}
	table(w, []string{"ID", "CREATED (UTC)", "USER", "HOST", ""}, rows)
}

// envNewPassword holds the password that keys add adds.
const envNewPassword = "PVCBACKUP_NEW_PASSWORD"

func (t *tool) keysAddCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "add", Short: "Make another password open the repository", Args: cobra.NoArgs}
	t.newPassword(cmd, writing, "added key", (*repo.Repository).AddKey)
	return cmd
}

func (t *tool) keysPasswdCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "passwd", Short: "Make another password open the repository, in the place of this one", Args: cobra.NoArgs,
	}
	t.newPassword(cmd, exclusive, "changed the password: the key is now", (*repo.Repository).ChangeKey)
	return cmd
}

// newPassword makes a command of what is done with a new password.
func (t *tool) newPassword(cmd *cobra.Command, a access, done string,
	do func(*repo.Repository, context.Context, string, repo.KeyOptions) (repo.ID, error),
) {
	var file string
	cmd.Flags().StringVar(&file, "new-password-file", "",
		"file that holds the new password (default: $"+envNewPassword+")")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		password, err := secret(file, t.Getenv(envNewPassword))
		if err != nil {
			return err
		}
		if password == "" {
			return usage(fmt.Errorf("no new password: give --new-password-file or set %s", envNewPassword))
		}
		return t.with(cmd.Context(), a, func(ctx context.Context, s *session) error {
			id, err := do(s.repository, ctx, password, t.keyOptions())
			if err != nil {
				return err
			}
			return t.show(map[string]string{"id": id.String()}, func(w io.Writer) { fmt.Fprintln(w, done, id.Short()) })
		})
	}
}

func (t *tool) keysRemoveCommand() *cobra.Command {
	return &cobra.Command{
		Use: "remove ID", Short: "Make the password of a key useless", Args: exactly(1, "a key's ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return t.with(cmd.Context(), exclusive, func(ctx context.Context, s *session) error {
				id, err := keyByID(ctx, s.repository, args[0])
				if err != nil {
					return err
				}
				if err := s.repository.RemoveKey(ctx, id); err != nil {
					return err
				}
				return t.show(map[string]string{"id": id.String()}, func(w io.Writer) { fmt.Fprintln(w, "removed key", id.Short()) })
			})
		},
	}
}

func keyByID(ctx context.Context, r *repo.Repository, prefix string) (found repo.ID, err error) {
	keys, err := r.ListKeys(ctx)
	if err != nil {
		return found, err
	}
	n := 0
	for _, k := range keys {
		if strings.HasPrefix(k.ID.String(), prefix) {
			n, found = n+1, k.ID
		}
	}
	if n != 1 {
		return found, usage(fmt.Errorf("%d of the repository's %d keys have an ID that starts with %.64q", n, len(keys), prefix))
	}
	return found, nil
}

// secret reads a password from a file if there is one, without the newline that files end with.
func secret(file, value string) (string, error) {
	if file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return "", fmt.Errorf("reading the password: %w", err)
		}
		value = string(text)
	}
	return strings.TrimRight(value, "\r\n"), nil
}
