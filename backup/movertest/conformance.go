package movertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"example.com/pvcbackup/backup"
	"example.com/pvcbackup/backup/contract"
)

// World is what a Mover under test works in.
type World struct {
	// Mover returns a Mover of this world: each call a new one, as after a restart of the operator.
	Mover func() backup.Mover
	// Task returns a task that can run in this world, for an owner that exists. Each call is a task of the same owner
	// with another slot.
	Task func() backup.Task
	// Finish lets a running attempt end with a result.
	Finish func(task backup.Task, attempt int, result contract.Result)
	// Kill ends a running attempt without a result. Nil where that cannot happen.
	Kill func(task backup.Task, attempt int)
	// Forgets says that attempts end with the Mover that started them: a new one finds them absent.
	Forgets bool
	// Patience bounds every wait. Zero means 30 s.
	Patience time.Duration
}

// Run tests that a Mover keeps the promises of the interface. Each test gets a World of its own.
func Run(t *testing.T, newWorld func(t *testing.T) World) {
	for name, test := range map[string]func(s *subject){
		"an attempt that was never started is absent":          (*subject).neverStarted,
		"starting twice is starting once":                      (*subject).startTwice,
		"a result is told again and again":                     (*subject).resultStays,
		"a failed attempt is followed by another":              (*subject).retry,
		"unknown is not success":                               (*subject).unknown,
		"stopping what was never started is done at once":      (*subject).stopNothing,
		"stopping ends every attempt of the task and no other": (*subject).stopAll,
		"stopping twice is stopping once":                      (*subject).stopTwice,
		"a task can be started again after it was stopped":     (*subject).startAgain,
		"a restarted operator goes on":                         (*subject).restart,
		"a call whose context has ended has no effect":         (*subject).cancelled,
		"tasks lists what there is to stop":                    (*subject).tasks,
		"two owners with the same slot do not see one another": (*subject).twoOwners,
	} {
		t.Run(name, func(t *testing.T) {
			world := newWorld(t)
			if world.Patience == 0 {
				world.Patience = 30 * time.Second
			}
			test(&subject{t: t, world: world, mover: world.Mover()})
		})
	}
}

type subject struct {
	t     *testing.T
	world World
	mover backup.Mover
}

func (s *subject) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *subject) until(what string, check func() error) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), s.world.Patience)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			s.t.Fatalf("not %s within %s: %v", what, s.world.Patience, err)
		case <-tick.C:
		}
	}
}

func (s *subject) start(task backup.Task, attempt int) {
	s.t.Helper()
	s.must(s.mover.Start(s.t.Context(), task, attempt))
}

func (s *subject) poll(task backup.Task, attempt int) backup.MoverState {
	s.t.Helper()
	state, err := s.mover.Poll(s.t.Context(), task, attempt)
	s.must(err)
	if ended := state.Phase == backup.MoverEnded; ended != (state.Result != nil) {
		s.t.Fatalf("phase %s with result %v", state.Phase, state.Result)
	}
	return state
}

func (s *subject) untilPhase(task backup.Task, attempt int, phase backup.MoverPhase) backup.MoverState {
	s.t.Helper()
	var state backup.MoverState
	s.until(string(phase), func() error {
		if state = s.poll(task, attempt); state.Phase != phase {
			return fmt.Errorf("attempt %d is %s: %s %s %v", attempt, state.Phase, state.Reason, state.Message, state.Result)
		}
		return nil
	})
	return state
}

func (s *subject) finish(task backup.Task, attempt int, result contract.Result) backup.MoverState {
	s.t.Helper()
	s.untilPhase(task, attempt, backup.MoverRunning)
	s.world.Finish(task, attempt, result)
	return s.untilPhase(task, attempt, backup.MoverEnded)
}

func (s *subject) untilStopped(task backup.Task) {
	s.t.Helper()
	s.until("stopped", func() error {
		gone, err := s.mover.Stop(s.t.Context(), task)
		if err == nil && !gone {
			err = errors.New("something still ends")
		}
		return err
	})
}

func (s *subject) isAbsent(task backup.Task, attempt int) {
	s.t.Helper()
	if diff := cmp.Diff(backup.MoverState{Phase: backup.MoverAbsent}, s.poll(task, attempt)); diff != "" {
		s.t.Fatalf("attempt %d is not absent: -want +got:\n%s", attempt, diff)
	}
}

func (s *subject) good(task backup.Task) contract.Result {
	return contract.Result{
		Version: contract.Version, Operation: task.Request.Operation, Outcome: contract.Succeeded, SnapshotID: "snapshot", Bytes: 5,
	}
}

func (s *subject) bad(task backup.Task) contract.Result {
	return contract.Result{
		Version: contract.Version, Operation: task.Request.Operation, Outcome: contract.Failed,
		Reason: contract.ReasonStoreUnavailable, Message: "the store is down", Retry: true,
	}
}

func (s *subject) neverStarted() {
	task := s.world.Task()
	s.isAbsent(task, 1)
	s.start(task, 1)
	s.isAbsent(task, 2)
	s.untilStopped(task)
}

func (s *subject) startTwice() {
	task := s.world.Task()
	s.start(task, 1)
	s.start(task, 1)
	want := s.good(task)
	got := s.finish(task, 1, want)
	s.start(task, 1) // also one that has ended
	if diff := cmp.Diff(&want, got.Result); diff != "" {
		s.t.Errorf("-want +got:\n%s", diff)
	}
	if state := s.poll(task, 1); state.Phase != backup.MoverEnded {
		s.t.Errorf("a further start made the attempt %s", state.Phase)
	}
	s.untilStopped(task)
}

