package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"example.com/pvcbackup/backup"
	"example.com/pvcbackup/backup/contract"
	"example.com/pvcbackup/backup/restore"
	"example.com/pvcbackup/backup/scheduled"
	v1 "example.com/pvcbackup/operator/api/v1"
	"example.com/pvcbackup/reconcilekit"
	"example.com/pvcbackup/snapshot"
	"example.com/pvcbackup/snapshot/stage"
)

// +kubebuilder:rbac:groups=storage.example.com,resources=pvcrestores,verbs=list;watch;patch
// +kubebuilder:rbac:groups=storage.example.com,resources=pvcrestores/status,verbs=patch
// +kubebuilder:rbac:groups=storage.example.com,resources=pvcrestores/finalizers,verbs=update

// PVCRestoreReconciler reconciles PVCRestores: each restores once.
type PVCRestoreReconciler struct {
	Client   client.Client
	Runner   *restore.Runner
	Finisher *reconcilekit.Finisher
	Options  Options
}

// SetupPVCRestore adds the controller of PVCRestores to a manager.
func SetupPVCRestore(mgr ctrl.Manager, options Options) error {
	events := restoreEvents(mgr.GetEventRecorder("pvcrestore"))
	r := &PVCRestoreReconciler{
		Client: reconcilekit.BoundedClient(mgr.GetClient(), 0),
		Runner: &restore.Runner{
			Live: mgr.GetAPIReader(), Mover: options.Mover,
			Stages: stage.New(reconcilekit.Uncached(mgr.GetClient(), mgr.GetAPIReader()), snapshot.Options{Live: mgr.GetAPIReader()}),
		},
		Finisher: &reconcilekit.Finisher{
			Controller: "pvcrestore", Events: events, Metrics: options.KitMetrics,
			Status: reconcilekit.NewStatusWriter(mgr.GetClient(), reconcilekit.StatusOptions{}),
		},
		Options: options,
	}
	return r.SetupWithManager(mgr, options)
}

func restoreEvents(recorder reconcilekit.EventRecorder) *reconcilekit.Events {
	return &reconcilekit.Events{Recorder: recorder, Action: "Restore", Silent: []string{reconcilekit.TypeReconciling}}
}

// SetupWithManager adds the reconciler to a manager.
func (r *PVCRestoreReconciler) SetupWithManager(mgr ctrl.Manager, options Options) error {
	if err := indexByUID(context.Background(), mgr, &v1.PVCRestore{}); err != nil {
		return err
	}
	children := childrenOf(mgr.GetClient(), func() *v1.PVCRestoreList { return &v1.PVCRestoreList{} })
	return ctrl.NewControllerManagedBy(mgr).Named("pvcrestore").WithOptions(options.controller()).
		For(&v1.PVCRestore{}).
		Watches(&batchv1.Job{}, children).
		Watches(&corev1.Pod{}, children).
		Watches(&corev1.PersistentVolumeClaim{}, children).
		Complete(r)
}

// Reconcile implements reconcile.Reconciler.
func (r *PVCRestoreReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var obj v1.PVCRestore
	switch err := r.Client.Get(ctx, req.NamespacedName, &obj); {
	case reconcilekit.IsGone(err):
		return ctrl.Result{}, nil
	case err != nil:
		return ctrl.Result{}, fmt.Errorf("reading PVCRestore %s: %w", req.NamespacedName, err)
	}
	before := obj.DeepCopy()
	outcome, err := r.serve(ctx, &obj)
	obj.Status.Phase = phaseOf(&obj, outcome.Ready)
	policy := reconcilekit.Policy{Now: r.Options.now(), Summary: v1.ConditionSucceeded, TerminalLook: -1}
	return r.Finisher.Finish(ctx, before, &obj, outcome, err, policy)
}

func (r *PVCRestoreReconciler) serve(ctx context.Context, obj *v1.PVCRestore) (reconcilekit.Outcome, error) {
	if !obj.DeletionTimestamp.IsZero() || obj.Status.Completed != nil {
		return r.tidy(ctx, obj)
	}
	if added, err := reconcilekit.EnsureFinalizer(ctx, r.Client, obj, scheduled.Finalizer); err != nil || added {
		return reconcilekit.Outcome{Ready: succeeded(metav1.ConditionUnknown, "InProgress", "the restore begins")}, err
	}
	now := metav1.NewTime(r.Options.now())
	if obj.Status.Started == nil {
		obj.Status.Started = &now
	}
	run, err := r.run(ctx, obj)
	if err != nil {
		return r.ended(obj, nil, err)
	}
	progress, err := r.Runner.Step(ctx, run, now.Time)
	obj.Status.Attempt = int32(progress.Attempt)
	obj.Status.Progress = scheduled.ProgressOf(progress.Mover.Progress)
	return r.ended(obj, progress.Result, err)
}

