package main

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"example.com/pvcbackup/backup"
	"example.com/pvcbackup/backup/contract"
)

// agent does the tasks of a spool, until ctx ends. It would run beside the data, on another machine.
func agent(ctx context.Context, spool, source, target string) error {
	for ctx.Err() == nil {
		tasks, err := filepath.Glob(filepath.Join(spool, "*.task"))
		if err != nil {
			return err
		}
		for _, file := range tasks {
			name := strings.TrimSuffix(file, ".task")
			if err := writeOnce(name+".running", nil); errors.Is(err, fs.ErrExist) {
				continue
			} else if err != nil {
				return err
			}
			if err := writeOnce(name+".result", do(file, source, target).Encode()); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}

// do copies the source into a folder of the task's slot. A copy stands here for whatever moves your data.
func do(file, source, target string) contract.Result {
	failed := func(err error) contract.Result {
		return contract.Result{
			Operation: contract.OperationBackup, Outcome: contract.Failed, Reason: "CopyFailed", Message: err.Error(), Retry: true,
		}
	}
	var task backup.Task
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &task)
	}
	if err != nil {
		return failed(err)
	}
	// An attempt that was cut short left part of a copy. It never gets the name of a whole one.
	copied, unfinished := filepath.Join(target, task.Slot), filepath.Join(target, task.Slot+".unfinished")
	if _, err := os.Stat(copied); err != nil {
		err = errors.Join(os.RemoveAll(unfinished), os.CopyFS(unfinished, os.DirFS(source)))
		if err == nil {
			err = os.Rename(unfinished, copied)
		}
		if err != nil {
			return failed(err)
		}
	}
	return contract.Result{Operation: task.Request.Operation, Outcome: contract.Succeeded, SnapshotID: task.Slot}
}
