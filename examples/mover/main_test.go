package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/pvcbackup/backup"
	"example.com/pvcbackup/backup/contract"
	"example.com/pvcbackup/backup/movertest"
)

func TestTheAgentCopies(t *testing.T) {
	source, target := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(source, "a"), []byte("hello"), 0o600))
	var out strings.Builder
	require.NoError(t, run(t.Context(), t.TempDir(), source, target, &out))
	require.Equal(t, "attempt 1: Succeeded \n", out.String())
	copies, err := os.ReadDir(target)
	require.NoError(t, err)
	require.Len(t, copies, 1)
	text, err := os.ReadFile(filepath.Join(target, copies[0].Name(), "a"))
	require.NoError(t, err)
	require.Equal(t, "hello", string(text))
}

// TestTheMoverKeepsItsPromises is all that a Mover's author has to write. The test plays the agent.
func TestTheMoverKeepsItsPromises(t *testing.T) {
	movertest.Run(t, func(t *testing.T) movertest.World {
		s, n := spool(t.TempDir()), 0
		write := func(task backup.Task, attempt int, kind string, text []byte) {
			require.NoError(t, os.WriteFile(s.file(task, attempt, kind), text, 0o600))
		}
		return movertest.World{
			Mover: func() backup.Mover { return agentTakesAll{s} },
			Task: func() backup.Task {
				n++
				return backup.Task{
					Owner: backup.Owner{Namespace: "ns", Name: "data", UID: "uid"},
					Role:  backup.RoleBackup, Slot: fmt.Sprint("slot-", n),
					Request: contract.Request{Operation: contract.OperationBackup, Backup: &contract.Backup{Run: "run"}},
				}
			},
			Finish: func(task backup.Task, attempt int, r contract.Result) { write(task, attempt, ".result", r.Encode()) },
			Kill:   func(task backup.Task, attempt int) { write(task, attempt, ".result", []byte("{")) },
		}
	})
}

// agentTakesAll is the spool with an agent that begins with every task at once.
type agentTakesAll struct{ spool }

func (a agentTakesAll) Start(ctx context.Context, task backup.Task, attempt int) error {
	err := a.spool.Start(ctx, task, attempt)
	if err == nil {
		err = os.WriteFile(a.file(task, attempt, ".running"), nil, 0o600)
	}
	return err
}