// ended records the end of the restore, if it has come.
func (r *PVCRestoreReconciler) ended(obj *v1.PVCRestore, result *contract.Result, err error) (reconcilekit.Outcome, error) {
	if result == nil && reconcilekit.Classify(err) != reconcilekit.ClassTerminal {
		return reconcilekit.Outcome{Ready: succeeded(metav1.ConditionUnknown, "InProgress", reconcilekit.StableMessage(err))}, err
	}
	now := metav1.NewTime(r.Options.now())
	obj.Status.Completed, obj.Status.Progress = &now, nil
	if result == nil {
		result = &contract.Result{Outcome: contract.Failed, Reason: reconcilekit.Reason(err), Message: err.Error()}
	}
	obj.Status.SnapshotID, obj.Status.Bytes, obj.Status.Files, obj.Status.Notes = result.SnapshotID, result.Bytes, result.Files, result.Notes
	if !result.SnapshotTime.IsZero() {
		obj.Status.SnapshotTime = &metav1.Time{Time: result.SnapshotTime}
	}
	if result.Good() || result.Outcome == contract.Empty {
		return reconcilekit.Outcome{Ready: succeeded(metav1.ConditionTrue, "Restored", fmt.Sprintf(
			"%d files with %d bytes are restored and verified", result.Files, result.Bytes))}, nil
	}
	reason := result.Reason
	if reason == "" {
		reason = string(result.Outcome)
	}
	return reconcilekit.Outcome{Ready: succeeded(metav1.ConditionFalse, reason, result.Message)},
		reconcilekit.Terminal(reason, errors.New(result.Message))
}

func succeeded(status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: v1.ConditionSucceeded, Status: status, Reason: reason, Message: message}
}

// tidy ends the movers of a restore that has ended or is being deleted, and lets the object go. The claim stays.
func (r *PVCRestoreReconciler) tidy(ctx context.Context, obj *v1.PVCRestore) (reconcilekit.Outcome, error) {
	ended := reconcilekit.Outcome{}
	if c := meta.FindStatusCondition(obj.Status.Conditions, v1.ConditionSucceeded); c != nil {
		ended.Ready = *c
	}
	err := r.letGo(ctx, obj)
	if err == nil && ended.Ready.Status == metav1.ConditionFalse {
		err = reconcilekit.Terminal(ended.Ready.Reason, errors.New(ended.Ready.Message))
	}
	return ended, err
}

// letGo drops the finalizer once no mover is left.
func (r *PVCRestoreReconciler) letGo(ctx context.Context, obj *v1.PVCRestore) error {
	if !controllerutil.ContainsFinalizer(obj, scheduled.Finalizer) {
		return nil
	}
	gone, err := r.Runner.Cleanup(ctx, restore.Run{Owner: ownerOf(obj)})
	if err == nil && !gone {
		return reconcilekit.Waiting("StoppingMovers", 0, nil)
	}
	if err != nil && !reconcilekit.IsNamespaceTerminating(err) {
		return err
	}
	return reconcilekit.DropFinalizer(ctx, r.Client, obj, scheduled.Finalizer)
}

// run describes the restore.
func (r *PVCRestoreReconciler) run(ctx context.Context, obj *v1.PVCRestore) (restore.Run, error) {
	place, err := r.place(ctx, obj)
	if err != nil {
		return restore.Run{}, err
	}
	run := restore.Run{
		Owner: ownerOf(obj), Claim: obj.Spec.Target.PVCName, Staged: obj.Spec.Deadlines.Stage(), Attempts: r.Options.Attempts,
		Task: backup.Task{
			Repository: place.URL, Secrets: place.Secrets,
			Request: contract.Request{
				Operation: contract.OperationRestore, Identity: place.Identity, RepositoryID: place.RepositoryID,
				Restore: requestOf(obj, place),
			},
			Volumes: backup.Volumes{Destination: place.Volume},
			Pod:     obj.Spec.Mover.PodSettings(), Deadlines: obj.Spec.Deadlines.Mover(),
		},
	}
	if c := obj.Spec.Target.Create; c != nil {
		run.Create = &restore.NewClaim{Size: c.Size, AccessModes: c.AccessModes}
		if c.StorageClassName != nil {
			run.Create.StorageClass = *c.StorageClassName
		}
	}
	return run, nil
}

