package controller

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/pvcbackup/backup/scheduled"
	v1 "example.com/pvcbackup/operator/api/v1"
	"example.com/pvcbackup/reconcilekit"
)

// +kubebuilder:rbac:groups=storage.example.com,resources=pvcbackups,verbs=list;watch;patch
// +kubebuilder:rbac:groups=storage.example.com,resources=pvcbackups/status,verbs=patch
// +kubebuilder:rbac:groups=storage.example.com,resources=pvcbackups/finalizers,verbs=update
// +kubebuilder:rbac:groups=snapshot.storage.k8s.io,resources=volumesnapshots,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups=snapshot.storage.k8s.io,resources=volumesnapshotclasses,verbs=list
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups="",resources=persistentvolumes,verbs=get;patch
// +kubebuilder:rbac:groups=storage.k8s.io,resources=storageclasses,verbs=get
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups="",resources=pods,verbs=list;watch;patch;delete
// +kubebuilder:rbac:groups="",resources=pods/log,verbs=get
// +kubebuilder:rbac:groups="",resources=secrets,verbs=create
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups="",resources=namespaces,resourceNames=kube-system,verbs=get

// PVCBackupReconciler reconciles PVCBackups.
type PVCBackupReconciler struct {
	Client client.Reader
	Loop   *scheduled.Loop
}

// Reconcile implements reconcile.Reconciler.
func (r *PVCBackupReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var obj v1.PVCBackup
	switch err := r.Client.Get(ctx, req.NamespacedName, &obj); {
	case reconcilekit.IsGone(err):
		r.Loop.Forget(req.Namespace, req.Name)
		return ctrl.Result{}, nil
	case err != nil:
		return ctrl.Result{}, fmt.Errorf("reading PVCBackup %s: %w", req.NamespacedName, err)
	}
	return r.Loop.Reconcile(ctx, &obj)
}

// indexClaim finds PVCBackups by their claim.
const indexClaim = "spec.pvcName"

// SetupPVCBackup adds the controller of PVCBackups to a manager.
func SetupPVCBackup(mgr ctrl.Manager, options Options) error {
	loop, err := scheduled.New(scheduled.Options{
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Mover: options.Mover, Stores: options.Stores,
		Controller: "pvcbackup", Recorder: mgr.GetEventRecorder("pvcbackup"),
		KitMetrics: options.KitMetrics, Metrics: options.Metrics,
		Attempts: options.Attempts, MaintainEvery: options.MaintainEvery, Now: options.Now,
		Hold: whileRestored(mgr.GetClient()),
	})
	if err != nil {
		return err
	}
	return (&PVCBackupReconciler{Client: mgr.GetClient(), Loop: loop}).SetupWithManager(mgr, options)
}

// SetupWithManager adds the reconciler to a manager.
func (r *PVCBackupReconciler) SetupWithManager(mgr ctrl.Manager, options Options) error {
	ctx := context.Background()
	if err := indexByUID(ctx, mgr, &v1.PVCBackup{}); err != nil {
		return err
	}
	err := mgr.GetFieldIndexer().IndexField(ctx, &v1.PVCBackup{}, indexClaim, func(obj client.Object) []string {
		return []string{obj.(*v1.PVCBackup).Spec.PVCName}
	})
	if err != nil {
		return err
	}
	if err := indexByTarget(ctx, mgr); err != nil {
		return err
	}
	children := childrenOf(mgr.GetClient(), func() *v1.PVCBackupList { return &v1.PVCBackupList{} })
	building := ctrl.NewControllerManagedBy(mgr).Named("pvcbackup").WithOptions(options.controller()).
		For(&v1.PVCBackup{}).
		Watches(&batchv1.Job{}, children).
		Watches(&corev1.Pod{}, children).
		Watches(&corev1.PersistentVolumeClaim{}, children)
	if options.Claims != nil {
		building = building.WatchesRawSource(claimSource(options.Claims, r.claims()))
	}
	built, err := building.Build(r)
	if err != nil {
		return err
	}
	return mgr.Add(watchSnapshots{mgr: mgr, target: built, handler: children})
}

// claims maps a claim to the PVCBackups that back it up.
func (r *PVCBackupReconciler) claims() handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, claim client.Object) []reconcile.Request {
		return listed(ctx, r.Client, &v1.PVCBackupList{}, client.InNamespace(claim.GetNamespace()), client.MatchingFields{indexClaim: claim.GetName()})
	})
}
