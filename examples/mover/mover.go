// Command mover shows a Mover of one's own: tasks are handed to an agent through a folder, and so are their results.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"example.com/pvcbackup/backup"
	"example.com/pvcbackup/backup/contract"
)

// spool is a Mover. An attempt is up to three files that begin with its name:
//
//	.task     what to do; written by the Mover
//	.running  exists once the agent has begun
//	.result   how it ended; written by the agent
type spool string

var _ backup.Mover = spool("")

func (s spool) file(task backup.Task, attempt int, kind string) string {
	return filepath.Join(string(s), task.Name(attempt)+kind) // a name tells owner, role, slot and attempt apart
}

// Start writes the task, unless that was done before.
func (s spool) Start(ctx context.Context, task backup.Task, attempt int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	text, err := json.Marshal(task)
	if err != nil {
		return err
	}
	err = writeOnce(s.file(task, attempt, ".task"), text)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// Poll looks which files there are.
func (s spool) Poll(ctx context.Context, task backup.Task, attempt int) (backup.MoverState, error) {
	found, err := s.files(ctx, task, attempt)
	switch {
	case err != nil: // it is not known
		return backup.MoverState{}, err
	case !slices.Contains(found, ".task"):
		return backup.MoverState{Phase: backup.MoverAbsent}, nil
	case slices.Contains(found, ".result"):
		text, err := os.ReadFile(s.file(task, attempt, ".result"))
		return backup.MoverState{Phase: backup.MoverEnded, Result: result(task, text)}, err
	case slices.Contains(found, ".running"):
		return backup.MoverState{Phase: backup.MoverRunning}, nil
	}
	return backup.MoverState{Phase: backup.MoverStarting, Reason: "AgentBusy", Message: "no agent has begun yet"}, nil
}

// files are the kinds of files that there are of an attempt.
func (s spool) files(ctx context.Context, task backup.Task, attempt int) (found []string, err error) {
	for _, kind := range []string{".task", ".running", ".result"} {
		_, err := os.Stat(s.file(task, attempt, kind))
		switch {
		case err == nil:
			found = append(found, kind)
		case !errors.Is(err, fs.ErrNotExist):
			return nil, err
		}
	}
	return found, ctx.Err()
}

// result is what the agent wrote, or a failure: unknown is not success.
func result(task backup.Task, text []byte) *contract.Result {
	got, err := contract.DecodeResult(string(text))
	if err == nil && got.Operation != task.Request.Operation {
		err = errors.New("the result is of another operation")
	}
	if err != nil {
		got = contract.Result{Version: contract.Version, Operation: task.Request.Operation,
			Outcome: contract.Failed, Reason: contract.ReasonInternal, Message: err.Error(), Retry: true}
	}
	return &got
}

// Stop removes every attempt's files, the newest first, so that a Stop after a crash finds what is left.
func (s spool) Stop(ctx context.Context, task backup.Task) (gone bool, err error) {
	var attempts [][]string
	for {
		found, err := s.files(ctx, task, len(attempts)+1)
		if err != nil {
			return false, err
		}
		if len(found) == 0 {
			break
		}
		attempts = append(attempts, found)
	}
	for i, found := range slices.Backward(attempts) {
		for _, kind := range found {
			if err := os.Remove(s.file(task, i+1, kind)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return false, err
			}
		}
	}
	return true, nil
}

// writeOnce writes a file that appears only when it is complete, and only if there is none.
func writeOnce(file string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(file), "unfinished-")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(text)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Link(f.Name(), file)
}
