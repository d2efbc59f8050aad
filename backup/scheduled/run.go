package scheduled

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/pvcbackup/backup"
	"example.com/pvcbackup/backup/contract"
	"example.com/pvcbackup/reconcilekit"
	"example.com/pvcbackup/schedule"
	"example.com/pvcbackup/snapshot"
)

// ReasonReplaced is the reason of a run that was stopped in favour of a later slot.
const ReasonReplaced = "Replaced"

func (p *pass) setNext(plan schedule.Plan) {
	p.planned = plan.Next
	p.status.NextBackup = nil
	if !plan.Next.IsZero() && !p.policy.Suspend {
		p.status.NextBackup = &metav1.Time{Time: plan.Next}
	}
}

// run begins the run that is due, or goes on with the one in flight. The error is terminal when it ended badly.
func (p *pass) run(ctx context.Context, plan schedule.Plan) error {
	if plan.Replace {
		if err := p.stopMovers(ctx); err != nil {
			return err
		}
		p.status.end(failed(ReasonReplaced, "a later slot took over, as concurrencyPolicy Replace asks"), p.now)
	}
	if p.status.Current == nil {
		if err := p.begin(ctx, plan.Run); err != nil {
			return err
		}
	}
	progress, err := p.step(ctx)
	switch {
	case progress.Result != nil:
		return p.end(*progress.Result)
	case reconcilekit.Classify(err) == reconcilekit.ClassTerminal:
		return p.end(failed(reasonOf(err), err.Error()))
	}
	p.status.observe(progress)
	return err
}

// begin decides on a run, in writing, before anything is created for it.
func (p *pass) begin(ctx context.Context, slot schedule.Slot) error {
	if err := p.preflight(ctx); err != nil {
		if reconcilekit.Classify(err) != reconcilekit.ClassTerminal {
			return err
		}
		p.status.begin(slot, p.now)
		return p.end(failed(reasonOf(err), err.Error()))
	}
	if err := p.locate(ctx); err != nil {
		return err
	}
	p.status.begin(slot, p.now)
	p.status.Phase = p.phase()
	return p.persist(ctx)
}

// stopMovers ends every mover of the object. It returns nil when none is left.
func (p *pass) stopMovers(ctx context.Context) error {
	gone, err := p.stopTasks(ctx, func(backup.TaskRef) bool { return false })
	if err == nil && !gone {
		err = reconcilekit.Waiting("StoppingMovers", tidyLook, nil)
	}
	return err
}

// preflight refuses what no run could do, before one is decided on. A claim that is missing is waited for without using
// up the slot.
func (p *pass) preflight(ctx context.Context) error {
	if _, err := p.options.Stores.Locate(p.obj); err != nil {
		return err
	}
	_, err := p.runner.Snapshots.ResolveClaim(ctx, p.owner.Namespace, p.obj.BackupClaim())
	if errors.Is(err, snapshot.ErrClaimMissing) {
		return fmt.Errorf("%w: create it, or have another object back up another claim", err)
	}
	if err != nil {
		return err
	}
	return p.held(ctx)
}

func (p *pass) held(ctx context.Context) error {
	if p.options.Hold == nil {
		return nil
	}
	err := p.options.Hold(ctx, p.obj)
	p.isHeld = err != nil
	return err
}

// step does the next thing that is due for the run in flight.
func (p *pass) step(ctx context.Context) (backup.Progress, error) {
	if err := p.findRepository(ctx); err != nil {
		return backup.Progress{Stage: "Repository"}, err
	}
	run, err := p.runOf()
	if err != nil {
		return backup.Progress{}, err
	}
	return p.runner.Step(ctx, run, p.now)
}

// end records the result of the run in flight and returns what a reconcile of an object in that state returns.
func (p *pass) end(r contract.Result) error {
	p.status.end(r, p.now)
	p.noteFoundKey()
	p.ended = &r
	switch r.Outcome {
	case contract.Succeeded:
		p.tell(corev1.EventTypeNormal, "BackupCompleted", "slot %s is backed up as %.8s: %d files, %d bytes, %d bytes added",
			p.status.LastAttempt.Slot, r.SnapshotID, r.Files, r.Bytes, r.Added)
	case contract.Empty:
		p.tell(corev1.EventTypeWarning, ReasonVolumeEmpty, "slot %s: the volume holds no files", p.status.LastAttempt.Slot)
	default:
		p.tell(corev1.EventTypeWarning, resultReason(r), "slot %s failed: %s", p.status.LastAttempt.Slot, r.Message)
	}
	return p.status.verdict()
}

