package localmover

import (
	"context"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"example.com/pvcbackup/backup"
	"example.com/pvcbackup/backup/contract"
	"example.com/pvcbackup/backup/movertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func testTask(n int) backup.Task {
	return backup.Task{
		Owner: backup.Owner{Namespace: "ns", Name: "data", UID: "uid"}, Role: backup.RoleBackup, Slot: fmt.Sprintf("slot-%d", n),
		Repository: "s3://bucket", Request: contract.Request{Operation: contract.OperationBackup, Backup: &contract.Backup{Run: "run"}},
	}
}

func TestLocalMoverConforms(t *testing.T) {
	movertest.Run(t, func(t *testing.T) movertest.World {
		var mu sync.Mutex
		results := map[string]chan contract.Result{}
		channel := func(pod string) chan contract.Result {
			mu.Lock()
			defer mu.Unlock()
			if results[pod] == nil {
				results[pod] = make(chan contract.Result, 1)
			}
			return results[pod]
		}
		engine := func(ctx context.Context, env map[string]string, _ io.Writer) contract.Result {
			select {
			case result := <-channel(env[contract.EnvPodName]):
				return result
			case <-ctx.Done():
				return contract.Result{Outcome: contract.Failed, Reason: contract.ReasonInterrupted}
			}
		}
		n := 0
		var mover *Mover
		t.Cleanup(func() { mover.Close() })
		return movertest.World{
			Mover: func() backup.Mover {
				if mover != nil {
					mover.Close()
				}
				mover = New(engine, Options{})
				return mover
			},
			Task: func() backup.Task { n++; return testTask(n) },
			Finish: func(task backup.Task, attempt int, result contract.Result) {
				channel(task.Name(attempt) + "-local") <- result
			},
			Kill:    func(task backup.Task, attempt int) { channel(task.Name(attempt) + "-local") <- contract.Result{} },
			Forgets: true,
		}
	})
}

// ended runs one attempt with engine to its end.
func ended(t *testing.T, task backup.Task, o Options, engine Engine) contract.Result {
	t.Helper()
	mover := New(engine, o)
	t.Cleanup(mover.Close)
	require.NoError(t, mover.Start(t.Context(), task, 1))
	var state backup.MoverState
	require.Eventually(t, func() bool {
		var err error
		state, err = mover.Poll(t.Context(), task, 1)
		return err == nil && state.Phase == backup.MoverEnded
	}, 10*time.Second, time.Millisecond)
	return *state.Result
}

func TestEngineFindsAMoversEnvironment(t *testing.T) {
	var got map[string]string
	ended(t, testTask(1), Options{Env: func(context.Context, backup.Task) (map[string]string, error) {
		return map[string]string{contract.EnvSource: "/data"}, nil
	}}, func(_ context.Context, env map[string]string, _ io.Writer) contract.Result {
		got = env
		return contract.Result{Operation: contract.OperationBackup, Outcome: contract.Succeeded}
	})
	require.NotEmpty(t, got[contract.EnvPodUID])
	delete(got, contract.EnvPodUID)
	request := testTask(1).Request
	told, err := contract.DecodeRequest(got[contract.EnvRequest])
	require.NoError(t, err)
	require.NotZero(t, told.Locks.AsOf)
	request.Locks = contract.Locks{Owner: "uid", AsOf: told.Locks.AsOf}
	text, err := request.Encode()
	require.NoError(t, err)
	want := map[string]string{
		contract.EnvRequest: text, contract.EnvRepository: "s3://bucket", contract.EnvSource: "/data",
		contract.EnvPodName: testTask(1).Name(1) + "-local",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestEngineThatPanicsOrMisreportsHasFailed(t *testing.T) {
	for name, engine := range map[string]Engine{
		"panic":      func(context.Context, map[string]string, io.Writer) contract.Result { panic("boom") },
		"no outcome": func(context.Context, map[string]string, io.Writer) contract.Result { return contract.Result{} },
		"other operation": func(context.Context, map[string]string, io.Writer) contract.Result {
			return contract.Result{Operation: contract.OperationLookup, Outcome: contract.Succeeded}
		},
	} {
		t.Run(name, func(t *testing.T) {
			result := ended(t, testTask(1), Options{}, engine)
			require.Equal(t, contract.Failed, result.Outcome)
			require.True(t, result.Retry)
		})
	}
}

func TestRunDeadlineEndsTheEngine(t *testing.T) {
	task := testTask(1)
	task.Deadlines.Run = time.Millisecond
	result := ended(t, task, Options{}, func(ctx context.Context, _ map[string]string, _ io.Writer) contract.Result {
		<-ctx.Done()
		return contract.Result{Outcome: contract.Failed, Reason: contract.ReasonInterrupted, Message: "m"}
	})
	require.Equal(t, contract.ReasonInterrupted, result.Reason)
}

func TestProgressIsTheNewestLine(t *testing.T) {
	wrote, over := make(chan struct{}), make(chan struct{})
	mover := New(func(_ context.Context, _ map[string]string, log io.Writer) contract.Result {
		line := contract.Progress{Stage: "reading", Bytes: 7}.Line()
		fmt.Fprint(log, "hello\n", contract.Progress{Bytes: 1}.Line(), "\n", line[:5])
		fmt.Fprint(log, line[5:], "\nmore")
		close(wrote)
		<-over
		return contract.Result{Operation: contract.OperationBackup, Outcome: contract.Succeeded}
	}, Options{})
	require.NoError(t, mover.Start(t.Context(), testTask(1), 1))
	<-wrote
	state, err := mover.Poll(t.Context(), testTask(1), 1)
	require.NoError(t, err)
	if diff := cmp.Diff(&contract.Progress{Stage: "reading", Bytes: 7}, state.Progress); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	close(over)
	mover.Close()
	require.ErrorIs(t, mover.Start(t.Context(), testTask(2), 1), context.Canceled)
}
