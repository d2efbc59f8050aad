package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"example.com/pvcbackup/backup/repo"
)

// lockLine is how a lock is printed as JSON.
type lockLine struct {
	ID        string    `json:"id"`
	Refreshed time.Time `json:"refreshed"`
	Exclusive bool      `json:"exclusive"`
	Host      string    `json:"host"`
	PID       int       `json:"pid"`
	Removed   bool      `json:"removed"`
}

// staleAge is how long a lock must not have been refreshed for its process to have ended; a living one refreshes its
// lock every five minutes.
const staleAge = 30 * time.Minute

func (t *tool) unlockCommand() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use: "unlock", Short: "Remove locks whose process has ended", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := t.open(cmd.Context())
			if err != nil {
				return err
			}
			defer s.store.Close()
			return t.unlock(cmd.Context(), s, all)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "remove every lock: only if it is certain that nothing is at work in the repository")
	return cmd
}

func (t *tool) unlock(ctx context.Context, s *session, all bool) error {
	locks, err := s.repository.Locks(ctx)
	if err != nil {
		return err
	}
	lines := []lockLine{}
	for _, lock := range locks {
		line := lockLine{ID: lock.ID.String(), Refreshed: lock.Time, Exclusive: lock.Exclusive, Host: lock.Host, PID: lock.PID}
		stale := t.Now().Sub(lock.Time) > staleAge
		if all && !stale {
			t.warn("lock %s of host %s was refreshed %s ago: if its process lives, it may lose data", lock.ID.Short(), printable(lock.Host), t.Now().Sub(lock.Time).Round(time.Second))
		}
		if all || stale {
			if err := s.repository.RemoveFile(ctx, repo.LockFile, lock.ID); err != nil {
				return err
			}
			line.Removed = true
		}
		lines = append(lines, line)
	}
	return t.show(map[string]any{"locks": lines}, func(w io.Writer) { lockTable(w, lines) })
}

func lockTable(w io.Writer, lines []lockLine) {
	if len(lines) == 0 {
		fmt.Fprintln(w, "there are no locks")
		return
	}
	rows := [][]string{}
	for _, line := range lines {
		action, kind := "stays", "shared"
		if line.Removed {
			action = "removed"
		}
		if line.Exclusive {
			kind = "exclusive"
		}
		rows = append(rows, []string{line.ID[:8], stamp(line.Refreshed), kind, line.Host, action})
	}
	table(w, []string{"ID", "REFRESHED (UTC)", "KIND", "HOST", "ACTION"}, rows)
}
