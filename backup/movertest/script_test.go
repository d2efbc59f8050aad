package movertest

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"example.com/pvcbackup/backup"
	"example.com/pvcbackup/backup/contract"
)

func taskOf(n int) backup.Task {
	return backup.Task{
		Owner: backup.Owner{Namespace: "ns", Name: "data", UID: "uid"}, Role: backup.RoleBackup, Slot: fmt.Sprintf("slot-%d", n),
		Request: contract.Request{Operation: contract.OperationBackup, Backup: &contract.Backup{Run: "run"}},
	}
}

func TestScriptConforms(t *testing.T) {
	Run(t, func(*testing.T) World {
		script, n := NewScript(), 0
		return World{
			Mover:  func() backup.Mover { return script },
			Task:   func() backup.Task { n++; return taskOf(n) },
			Finish: script.Finish,
			Kill: func(task backup.Task, attempt int) {
				script.Finish(task, attempt, contract.Result{Outcome: contract.Failed, Reason: "ResultLost", Message: "killed", Retry: true})
			},
		}
	})
}

func TestFaultsHappenBeforeOrAfterTheEffect(t *testing.T) {
	lost := errors.New("lost")
	for name, started := range map[string]bool{"before": false, "after": true} {
		t.Run(name, func(t *testing.T) {
			script := NewScript()
			script.Fault = func(call Call) (before, after error) {
				switch {
				case call.Operation != Start:
					return nil, nil
				case started:
					return nil, lost
				}
				return lost, nil
			}
			require.ErrorIs(t, script.Start(t.Context(), taskOf(1), 1), lost)
			_, got := script.Task(taskOf(1), 1)
			require.Equal(t, started, got)
		})
	}
}

func TestPlanDecidesAtTheStart(t *testing.T) {
	script := NewScript()
	script.Plan = func(_ backup.Task, attempt int) *contract.Result {
		if attempt == 1 {
			return &contract.Result{Outcome: contract.Empty}
		}
		return nil
	}
	require.NoError(t, script.Start(t.Context(), taskOf(1), 1))
	require.NoError(t, script.Start(t.Context(), taskOf(1), 2))
	state, err := script.Poll(t.Context(), taskOf(1), 1)
	require.NoError(t, err)
	require.Equal(t, contract.Empty, state.Result.Outcome)
	require.Equal(t, contract.OperationBackup, state.Result.Operation)
	want := []Call{
		{Start, backup.TaskRef{Role: backup.RoleBackup, Slot: "slot-1"}, 1}, {Start, backup.TaskRef{Role: backup.RoleBackup, Slot: "slot-1"}, 2},
		{Poll, backup.TaskRef{Role: backup.RoleBackup, Slot: "slot-1"}, 1},
	}
	if diff := cmp.Diff(want, script.Calls()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	require.Equal(t, "Poll backup/slot-1/1", script.Calls()[2].String())
}
