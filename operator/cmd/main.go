// Command manager is the reference operator.
package main

import (
	"flag"
	"os"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"example.com/pvcbackup/operator/app"
	// +kubebuilder:scaffold:imports
)

var (
	scheme   = runtime.NewScheme()
	setupLog = ctrl.Log.WithName("setup")
)

func init() {
	utilruntime.Must(app.AddToScheme(scheme))
	// +kubebuilder:scaffold:scheme
}

func main() {
	options, logs := app.DefaultOptions(), zap.Options{}
	options.AddFlags(flag.CommandLine)
	logs.BindFlags(flag.CommandLine)
	flag.Parse()
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&logs)))

	ctx := ctrl.SetupSignalHandler()
	mgr, err := app.New(ctx, ctrl.GetConfigOrDie(), scheme, options)
	if err != nil {
		setupLog.Error(err, "the operator cannot start")
		os.Exit(1)
	}
	// +kubebuilder:scaffold:builder

	setupLog.Info("starting")
	if err := mgr.Start(ctx); err != nil {
		setupLog.Error(err, "the operator stopped")
		os.Exit(1)
	}
}