func (s *subject) resultStays() {
	task := s.world.Task()
	s.start(task, 1)
	first := s.finish(task, 1, s.good(task))
	for range 3 {
		if diff := cmp.Diff(first, s.poll(task, 1)); diff != "" {
			s.t.Fatalf("the result changed: -first +later:\n%s", diff)
		}
	}
	s.untilStopped(task)
}

func (s *subject) retry() {
	task := s.world.Task()
	s.start(task, 1)
	want := s.bad(task)
	if diff := cmp.Diff(&want, s.finish(task, 1, want).Result); diff != "" {
		s.t.Errorf("-want +got:\n%s", diff)
	}
	s.start(task, 2)
	if !s.finish(task, 2, s.good(task)).Result.Good() {
		s.t.Error("the second attempt did not succeed")
	}
	if s.poll(task, 1).Result.Good() {
		s.t.Error("the first attempt's result changed")
	}
	s.untilStopped(task)
	s.isAbsent(task, 1)
	s.isAbsent(task, 2)
}

func (s *subject) unknown() {
	if s.world.Kill == nil {
		return
	}
	task := s.world.Task()
	s.start(task, 1)
	s.untilPhase(task, 1, backup.MoverRunning)
	s.world.Kill(task, 1)
	result := s.untilPhase(task, 1, backup.MoverEnded).Result
	if result.Outcome != contract.Failed || !result.Retry || result.Message == "" {
		s.t.Errorf("a killed attempt has the result %+v", result)
	}
	s.untilStopped(task)
}

func (s *subject) stopNothing() {
	gone, err := s.mover.Stop(s.t.Context(), s.world.Task())
	s.must(err)
	if !gone {
		s.t.Error("something is left of a task that was never started")
	}
}

func (s *subject) stopAll() {
	task, other := s.world.Task(), s.world.Task()
	s.start(task, 1)
	s.finish(task, 1, s.bad(task))
	s.start(task, 2)
	s.start(other, 1)
	s.untilStopped(task)
	s.isAbsent(task, 1)
	s.isAbsent(task, 2)
	if !s.finish(other, 1, s.good(other)).Result.Good() {
		s.t.Error("stopping one task disturbed another")
	}
	s.untilStopped(other)
}

func (s *subject) stopTwice() {
	task := s.world.Task()
	s.start(task, 1)
	s.untilStopped(task)
	gone, err := s.mover.Stop(s.t.Context(), task)
	s.must(err)
	if !gone {
		s.t.Error("what was gone is back")
	}
}

func (s *subject) startAgain() {
	task := s.world.Task()
	for range 2 {
		s.start(task, 1)
		if !s.finish(task, 1, s.good(task)).Result.Good() {
			s.t.Fatal("the attempt did not succeed")
		}
		s.untilStopped(task)
	}
}

func (s *subject) restart() {
	task := s.world.Task()
	s.start(task, 1)
	s.untilPhase(task, 1, backup.MoverRunning)
	s.mover = s.world.Mover()
	if s.world.Forgets {
		s.isAbsent(task, 1)
		s.start(task, 1)
	}
	s.finish(task, 1, s.good(task))
	if s.mover = s.world.Mover(); s.world.Forgets {
		return
	}
	if !s.poll(task, 1).Result.Good() {
		s.t.Error("the result was lost with the operator")
	}
	s.untilStopped(task)
}

func (s *subject) cancelled() {
	task := s.world.Task()
	ctx, cancel := context.WithCancel(s.t.Context())
	cancel()
	if err := s.mover.Start(ctx, task, 1); !errors.Is(err, context.Canceled) {
		s.t.Errorf("Start: %v", err)
	}
	s.isAbsent(task, 1)
	s.start(task, 1)
	if _, err := s.mover.Stop(ctx, task); !errors.Is(err, context.Canceled) {
		s.t.Errorf("Stop: %v", err)
	}
	s.untilPhase(task, 1, backup.MoverRunning)
	s.untilStopped(task)
}

func (s *subject) tasks() {
	lister, ok := s.mover.(backup.TaskLister)
	if !ok {
		return
	}
	task, other := s.world.Task(), s.world.Task()
	lists := func(want ...backup.TaskRef) {
		s.t.Helper()
		s.until("listed", func() error {
			got, err := lister.Tasks(s.t.Context(), task.Owner)
			slices.SortFunc(want, byText)
			slices.SortFunc(got, byText)
			if diff := cmp.Diff(want, got); err == nil && diff != "" {
				err = fmt.Errorf("-want +got:\n%s", diff)
			}
			return err
		})
	}
	s.start(task, 1)
	s.finish(task, 1, s.bad(task))
	s.start(task, 2)
	lists(ref(task))
	s.start(other, 1)
	lists(ref(task), ref(other))
	s.untilStopped(task)
	lists(ref(other))
	s.untilStopped(other)
	s.until("empty", func() error {
		got, err := lister.Tasks(s.t.Context(), task.Owner)
		if err == nil && len(got) > 0 {
			err = fmt.Errorf("still %v", got)
		}
		return err
	})
}

// byText puts tasks in an order, since a mover lists them in any.
func byText(a, b backup.TaskRef) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) }

func (s *subject) twoOwners() {
	task := s.world.Task()
	other := task
	other.Owner.UID += "-other"
	s.start(task, 1)
	s.isAbsent(other, 1)
	gone, err := s.mover.Stop(s.t.Context(), other)
	s.must(err)
	if !gone {
		s.t.Error("something is left of an owner that started nothing")
	}
	if !s.finish(task, 1, s.good(task)).Result.Good() {
		s.t.Error("stopping for one owner disturbed another")
	}
	s.untilStopped(task)
}
