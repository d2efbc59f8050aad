package kittest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ErrStopped is what every call of a process returns after it has been stopped.
var ErrStopped = errors.New("the process was stopped")

// Scenario is a piece of work that has to survive anything.
type Scenario struct {
	// World returns a new world; it is called once for each run.
	World func(t testing.TB) World
	// Reads tells whether reads are broken too; by default only what changes
	// something is.
	Reads bool
	// Max is how many reconciles a run may take; 50 when zero.
	Max int
	// Timeout bounds each run; 1 minute when zero.
	Timeout time.Duration
}

// World is what survives a process.
type World struct {
	// Client is how processes reach the API server.
	Client client.WithWatch
	// Start starts a process: a new reconciler that knows nothing of an earlier one.
	Start func(p Process) Reconcile
	// Between is that of [ConvergeOptions].
	Between func(ctx context.Context) (moved bool, err error)
	// Final describes the world in the end. It must leave out what may differ
	// between two good runs, such as UIDs and times.
	Final func(ctx context.Context) (any, error)
}

// Process is what a reconciler may use of the world.
type Process struct {
	// Client reaches the API server.
	Client client.WithWatch
	// Outside makes a call to something else, such as a bucket; name says what
	// it does, such as "put pack".
	Outside func(name string, call func() error) error
}

// ways are how a call can go wrong.
var ways = []way{
	{name: "fails"},
	{name: "loses its response", performed: true},
	{name: "is where the process stops, before it", stops: true},
	{name: "is where the process stops, after it", performed: true, stops: true},
}

type way struct {
	name             string
	performed, stops bool
}

// CrashEverywhere runs the scenario once as it is and counts its n calls. Then
// it runs it again, in a new world, for each call and each way in which that
// can go wrong: the call fails; it is made and its response is lost; the process
// stops before it and another starts; the process stops after it and another
// starts. Every run must settle (see [Converge]) in the same final world.
//
// It returns n, so that the test can tell that it broke what it meant to break.
func CrashEverywhere(t testing.TB, s Scenario) (n int) {
	t.Helper()
	clean := &run{scenario: s}
	want, err := clean.play(t)
	if err != nil {
		t.Fatalf("the clean run: %v", err)
	}
	if len(clean.calls) == 0 {
		t.Fatalf("the clean run made no call that could go wrong")
	}
	for i, call := range clean.calls {
		for _, w := range ways {
			if problem := crashAt(t, s, i+1, w, want); problem != "" {
				t.Errorf("call %d of %d (%s) %s: %s", i+1, len(clean.calls), call, w.name, problem)
			}
		}
	}
	return len(clean.calls)
}

func crashAt(t testing.TB, s Scenario, at int, w way, want any) (problem string) {
	r := &run{scenario: s, at: at, way: w}
	got, err := r.play(t)
	switch {
	case err != nil:
		return err.Error()
	case len(r.calls) < at:
		return fmt.Sprintf("the run made only %d calls; it has to make the same ones each time", len(r.calls))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		return "another final world (-clean run +this run):\n" + diff
	}
	return ""
}

// run is one run of a scenario. It breaks the call numbered at, from 1.
type run struct {
	scenario Scenario
	at       int
	way      way

	mu      sync.Mutex
	calls   []string
	stopped bool
	client  *FaultClient
}

// play runs the scenario until it settles and returns the final world.
func (r *run) play(t testing.TB) (any, error) {
	world := r.scenario.World(t)
	options := ConvergeOptions{Max: r.scenario.Max, Between: world.Between, Timeout: r.scenario.Timeout}.withDefaults()
	ctx, cancel := context.WithTimeout(t.Context(), options.Timeout)
	defer cancel()

	process := r.start(world)
	reconcile := func(ctx context.Context) (ctrl.Result, error) {
		result, err := process(ctx)
		if r.takeStopped() {
			process = r.start(world)
		}
		return result, err
	}
	if _, err := converge(ctx, func() *FaultClient { return r.client }, reconcile, options); err != nil {
		return nil, err
	}
	return world.Final(ctx)
}

// start starts a process. What an earlier one left running has a life of its
// own that is over: its calls fail.
func (r *run) start(world World) Reconcile {
	catchUp(world.Client) // a new process starts with a fresh cache
	life := &life{run: r}
	r.client = Client(world.Client, Rule{Fault: func(_ context.Context, a Attempt) error {
		if !r.scenario.Reads && !a.Call.IsWrite() {
			return life.read(a.Perform)
		}
		return life.call(a.Call.String(), a.Perform, a.Unseen)
	}})
	return world.Start(Process{
		Client: r.client,
		Outside: func(name string, call func() error) error {
			return life.call(name, call, call)
		},
	})
}

// takeStopped tells whether the process was stopped, once.
func (r *run) takeStopped() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	stopped := r.stopped
	r.stopped = false
	return stopped
}

// life is that of one process.
type life struct {
	run  *run
	over bool // guarded by run.mu
}

func (l *life) read(perform func() error) error {
	l.run.mu.Lock()
	over := l.over
	l.run.mu.Unlock()
	if over {
		return ErrStopped
	}
	return perform()
}

// call counts a call and breaks it when it is its turn.
func (l *life) call(name string, perform, unseen func() error) error {
	broken, over := l.next(name)
	switch {
	case over:
		return ErrStopped
	case !broken:
		return perform()
	}
	way := l.run.way
	if way.performed {
		if err := unseen(); err != nil {
			return err
		}
	}
	if way.stops {
		return ErrStopped
	}
	return ErrInjected
}

func (l *life) next(name string) (broken, over bool) {
	r := l.run
	r.mu.Lock()
	defer r.mu.Unlock()
	if l.over {
		return false, true
	}
	r.calls = append(r.calls, name)
	broken = len(r.calls) == r.at
	if broken && r.way.stops {
		// Over from this moment, also for goroutines of this process.
		l.over, r.stopped = true, true
	}
	return broken, false
}