// verdict is the error of an object whose newest run failed: terminal until the next slot, an edit or a trigger.
func (s *Status) verdict() error {
	last := s.LastAttempt
	if last == nil || last.Outcome == string(contract.Succeeded) || last.Outcome == string(contract.Empty) || last.Reason == ReasonReplaced {
		return nil
	}
	return reconcilekit.Terminal(resultReason(contract.Result{Outcome: contract.Outcome(last.Outcome), Reason: last.Reason}), errors.New(last.Message))
}

// resultReason is the reason of a result as a condition and an event take it. A mover's own may be missing or unfit.
func resultReason(r contract.Result) string {
	if r.Reason == "" {
		return string(r.Outcome)
	}
	return reconcilekit.Reason(reconcilekit.Terminal(r.Reason, nil))
}

// retryOfEdit returns the run that tries again what failed, now that the spec was edited; zero when none is due. It is
// known by the generation, so that an edit asks for one run.
func (p *pass) retryOfEdit() schedule.Slot {
	seen, generation := p.status.ObservedGeneration, p.obj.GetGeneration()
	if p.spec.Suspend || p.status.Current != nil || p.status.verdict() == nil || seen == 0 || seen == generation {
		return schedule.Slot{}
	}
	return schedule.Slot{
		Time: p.now.UTC().Truncate(time.Second), Kind: schedule.Manual, ID: fmt.Sprintf("edit-%d", generation),
		Token: p.status.HandledTrigger,
	}
}

func failed(reason, message string) contract.Result {
	return contract.Result{Operation: contract.OperationBackup, Outcome: contract.Failed, Reason: reason, Message: message}
}

// runOf describes the run in flight.
func (p *pass) runOf() (backup.Run, error) {
	task, err := p.task(contract.OperationBackup)
	if err != nil {
		return backup.Run{}, err
	}
	slot := p.status.Current.slot()
	task.Request.Backup = &contract.Backup{
		Run:         fmt.Sprintf("%s-%s-%s", p.owner.UID, slot.ID, slot.Kind),
		Tags:        p.tags(slot),
		Initialize:  p.mayInitialize(),
		Owner:       p.repositoryOwner(),
		SampleBlobs: p.spec.sampleBlobs(),
	}
	return backup.Run{
		Owner: p.owner, Claim: p.obj.BackupClaim(), Slot: slot, Class: p.spec.className(),
		Snapshot: p.spec.Deadlines.Snapshot(), Staged: p.spec.Deadlines.Stage(),
		Task: task, Attempts: p.options.Attempts, Hold: p.held, Settings: p.identity,
	}, nil
}

func (p *pass) tags(slot schedule.Slot) []string {
	return []string{
		contract.TagOwner + "=" + string(p.owner.UID),
		contract.TagSlot + "=" + slot.ID,
		contract.TagKind + "=" + string(slot.Kind),
	}
}

// task is what all tasks of an object have in common.
func (p *pass) task(operation contract.Operation) (backup.Task, error) {
	place, err := p.options.Stores.Locate(p.obj)
	if err != nil {
		return backup.Task{}, err
	}
	secrets := place.Secrets
	switch operation {
	case contract.OperationLookup:
		secrets.Password, secrets.PasswordKey = "", ""
	case contract.OperationMaintain, contract.OperationDelete:
		maintenance := p.spec.Storage.maintenance()
		secrets.Credentials, secrets.CredentialsOptional = maintenance.Credentials, maintenance.CredentialsOptional
	}
	return backup.Task{
		Owner:      p.owner,
		Request:    contract.Request{Operation: operation, Identity: place.Identity, RepositoryID: place.RepositoryID},
		Repository: place.URL,
		Secrets:    secrets,
		Volumes:    backup.Volumes{Destination: place.Volume},
		Pod:        p.spec.Mover.PodSettings(),
		Deadlines:  p.spec.Deadlines.Mover(),
	}, nil
}

// repositoryOwner is who a repository belongs to: the claim, since objects come and go.
func (p *pass) repositoryOwner() string {
	return p.options.Stores.ClusterID + "/" + p.owner.Namespace + "/" + p.obj.BackupClaim()
}