func requestOf(obj *v1.PVCRestore, place scheduled.Place) *contract.Restore {
	spec := obj.Spec
	request := &contract.Restore{
		SnapshotID: spec.SnapshotID, Path: spec.Path, Overwrite: spec.Target.Overwrite, AllowAbsent: spec.AllowAbsent,
		Tags: spec.Source.Tags, AnyHost: place.Identity.Host == "", AnyPath: place.Identity.Path == "",
	}
	if spec.AsOf != nil {
		request.AsOf = spec.AsOf.Time
	}
	if spec.Offset != nil {
		request.Offset = int(*spec.Offset)
	}
	return request
}

// place finds the backups to choose from.
func (r *PVCRestoreReconciler) place(ctx context.Context, obj *v1.PVCRestore) (scheduled.Place, error) {
	source := obj.Spec.Source
	if source.PVCBackup == "" {
		return r.storage(source)
	}
	namespace := obj.Namespace
	if source.Namespace != "" {
		namespace = source.Namespace
	}
	var from v1.PVCBackup
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: source.PVCBackup}, &from)
	switch {
	case err != nil && !reconcilekit.IsGone(err):
		return scheduled.Place{}, err
	case namespace != obj.Namespace:
		return r.foreign(obj, &from)
	case err != nil:
		return scheduled.Place{}, reconcilekit.Waiting("SourceMissing", sourceLook, fmt.Errorf(
			"there is no PVCBackup %s: create it, or name the store with source.storage", source.PVCBackup))
	}
	return r.Options.Stores.Locate(&from)
}

// sourceLook is how often a source is looked for that is not there, or not granted.
const sourceLook = 30 * time.Second

// foreign accepts a source of another namespace when that one grants it. One that does not exist is answered like one
// that is not granted, so that nobody learns what there is in other namespaces.
func (r *PVCRestoreReconciler) foreign(obj *v1.PVCRestore, from *v1.PVCBackup) (scheduled.Place, error) {
	source := obj.Spec.Source
	if !from.RestorableTo(obj.Namespace) {
		return scheduled.Place{}, reconcilekit.Waiting("SourceNotGranted", sourceLook, fmt.Errorf(
			"PVCBackup %s/%s does not exist or may not be restored from here: have its annotation %s list the namespace %s",
			source.Namespace, source.PVCBackup, v1.AnnotationRestoreTo, obj.Namespace))
	}
	if volume := from.BackupSpec().Storage; volume != nil && volume.Volume != "" {
		return scheduled.Place{}, reconcilekit.Terminal("SourceOutOfReach", fmt.Errorf(
			"the backups of PVCBackup %s/%s are in a claim of that namespace, which Pods of this one cannot mount: restore there",
			source.Namespace, source.PVCBackup))
	}
	return r.Options.Stores.Locate(from)
}

func (r *PVCRestoreReconciler) storage(source v1.RestoreSource) (scheduled.Place, error) {
	url, err := r.Options.Stores.URL(source.Storage, "")
	if err != nil {
		return scheduled.Place{}, err
	}
	secrets := source.Storage.Credentials()
	secrets.Password, secrets.PasswordKey = source.Encryption.PasswordSecretRef.PasswordKey()
	return scheduled.Place{
		URL: url, Secrets: secrets, Volume: source.Storage.Volume,
		Identity: contract.Identity{Host: source.Host, Path: source.Path},
	}, nil
}

func ownerOf(obj *v1.PVCRestore) backup.Owner {
	return backup.Owner{
		APIVersion: v1.GroupVersion.String(), Kind: "PVCRestore", Namespace: obj.Namespace, Name: obj.Name, UID: obj.UID,
	}
}

func phaseOf(obj *v1.PVCRestore, summary metav1.Condition) string {
	switch {
	case obj.Status.Completed == nil && obj.Status.Attempt > 0:
		return "Restoring"
	case obj.Status.Completed == nil:
		return "Preparing"
	case summary.Status == metav1.ConditionFalse:
		return "Failed"
	}
	return "Completed"
}
