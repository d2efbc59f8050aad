package app

import (
	"context"
	"fmt"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"github.com/prometheus/client_golang/prometheus"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"example.com/pvcbackup/backup"
	"example.com/pvcbackup/backup/jobmover"
	"example.com/pvcbackup/backup/scheduled"
	v1 "example.com/pvcbackup/operator/api/v1"
	"example.com/pvcbackup/operator/controller"
	"example.com/pvcbackup/reconcilekit"
)

// LeaderElectionID is the name of the lease.
const LeaderElectionID = "pvcbackup.storage.example.com"

// AddToScheme registers every type that the operator uses.
func AddToScheme(scheme *runtime.Scheme) error {
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, snapshotv1.AddToScheme, v1.AddToScheme} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	return nil
}

// New returns a manager with everything in it, ready to start.
func New(ctx context.Context, config *rest.Config, scheme *runtime.Scheme, options Options) (manager.Manager, error) {
	if err := options.Validate(); err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(config, managerOptions(scheme, options))
	if err != nil {
		return nil, fmt.Errorf("making the manager: %w", err)
	}
	if err := addControllers(ctx, mgr, options, metrics.Registry); err != nil {
		return nil, err
	}
	if err := mgr.AddHealthzCheck("healthz", healthz.Ping); err != nil {
		return nil, err
	}
	return mgr, mgr.AddReadyzCheck("readyz", healthz.Ping)
}

func managerOptions(scheme *runtime.Scheme, options Options) ctrl.Options {
	return ctrl.Options{
		Scheme:                        scheme,
		Cache:                         cacheOptions(),
		Metrics:                       metricsserver.Options{BindAddress: options.MetricsAddress},
		HealthProbeBindAddress:        options.ProbeAddress,
		LeaderElection:                options.LeaderElect,
		LeaderElectionID:              LeaderElectionID,
		LeaderElectionNamespace:       options.LeaderElectionNamespace,
		LeaderElectionReleaseOnCancel: true,
		GracefulShutdownTimeout:       &options.ShutdownTimeout,
	}
}

// cacheOptions keep what is not ours out of memory.
func cacheOptions() cache.Options {
	ours := cache.ByObject{Label: labels.SelectorFromSet(labels.Set{backup.LabelManagedBy: backup.ManagedBy})}
	return cache.Options{
		ByObject: map[client.Object]cache.ByObject{
			&batchv1.Job{}:                  ours,
			&corev1.Pod{}:                   ours,
			&corev1.PersistentVolumeClaim{}: ours,
			&snapshotv1.VolumeSnapshot{}:    ours,
		},
		DefaultTransform: cache.TransformStripManagedFields(),
	}
}

func addControllers(ctx context.Context, mgr ctrl.Manager, options Options, registerer prometheus.Registerer) error {
	clusterID, err := clusterID(ctx, mgr.GetAPIReader(), options.ClusterID)
	if err != nil {
		return err
	}
	claims, err := claimCache(mgr)
	if err != nil {
		return err
	}
	kit, err := reconcilekit.NewMetrics(registerer)
	if err != nil {
		return err
	}
	ours, err := scheduled.NewMetrics(registerer, nil)
	if err != nil {
		return err
	}
	mover, err := newMover(mgr, options)
	if err != nil {
		return err
	}
	common := controller.Options{
		Mover: mover, Claims: claims, Workers: options.Workers, MaintainEvery: options.MaintainEvery,
		Stores:     scheduled.Stores{ClusterID: clusterID, Parameters: options.Stores},
		KitMetrics: kit, Metrics: ours,
		// A second manager in this process has the same controllers. They share metrics, which add up.
		SkipNameValidation: true,
	}
	if err := controller.SetupPVCBackup(mgr, common); err != nil {
		return fmt.Errorf("setting up the PVCBackup controller: %w", err)
	}
	if err := controller.SetupPVCRestore(mgr, common); err != nil {
		return fmt.Errorf("setting up the PVCRestore controller: %w", err)
	}
	return nil
}

func newMover(mgr ctrl.Manager, options Options) (*jobmover.Mover, error) {
	clientset, err := kubernetes.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("making the client for logs: %w", err)
	}
	return jobmover.New(jobmover.Options{
		Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), Image: options.MoverImage, Logs: jobmover.PodLogs(clientset.CoreV1()),
	}), nil
}

// claimCache holds the metadata of every claim, and nothing else of it.
func claimCache(mgr ctrl.Manager) (cache.Cache, error) {
	claims, err := cache.New(mgr.GetConfig(), cache.Options{
		Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), HTTPClient: mgr.GetHTTPClient(),
		DefaultTransform: stripClaim,
	})
	if err != nil {
		return nil, fmt.Errorf("making the cache of claims: %w", err)
	}
	return claims, mgr.Add(claims)
}

// stripClaim keeps of a claim's metadata what tells that it appeared, was bound, or goes.
func stripClaim(obj any) (any, error) {
	if claim, ok := obj.(*metav1.PartialObjectMetadata); ok {
		claim.ManagedFields, claim.Labels, claim.OwnerReferences = nil, nil, nil
		claim.Annotations = map[string]string{bindCompleted: claim.Annotations[bindCompleted]}
	}
	return obj, nil
}

// bindCompleted is set by the cluster when a claim is bound.
const bindCompleted = "pv.kubernetes.io/bind-completed"

func clusterID(ctx context.Context, reader client.Reader, given string) (string, error) {
	if given != "" {
		return given, nil
	}
	var namespace corev1.Namespace
	if err := reader.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, &namespace); err != nil {
		return "", fmt.Errorf("reading the UID of the namespace %s, which names this cluster; set --cluster-id to do without: %w",
			metav1.NamespaceSystem, err)
	}
	return string(namespace.UID), nil
}
