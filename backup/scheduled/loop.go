package scheduled

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"example.com/pvcbackup/backup"
	"example.com/pvcbackup/backup/contract"
	"example.com/pvcbackup/reconcilekit"
	"example.com/pvcbackup/schedule"
	"example.com/pvcbackup/snapshot"
	"example.com/pvcbackup/snapshot/stage"
)

// Mover is what the loop needs of a mover.
type Mover interface {
	backup.Mover
	backup.TaskLister
}

// Options of New.
type Options struct {
	// Client reads from a cache and writes; Live reads from the API server itself. Both are required.
	Client client.Client
	Live   client.Reader
	// Mover moves the data. Required.
	Mover Mover
	// Stores completes the URLs of repositories. Its ClusterID is required.
	Stores Stores
	// Controller names the controller in metrics. Zero means "scheduled".
	Controller string
	// Recorder emits events; nil emits none.
	Recorder events.EventRecorder
	// KitMetrics and Metrics count; nil counts nothing.
	KitMetrics *reconcilekit.Metrics
	Metrics    *Metrics
	// Hold returns an error while no snapshot of the object's claim may be taken, such as while a restore fills it: the
	// run is not begun, or waits. Nil never holds.
	Hold func(ctx context.Context, obj Object) error
	// Attempts bounds the movers of one task. The zero value has backup's defaults.
	Attempts backup.Attempts
	// MaintainEvery is the least time between two runs of forget and prune. Zero means 24 h.
	MaintainEvery time.Duration
	// Timeout bounds every call to the API server. Zero means 30 s.
	Timeout time.Duration
	// Now tells the time; nil means time.Now.
	Now func() time.Time
}

// Loop reconciles objects with scheduled backups. It is safe for concurrent use.
type Loop struct {
	options  Options
	client   client.Client
	live     client.Reader
	runner   *backup.Runner
	finisher *reconcilekit.Finisher
	now      func() time.Time
	// What an object at rest has is looked at in the cache; a run reads past it, because an API that is not served any
	// more leaves its objects in the cache.
	cachedSnapshots *snapshot.Client
	cachedStages    *stage.Client
}

// New returns a loop. Options that lack something required are an error.
func New(o Options) (*Loop, error) {
	switch {
	case o.Client == nil || o.Live == nil || o.Mover == nil:
		return nil, errors.New("scheduled.Options: Client, Live and Mover are required")
	case o.Stores.ClusterID == "":
		return nil, errors.New("scheduled.Options: Stores.ClusterID is required: it keeps clusters that share a bucket apart")
	}
	if o.Controller == "" {
		o.Controller = "scheduled"
	}
	if o.MaintainEvery <= 0 {
		o.MaintainEvery = DefaultMaintainEvery
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	calls := snapshot.Options{Live: o.Live, Timeout: o.Timeout}
	past := reconcilekit.Uncached(o.Client, o.Live)
	return &Loop{
		options: o, client: reconcilekit.BoundedClient(o.Client, o.Timeout), live: o.Live, now: o.Now,
		cachedSnapshots: snapshot.New(o.Client, calls), cachedStages: stage.New(o.Client, calls),
		runner: &backup.Runner{Snapshots: snapshot.New(past, calls), Stages: stage.New(past, calls), Mover: o.Mover},
		finisher: &reconcilekit.Finisher{
			Controller: o.Controller,
			Status:     reconcilekit.NewStatusWriter(o.Client, reconcilekit.StatusOptions{Timeout: o.Timeout}),
			Events:     &reconcilekit.Events{Recorder: o.Recorder, Action: "Backup", Silent: []string{ConditionReconciling}},
			Metrics:    o.KitMetrics,
		},
	}, nil
}

// timeout bounds one call to the API server.
func (l *Loop) timeout() time.Duration {
	if l.options.Timeout > 0 {
		return l.options.Timeout
	}
	return reconcilekit.DefaultCallTimeout
}

// Reconcile does what is due for the object, which may come from a cache: it is copied. The result and the error are
// what the caller's own Reconcile returns.
func (l *Loop) Reconcile(ctx context.Context, cached Object) (ctrl.Result, error) {
	obj := cached.DeepCopyObject().(Object)
	gvk, err := apiutil.GVKForObject(obj, l.client.Scheme())
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("the kind of the object with backups is not in the scheme: %w", err)
	}
	p := &pass{
		Loop: l, obj: obj, before: obj.DeepCopyObject().(Object), spec: obj.BackupSpec(), status: obj.BackupStatus(),
		now: l.now(),
		owner: backup.Owner{
			APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind,
			Namespace: obj.GetNamespace(), Name: obj.GetName(), UID: obj.GetUID(),
		},
	}
	if !obj.GetDeletionTimestamp().IsZero() {
		return p.delete(ctx)
	}
	outcome, err := p.serve(ctx)
	return p.finish(ctx, outcome, err)
}

// Forget drops what is kept in memory about an object that is gone.
func (l *Loop) Forget(namespace, name string) { l.options.Metrics.forget(namespace, name) }

