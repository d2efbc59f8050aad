package movertest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"example.com/pvcbackup/backup"
	"example.com/pvcbackup/backup/contract"
)

// Operations of a Mover, as a Call names them.
const (
	Start = "Start"
	Poll  = "Poll"
	Stop  = "Stop"
	Tasks = "Tasks"
)

// Call is a call of a Script.
type Call struct {
	Operation string
	Task      backup.TaskRef
	// Attempt is 0 for Stop and Tasks.
	Attempt int
}

// String returns the call as in "Start backup/slot/1".
func (c Call) String() string {
	return fmt.Sprintf("%s %s/%s/%d", c.Operation, c.Task.Role, c.Task.Slot, c.Attempt)
}

// Script is a backup.Mover whose attempts do what a test says. Its fields are set before its first use. It is safe for
// concurrent use.
type Script struct {
	// Plan is asked when an attempt starts: with a result it ends at once with that, and with nil it runs until
	// Finish. A nil Plan lets every attempt run.
	Plan func(task backup.Task, attempt int) *contract.Result
	// Fault is asked about every call: before makes it fail without any effect, after makes it fail although it had its
	// effect, as when an answer is lost. A nil Fault lets every call pass.
	Fault func(call Call) (before, after error)

	mu       sync.Mutex
	attempts map[string]*scripted
	calls    []Call
}

type scripted struct {
	owner backup.Owner
	task  backup.Task
	state backup.MoverState
}

var (
	_ backup.Mover      = (*Script)(nil)
	_ backup.TaskLister = (*Script)(nil)
)

// NewScript returns a Script of which nothing was started.
func NewScript() *Script { return &Script{} }

// Start starts an attempt.
func (s *Script) Start(ctx context.Context, task backup.Task, attempt int) error {
	return s.call(ctx, Start, task, attempt, func() {
		name := task.Name(attempt)
		if s.attempts[name] != nil {
			return
		}
		started := &scripted{owner: task.Owner, task: task, state: backup.MoverState{Phase: backup.MoverRunning}}
		if s.Plan != nil {
			if result := s.Plan(task, attempt); result != nil {
				started.state = ended(*result, task)
			}
		}
		if s.attempts == nil {
			s.attempts = map[string]*scripted{}
		}
		s.attempts[name] = started
	})
}

// Poll tells what Plan, Finish and Set made of an attempt.
func (s *Script) Poll(ctx context.Context, task backup.Task, attempt int) (backup.MoverState, error) {
	state := backup.MoverState{Phase: backup.MoverAbsent}
	err := s.call(ctx, Poll, task, attempt, func() {
		if started := s.attempts[task.Name(attempt)]; started != nil {
			state = started.state
		}
	})
	if err != nil {
		return backup.MoverState{}, err
	}
	return state, nil
}

// Stop forgets the attempts of a task.
func (s *Script) Stop(ctx context.Context, task backup.Task) (bool, error) {
	err := s.call(ctx, Stop, task, 0, func() {
		maps.DeleteFunc(s.attempts, func(_ string, a *scripted) bool { return sameTask(a.task, task) })
	})
	return err == nil, err
}

// Tasks lists the tasks that were started and not stopped.
func (s *Script) Tasks(ctx context.Context, owner backup.Owner) ([]backup.TaskRef, error) {
	found := map[backup.TaskRef]bool{}
	err := s.call(ctx, Tasks, backup.Task{Owner: owner}, 0, func() {
		for _, a := range s.attempts {
			if a.owner.UID == owner.UID {
				found[ref(a.task)] = true
			}
		}
	})
	if err != nil {
		return nil, err
	}
	return slices.SortedFunc(maps.Keys(found), func(a, b backup.TaskRef) int {
		return cmp.Or(cmp.Compare(a.Role, b.Role), cmp.Compare(a.Slot, b.Slot))
	}), nil
}

// Finish ends an attempt that was started. It panics when there is none: the test is wrong.
func (s *Script) Finish(task backup.Task, attempt int, result contract.Result) {
	s.Set(task, attempt, ended(result, task))
}

// Set makes an attempt that was started be observed like that. It panics when there is none: the test is wrong.
func (s *Script) Set(task backup.Task, attempt int, state backup.MoverState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	started := s.attempts[task.Name(attempt)]
	if started == nil {
		panic(fmt.Sprintf("movertest: attempt %d of %s/%s was not started", attempt, task.Role, task.Slot))
	}
	started.state = state
}

// Task returns the task that an attempt was started with.
func (s *Script) Task(task backup.Task, attempt int) (backup.Task, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if started := s.attempts[task.Name(attempt)]; started != nil {
		return started.task, true
	}
	return backup.Task{}, false
}

// Calls returns the calls so far, those that failed included.
func (s *Script) Calls() []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

func (s *Script) call(ctx context.Context, operation string, task backup.Task, attempt int, do func()) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	call := Call{operation, ref(task), attempt}
	s.calls = append(s.calls, call)
	var before, after error
	if s.Fault != nil {
		before, after = s.Fault(call)
	}
	if before != nil {
		return before
	}
	do()
	return after
}

func ref(task backup.Task) backup.TaskRef { return backup.TaskRef{Role: task.Role, Slot: task.Slot} }

func sameTask(a, b backup.Task) bool { return a.Owner.UID == b.Owner.UID && ref(a) == ref(b) }

func ended(result contract.Result, task backup.Task) backup.MoverState {
	result.Version = contract.Version
	if result.Operation == "" {
		result.Operation = task.Request.Operation
	}
	return backup.MoverState{Phase: backup.MoverEnded, Result: &result}
}
