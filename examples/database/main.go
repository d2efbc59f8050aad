package main

import (
	"context"
	"flag"
	"os"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
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
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"example.com/pvcbackup/backup"
	"example.com/pvcbackup/backup/jobmover"
	"example.com/pvcbackup/backup/scheduled"
)

func main() {
	image := flag.String("mover-image", "", "an image whose entrypoint is the pvcbackup data tool")
	flag.Parse()
	ctrl.SetLogger(zap.New())
	err := run(ctrl.SetupSignalHandler(), ctrl.GetConfigOrDie(), func(mgr ctrl.Manager) scheduled.Mover {
		return jobmover.New(jobmover.Options{
			Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), Image: *image,
			Logs: jobmover.PodLogs(kubernetes.NewForConfigOrDie(mgr.GetConfig()).CoreV1()), // for progress
		})
	})
	if err != nil {
		ctrl.Log.Error(err, "the operator stopped")
		os.Exit(1)
	}
}

func run(ctx context.Context, config *rest.Config, newMover func(ctrl.Manager) scheduled.Mover) error {
	scheme := runtime.NewScheme()
	if err := addToScheme(scheme); err != nil {
		return err
	}
	// What is not ours stays out of memory.
	ours := cache.ByObject{Label: labels.SelectorFromSet(labels.Set{backup.LabelManagedBy: backup.ManagedBy})}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		Cache: cache.Options{ByObject: map[client.Object]cache.ByObject{
			&batchv1.Job{}: ours, &corev1.Pod{}: ours, &snapshotv1.VolumeSnapshot{}: ours,
		}},
		Client: client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.ConfigMap{}}}},
	})
	if err != nil {
		return err
	}
	if err := setUp(mgr, newMover(mgr)); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

func addToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(version, &Database{}, &DatabaseList{})
	metav1.AddToGroupVersion(scheme, version)
	builder := runtime.NewSchemeBuilder(clientgoscheme.AddToScheme, snapshotv1.AddToScheme)
	return builder.AddToScheme(scheme)
}