// pass is one reconcile of one object.
type pass struct {
	*Loop
	obj, before Object
	spec        *Spec
	status      *Status
	owner       backup.Owner
	now         time.Time

	schedule *schedule.Schedule
	policy   schedule.Policy
	// planned is when the next run will start; zero when none will.
	planned time.Time
	// isHeld says that a run is held back for now, which makes what is in the store no worse.
	isHeld bool
	// notes are events to emit, and ended a result to count, once the status is written.
	notes []note
	ended *contract.Result
}

type note struct{ kind, reason, text string }

// finish settles, writes the status, and tells what happened.
func (p *pass) finish(ctx context.Context, outcome reconcilekit.Outcome, err error) (ctrl.Result, error) {
	policy := reconcilekit.Policy{Now: p.now, NextSlot: p.planned}
	if p.schedule == nil {
		policy.TerminalLook = -1 // only an edit helps
	}
	p.status.Phase = p.phase()
	if err == nil && p.status.Current == nil {
		reconcilekit.RemoveCondition(&p.status.Conditions, ConditionReconciling) // nothing but time is waited for
	}
	version := p.obj.GetResourceVersion()
	result, settled := p.finisher.Finish(ctx, p.before, p.obj, outcome, err, policy)
	written := p.obj
	if p.obj.GetResourceVersion() != version {
		p.announce()
	} else { // nothing was written, and what is told now would be told again
		written = p.before
	}
	p.options.Metrics.observe(written, written.BackupStatus())
	return result, settled
}

// announce tells what happened, once it is written down.
func (p *pass) announce() {
	for _, n := range p.notes {
		p.finisher.Events.Emit(p.obj, n.kind, n.reason, n.text)
	}
	if p.ended != nil {
		p.options.Metrics.ended(p.obj, *p.ended)
	}
}

// persist writes the status now, because what comes next must not happen unless it is written.
func (p *pass) persist(ctx context.Context) error {
	if err := p.finisher.Status.Write(ctx, p.before, p.obj); err != nil {
		return err
	}
	p.before = p.obj.DeepCopyObject().(Object)
	return nil
}

func (p *pass) tell(kind, reason, format string, args ...any) {
	p.notes = append(p.notes, note{kind, reason, fmt.Sprintf(format, args...)})
}

// serve is the reconcile of an object that is not being deleted.
func (p *pass) serve(ctx context.Context) (reconcilekit.Outcome, error) {
	if added, err := reconcilekit.EnsureFinalizer(ctx, p.client, p.obj, Finalizer); err != nil || added {
		// The write's own event comes sooner than the look.
		return reconcilekit.Outcome{Look: time.Second, Ready: p.status.neverProtected()}, err
	}
	if err := p.compile(); err != nil {
		p.status.NextBackup = nil
		return reconcilekit.Outcome{}, err
	}
	plan := p.schedule.Plan(p.status.state(p.obj), p.policy, p.now)
	p.status.skip(plan)
	p.setNext(plan)
	p.status.escrow(p.obj, p.owner, p.now)
	if plan.Run.IsZero() {
		plan.Run = p.retryOfEdit()
	}
	if p.status.Current == nil && plan.Run.IsZero() {
		return p.idle(ctx, plan)
	}
	err := p.run(ctx, plan)
	return p.outcome(plan, err), err
}

func (p *pass) compile() error {
	compiled, err := p.spec.scheduleSpec().Compile(string(p.owner.UID))
	if err != nil {
		return err
	}
	p.schedule, p.policy = compiled, p.spec.policy(string(p.owner.UID))
	p.status.mark(schedule.Fingerprint(p.spec.scheduleSpec(), p.policy), p.obj.GetCreationTimestamp().Time, p.now)
	return nil
}

// outcome derives Ready, and when to look again although nothing happens.
func (p *pass) outcome(plan schedule.Plan, err error) reconcilekit.Outcome {
	condition, until := p.status.protected(p.schedule, p.policy, p.now)
	look := plan.Look
	if !until.IsZero() && (look <= 0 || until.Sub(p.now) < look) {
		look = max(until.Sub(p.now), time.Second)
	}
	if !p.blocked(err) {
		// What the newest run failed with stands until another one ends: one in flight proves nothing.
		err = p.status.verdict()
	}
	if err != nil {
		condition = ready(metav1.ConditionFalse, reasonOf(err), reconcilekit.StableMessage(err))
	}
	return reconcilekit.Outcome{Look: look, Ready: condition}
}

// blocked reports whether the error keeps runs from being made. That a run in flight waits for its next step does not.
func (p *pass) blocked(err error) bool {
	switch class := reconcilekit.Classify(err); {
	case class == reconcilekit.ClassTerminal:
		return true
	case class == reconcilekit.ClassWaiting && !p.isHeld:
		return p.status.Current == nil || errors.Is(err, snapshot.ErrNotInstalled)
	}
	return false
}

func reasonOf(err error) string {
	if reason := reconcilekit.Reason(err); reason != "" {
		return reason
	}
	return reconcilekit.ReasonRetrying
}
