package localmover

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"example.com/pvcbackup/backup"
	"example.com/pvcbackup/backup/contract"
)

// Engine does one task. It finds in env what a mover Pod finds in its environment, writes progress lines to log, ends
// early when ctx ends, and returns the result.
type Engine func(ctx context.Context, env map[string]string, log io.Writer) contract.Result

// Options are the options of New.
type Options struct {
	// Env returns the variables of a task that only the caller knows: the folders of its volumes and the values of its
	// Secrets. They win over those that follow from the task. Nil means none.
	Env func(ctx context.Context, task backup.Task) (map[string]string, error)
	// Now tells the time. Nil means time.Now.
	Now func() time.Time
}

// Mover is a backup.Mover. It is safe for concurrent use.
type Mover struct {
	engine  Engine
	options Options
	ctx     context.Context
	cancel  context.CancelFunc
	wg      sync.WaitGroup

	mu       sync.Mutex
	attempts map[string]*attempt
	number   int
}

type attempt struct {
	task     backup.Task
	since    time.Time
	stop     context.CancelFunc
	progress *contract.Progress
	result   *contract.Result
}

var (
	_ backup.Mover      = (*Mover)(nil)
	_ backup.TaskLister = (*Mover)(nil)
)

// New returns a Mover that calls engine.
func New(engine Engine, o Options) *Mover {
	if o.Now == nil {
		o.Now = time.Now
	}
	m := &Mover{engine: engine, options: o, attempts: map[string]*attempt{}}
	m.ctx, m.cancel = context.WithCancel(context.Background())
	return m
}

// Close ends every attempt and returns when none runs. A closed Mover starts nothing.
func (m *Mover) Close() {
	m.cancel()
	m.wg.Wait()
}

// Start starts the engine for an attempt, unless it was started before.
func (m *Mover) Start(ctx context.Context, task backup.Task, number int) error {
	if err := cmp.Or(ctx.Err(), m.ctx.Err()); err != nil {
		return err
	}
	own := map[string]string{}
	if m.options.Env != nil {
		var err error
		if own, err = m.options.Env(ctx, task); err != nil {
			return fmt.Errorf("environment of task %s/%s: %w", task.Role, task.Slot, err)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	name := task.Name(number)
	if m.attempts[name] != nil {
		return nil
	}
	env, err := m.environment(task, name)
	if err != nil {
		return err
	}
	maps.Copy(env, own)
	run, stop := context.WithCancel(m.ctx)
	if task.Deadlines.Run > 0 {
		run, stop = context.WithTimeout(m.ctx, task.Deadlines.Run)
	}
	started := &attempt{task: task, since: m.options.Now(), stop: stop}
	m.attempts[name] = started
	m.wg.Go(func() { m.run(run, started, env) })
	return nil
}

// environment is what follows from the task. Attempts that still run here are told as live.
func (m *Mover) environment(task backup.Task, name string) (map[string]string, error) {
	task.Request.Locks = contract.Locks{Owner: string(task.Owner.UID), AsOf: m.options.Now().UnixMilli()}
	for other, a := range m.attempts {
		if a.result == nil && a.task.Owner.UID == task.Owner.UID {
			task.Request.Locks.Live = append(task.Request.Locks.Live, other)
		}
	}
	slices.Sort(task.Request.Locks.Live)
	request, err := task.Request.Encode()
	if err != nil {
		return nil, fmt.Errorf("request of task %s/%s: %w", task.Role, task.Slot, err)
	}
	m.number++
	return map[string]string{
		contract.EnvRequest: request, contract.EnvRepository: task.Repository,
		// A lock's host name must begin with the attempt's name and a dash, and be like no other.
		contract.EnvPodName: name + "-local",
		contract.EnvPodUID:  strconv.FormatInt(m.options.Now().UnixNano(), 36) + "-" + strconv.Itoa(m.number),
	}, nil
}

func (m *Mover) run(ctx context.Context, a *attempt, env map[string]string) {
	defer a.stop()
	result := m.call(ctx, a, env)
	if _, err := contract.DecodeResult(string(result.Encode())); err != nil {
		result = failed("the engine returned no valid result: %v", err)
	}
	if result.Operation != a.task.Request.Operation && result.Outcome != contract.Failed {
		result = failed("the engine reported on operation %q", result.Operation)
	}
	result.Version, result.Operation = contract.Version, a.task.Request.Operation
	m.mu.Lock()
	defer m.mu.Unlock()
	a.result, a.progress, a.since = &result, nil, m.options.Now()
}

func (m *Mover) call(ctx context.Context, a *attempt, env map[string]string) (result contract.Result) {
	defer func() {
		if p := recover(); p != nil {
			result = failed("the engine panicked: %v", p)
		}
	}()
	return m.engine(ctx, env, &progressWriter{mover: m, attempt: a})
}

func failed(format string, args ...any) contract.Result {
	return contract.Result{
		Version: contract.Version, Outcome: contract.Failed, Reason: contract.ReasonInternal, Retry: true, Message: fmt.Sprintf(format, args...),
	}
}

// Poll observes an attempt.
func (m *Mover) Poll(ctx context.Context, task backup.Task, number int) (backup.MoverState, error) {
	if err := ctx.Err(); err != nil {
		return backup.MoverState{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	a := m.attempts[task.Name(number)]
	switch {
	case a == nil:
		return backup.MoverState{Phase: backup.MoverAbsent}, nil
	case a.result != nil:
		result := *a.result
		return backup.MoverState{Phase: backup.MoverEnded, Since: a.since, Result: &result}, nil
	}
	return backup.MoverState{Phase: backup.MoverRunning, Since: a.since, Progress: a.progress}, nil
}

// Stop tells every attempt of the task to end, and forgets those that have.
func (m *Mover) Stop(ctx context.Context, task backup.Task) (gone bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	gone = true
	for name, a := range m.attempts {
		if a.task.Owner.UID != task.Owner.UID || a.task.Role != task.Role || a.task.Slot != task.Slot {
			continue
		}
		a.stop()
		if a.result == nil {
			gone = false
			continue
		}
		delete(m.attempts, name)
	}
	return gone, nil
}

// Tasks lists the tasks of an owner that were started and not stopped, in order.
func (m *Mover) Tasks(ctx context.Context, owner backup.Owner) ([]backup.TaskRef, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	found := map[backup.TaskRef]bool{}
	for _, a := range m.attempts {
		if a.task.Owner.UID == owner.UID {
			found[backup.TaskRef{Role: a.task.Role, Slot: a.task.Slot}] = true
		}
	}
	return slices.SortedFunc(maps.Keys(found), func(a, b backup.TaskRef) int {
		return cmp.Or(cmp.Compare(a.Role, b.Role), cmp.Compare(a.Slot, b.Slot))
	}), nil
}

// progressWriter finds the progress lines in a log, and drops the rest.
type progressWriter struct {
	mover   *Mover
	attempt *attempt
	line    []byte
}

// maxLine bounds a line that never ends.
const maxLine = 64 << 10

// Write takes log text. It is called by one goroutine at a time, like any log's.
func (w *progressWriter) Write(text []byte) (int, error) {
	n := len(text)
	for {
		line, rest, found := bytes.Cut(text, []byte("\n"))
		if len(w.line)+len(line) <= maxLine {
			w.line = append(w.line, line...)
		}
		if !found {
			return n, nil
		}
		if progress, ok := contract.ParseProgress(string(w.line)); ok {
			w.mover.mu.Lock()
			w.attempt.progress = &progress
			w.mover.mu.Unlock()
		}
		w.line, text = w.line[:0], rest
	}
}
