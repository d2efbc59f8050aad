package backup

import (
	"context"
	"errors"
	"time"

	"example.com/pvcbackup/backup/contract"
	"example.com/pvcbackup/reconcilekit"
	"example.com/pvcbackup/schedule"
	"example.com/pvcbackup/snapshot"
	"example.com/pvcbackup/snapshot/stage"
)

// Runner makes runs. It holds no state of its own and is safe for concurrent use.
type Runner struct {
	Snapshots *snapshot.Client
	Stages    *stage.Client
	Mover     Mover
}

// Run is one run: one slot of one owner.
type Run struct {
	Owner Owner
	// Claim is the name of the claim to back up.
	Claim string
	Slot  schedule.Slot
	// Class is the VolumeSnapshotClass; empty chooses by the volume's driver.
	Class string
	// Snapshot and Staged are the deadlines of those steps; zero is none.
	Snapshot snapshot.Deadlines
	Staged   time.Duration
	// Task is what the mover is asked, but for its source volume, and the claim's and snapshot's facts in its request.
	Task     Task
	Attempts Attempts
	// Hold returns an error while no snapshot may be taken, such as while something else fills the claim; a waiting or
	// transient error only delays the run. Nil never holds. It is not asked once the snapshot exists.
	Hold func(ctx context.Context) error
	// Settings completes the Pod's settings once it is known that a mover will start; nil leaves them as they are.
	Settings func(ctx context.Context, pod PodSettings) (PodSettings, error)
}

// Stage is what a run waits for, for people.
type Stage string

// The stages.
const (
	StageSnapshot Stage = "Snapshot"
	StageStaging  Stage = "Staging"
	StageMoving   Stage = "Moving"
)

// Progress is how far a run is.
type Progress struct {
	Stage Stage
	// Attempt and Mover are about the newest mover, if there is one.
	Attempt int
	Mover   MoverState
	// Result is set when the run has ended. A terminal error ends it as well.
	Result *contract.Result
}

// Step does the next thing that is due. Until the run has ended the error is a waiting or transient one; a terminal one
// ends the run. It may be called at any time, as often as one likes.
func (r *Runner) Step(ctx context.Context, run Run, now time.Time) (Progress, error) {
	starter := &starter{Mover: r.Mover, runner: r, run: run, now: now, stage: StageMoving}
	state, err := Advance(ctx, starter, run.task(), run.Attempts, now)
	progress := Progress{Stage: starter.stage, Attempt: state.Attempt, Mover: state.Mover, Result: state.Result}
	if starter.stage != StageMoving {
		progress.Attempt-- // it is not started yet
	}
	return progress, err
}

// starter is a Mover that has what an attempt reads brought about before it starts one, be it the first or a later one.
type starter struct {
	Mover
	runner *Runner
	run    Run
	now    time.Time
	// stage is what the run waits for.
	stage Stage
}

// Start starts the attempt with the completed task.
func (s *starter) Start(ctx context.Context, _ Task, attempt int) error {
	stage, task, err := s.runner.prepare(ctx, s.run, s.now)
	if s.stage = stage; err != nil {
		return err
	}
	return s.Mover.Start(ctx, task, attempt)
}

// prepare brings about the snapshot and the staged claim, and returns the task that reads it, and how far it came.
func (r *Runner) prepare(ctx context.Context, run Run, now time.Time) (Stage, Task, error) {
	claim, err := r.claim(ctx, run)
	if err != nil {
		return StageSnapshot, Task{}, err
	}
	taken, err := r.snapshot(ctx, run, claim, now)
	if err != nil {
		return StageSnapshot, Task{}, err
	}
	staged, err := r.stage(ctx, run, claim, taken, now)
	if err != nil {
		return StageStaging, Task{}, err
	}
	task := run.task()
	task.Volumes.Source = staged.Name
	if backup := task.Request.Backup; backup != nil {
		copied := *backup
		copied.Time = taken.TakenAt
		copied.Tags = append(append([]string(nil), backup.Tags...), contract.TagClaim+"="+string(claim.PVC.UID))
		task.Request.Backup = &copied
	}
	if run.Settings != nil {
		task.Pod, err = run.Settings(ctx, task.Pod)
	}
	return StageMoving, task, err
}

