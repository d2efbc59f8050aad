package main

import (
	"context"
	"flag"
	"os"

	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"example.com/pvcbackup/reconcilekit"
)

func main() {
	root := flag.String("root", os.TempDir(), "where the folders are made")
	flag.Parse()
	ctrl.SetLogger(zap.New())
	if err := run(ctrl.SetupSignalHandler(), ctrl.GetConfigOrDie(), *root); err != nil {
		ctrl.Log.Error(err, "the operator stopped")
		os.Exit(1)
	}
}

func run(ctx context.Context, config *rest.Config, root string) error {
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: newScheme(), Metrics: metricsserver.Options{BindAddress: "0"},
	})
	if err != nil {
		return err
	}
	counts, err := reconcilekit.NewMetrics(metrics.Registry)
	if err != nil {
		return err
	}
	r := &reconciler{Client: mgr.GetClient(), root: root, finisher: &reconcilekit.Finisher{
		Controller: "share", Metrics: counts,
		Status: reconcilekit.NewStatusWriter(mgr.GetClient(), reconcilekit.StatusOptions{}),
		Events: &reconcilekit.Events{Recorder: mgr.GetEventRecorder("share")},
	}}
	err = ctrl.NewControllerManagedBy(mgr).For(&Share{}).
		WithOptions(controller.Options{RateLimiter: reconcilekit.RateLimiter()}).Complete(r)
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}
