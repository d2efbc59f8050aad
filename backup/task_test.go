package backup_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/pvcbackup/backup"
	"example.com/pvcbackup/backup/contract"
	"example.com/pvcbackup/backup/movertest"
	"example.com/pvcbackup/reconcilekit"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func taskOf(slot string) backup.Task {
	return backup.Task{
		Owner: backup.Owner{Namespace: "ns", Name: "b", UID: "uid-1"}, Role: backup.RoleBackup, Slot: slot,
		Request: contract.Request{Operation: contract.OperationBackup, Backup: &contract.Backup{Run: "r"}},
	}
}

func failure(retry bool) *contract.Result {
	return &contract.Result{Outcome: contract.Failed, Reason: "StoreUnavailable", Message: "m", Retry: retry}
}

// advance goes on until the task ends, or there is nothing to do at this moment.
func advance(t *testing.T, mover backup.Mover, limits backup.Attempts, now time.Time) (backup.TaskState, error) {
	t.Helper()
	for range 20 {
		state, err := backup.Advance(t.Context(), mover, taskOf("s"), limits, now)
		if state.Result != nil || reconcilekit.Reason(err) != "MoverStarting" {
			return state, err
		}
	}
	t.Fatal("it starts movers without an end")
	return backup.TaskState{}, nil
}

func TestATaskEndsWithItsFirstGoodResultOrItsLastBadOne(t *testing.T) {
	for name, test := range map[string]struct {
		plan     []*contract.Result
		limits   backup.Attempts
		attempts int
		outcome  contract.Outcome
	}{
		"a success":                      {[]*contract.Result{{Outcome: contract.Succeeded}}, backup.Attempts{}, 1, contract.Succeeded},
		"an empty volume":                {[]*contract.Result{{Outcome: contract.Empty, Retry: true}}, backup.Attempts{}, 1, contract.Empty},
		"a partial one":                  {[]*contract.Result{{Outcome: contract.Partial, Retry: true}}, backup.Attempts{}, 1, contract.Partial},
		"a failure that stays one":       {[]*contract.Result{failure(false)}, backup.Attempts{}, 1, contract.Failed},
		"a failure that passes":          {[]*contract.Result{failure(true), {Outcome: contract.Succeeded}}, backup.Attempts{}, 2, contract.Succeeded},
		"a failure that does not pass":   {[]*contract.Result{failure(true), failure(true), failure(true), failure(true)}, backup.Attempts{}, 3, contract.Failed},
		"a bound of its own":             {[]*contract.Result{failure(true), failure(true)}, backup.Attempts{Max: 1}, 1, contract.Failed},
		"a failure that becomes certain": {[]*contract.Result{failure(true), failure(false)}, backup.Attempts{}, 2, contract.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			script := movertest.NewScript()
			script.Plan = func(_ backup.Task, attempt int) *contract.Result { return test.plan[attempt-1] }
			state, err := advance(t, script, test.limits, noon)
			require.NoError(t, err)
			require.Equal(t, test.outcome, state.Result.Outcome)
			require.Equal(t, test.attempts, state.Attempt)
			require.Equal(t, test.attempts, starts(script))
			again, err := advance(t, script, test.limits, noon)
			require.NoError(t, err)
			require.Equal(t, state, again, "a task that ended stays so")
			require.Equal(t, test.attempts, starts(script))
		})
	}
}

func starts(script *movertest.Script) int {
	n := 0
	for _, call := range script.Calls() {
		if call.Operation == movertest.Start {
			n++
		}
	}
	return n
}

func TestThePauseBetweenAttemptsDoubles(t *testing.T) {
	script := movertest.NewScript()
	now := noon
	_, err := advance(t, script, backup.Attempts{Max: 4}, now)
	require.Equal(t, reconcilekit.ClassWaiting, reconcilekit.Classify(err))
	for attempt, pause := range []time.Duration{10 * time.Second, 20 * time.Second, 40 * time.Second} {
		script.Set(taskOf("s"), attempt+1, backup.MoverState{Phase: backup.MoverEnded, Since: now, Result: failure(true)})
		_, err = advance(t, script, backup.Attempts{Max: 4}, now)
		require.Equal(t, "MoverBackoff", reconcilekit.Reason(err))
		require.Equal(t, pause, reconcilekit.RetryAfter(err))
		now = now.Add(pause - time.Nanosecond)
		_, err = advance(t, script, backup.Attempts{Max: 4}, now)
		require.Equal(t, "MoverBackoff", reconcilekit.Reason(err))
		require.Equal(t, attempt+1, starts(script))
		now = now.Add(time.Nanosecond)
		_, err = advance(t, script, backup.Attempts{Max: 4}, now)
		require.Equal(t, reconcilekit.ClassWaiting, reconcilekit.Classify(err))
		require.Equal(t, attempt+2, starts(script))
	}
}

func TestWhileAMoverWorksItIsLookedAtAndSaysWhatItWaitsFor(t *testing.T) {
	script := movertest.NewScript()
	_, err := backup.Advance(t.Context(), script, taskOf("s"), backup.Attempts{}, noon)
	require.Equal(t, "MoverStarting", reconcilekit.Reason(err))
	script.Set(taskOf("s"), 1, backup.MoverState{Phase: backup.MoverStarting, Reason: "Unschedulable", Message: "no node fits"})
	_, err = backup.Advance(t.Context(), script, taskOf("s"), backup.Attempts{}, noon)
	require.Equal(t, "Unschedulable", reconcilekit.Reason(err))
	require.EqualError(t, err, "no node fits")
	script.Set(taskOf("s"), 1, backup.MoverState{Phase: backup.MoverRunning})
	state, err := backup.Advance(t.Context(), script, taskOf("s"), backup.Attempts{}, noon)
	require.Equal(t, "MoverRunning", reconcilekit.Reason(err))
	require.Equal(t, 10*time.Second, reconcilekit.RetryAfter(err))
	require.Nil(t, state.Result)
	require.Equal(t, 1, starts(script))
}

func TestWhatAMoverCannotTellIsNoEnd(t *testing.T) {
	broken := errors.New("broken")
	for _, operation := range []string{movertest.Poll, movertest.Start} {
		script := movertest.NewScript()
		script.Fault = func(call movertest.Call) (before, after error) {
			if call.Operation == operation {
				return nil, broken
			}
			return nil, nil
		}
		state, err := backup.Advance(context.Background(), script, taskOf("s"), backup.Attempts{}, noon)
		require.ErrorIs(t, err, broken)
		require.Nil(t, state.Result)
	}
}