// claim resolves the claim. In the middle of a run a claim that is missing is no longer waited for.
func (r *Runner) claim(ctx context.Context, run Run) (snapshot.Claim, error) {
	claim, err := r.Snapshots.ResolveClaim(ctx, run.Owner.Namespace, run.Claim)
	if errors.Is(err, snapshot.ErrClaimMissing) {
		err = reconcilekit.Terminal(reconcilekit.Reason(err), err)
	}
	return claim, err
}

func (r *Runner) snapshot(ctx context.Context, run Run, claim snapshot.Claim, now time.Time) (snapshot.Observation, error) {
	class, err := r.class(ctx, run, claim)
	if err != nil {
		return snapshot.Observation{}, err
	}
	taken, err := r.Snapshots.Ensure(ctx, snapshot.Request{
		Namespace: run.Owner.Namespace,
		Name:      run.snapshotName(),
		Claim:     run.Claim,
		Class:     class,
		Owner:     run.Owner.snapshotOwner(),
		Labels:    run.Owner.Labels(RoleSnapshot, run.Slot.ID),
	})
	if err != nil {
		return taken, err
	}
	return taken, snapshot.Judge(taken, run.Snapshot, now)
}

// class is chosen once: a default that changes afterwards does not end a run whose snapshot is being taken.
func (r *Runner) class(ctx context.Context, run Run, claim snapshot.Claim) (string, error) {
	begun, err := r.Snapshots.Observe(ctx, run.Owner.Namespace, run.snapshotName())
	if err != nil || begun.State != snapshot.Absent {
		return begun.Class, err
	}
	if run.Hold != nil {
		if err := run.Hold(ctx); err != nil {
			return "", err
		}
	}
	class, err := r.Snapshots.ChooseClass(ctx, claim.Driver, run.Class)
	return class.Name, err
}

func (r *Runner) stage(ctx context.Context, run Run, claim snapshot.Claim, taken snapshot.Observation, now time.Time) (stage.Observation, error) {
	staged, err := r.Stages.Ensure(ctx, stage.Request{
		Namespace: run.Owner.Namespace,
		Name:      run.stageName(),
		Owner:     run.Owner.snapshotOwner(),
		Labels:    run.Owner.Labels(RoleStage, run.Slot.ID),
		Snapshot:  taken,
		Source:    claim,
	})
	if err != nil {
		return staged, err
	}
	return staged, stage.Judge(staged, run.Staged, now)
}

func (r Run) snapshotName() string { return r.Owner.ChildName(RoleSnapshot, r.Slot.ID, 0) }
func (r Run) stageName() string    { return r.Owner.ChildName(RoleStage, r.Slot.ID, 0) }

func (r Run) task() Task {
	task := r.Task
	task.Owner, task.Role, task.Slot = r.Owner, RoleBackup, r.Slot.ID
	return task
}

// Cleanup ends what a run left, whether it ended or not: its movers, then every staged claim of the owner, then the
// owner's VolumeSnapshots, except those that keep wants. It returns true when nothing that should go is left; call it
// again until then. It never touches the store.
func (r *Runner) Cleanup(ctx context.Context, run Run, keep func(stage.Leftover) bool) (gone bool, err error) {
	if gone, err := r.Mover.Stop(ctx, run.task()); err != nil || !gone {
		return false, err
	}
	return Sweep(ctx, r.Stages, run.Owner, keep)
}

// Sweep deletes every staged claim and VolumeSnapshot of the owner except those that keep wants (nil: none). It returns
// true when nothing that should go is left.
func Sweep(ctx context.Context, stages *stage.Client, owner Owner, keep func(stage.Leftover) bool) (gone bool, err error) {
	swept, err := stages.Sweep(ctx, owner.Namespace, owner.snapshotOwner(), keep)
	return err == nil && len(swept.Deleting) == 0, err
}
