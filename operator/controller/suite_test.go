package controller

import (
	"io"
	"os"
	"testing"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"example.com/pvcbackup/backup"
	"example.com/pvcbackup/backup/restore"
	"example.com/pvcbackup/backup/scheduled"
	v1 "example.com/pvcbackup/operator/api/v1"
	"example.com/pvcbackup/reconcilekit"
	"example.com/pvcbackup/reconcilekit/kittest"
	"example.com/pvcbackup/snapshot"
	"example.com/pvcbackup/snapshot/stage"
)

var api = kittest.NewAPIServer(kittest.APIServerOptions{Scheme: testScheme(), CRDPaths: []string{"../config/crd/bases"}})

func TestMain(m *testing.M) {
	log.SetLogger(zap.New(zap.WriteTo(io.Discard)))
	os.Exit(api.Main(m))
}

func testScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, snapshotv1.AddToScheme, v1.AddToScheme} {
		utilruntime.Must(add(scheme))
	}
	return scheme
}

// newRestorer is the reconciler as SetupPVCRestore makes it, without a manager.
func newRestorer(c client.Client, mover scheduled.Mover, recorder events.EventRecorder, now func() time.Time) *PVCRestoreReconciler {
	return &PVCRestoreReconciler{
		Client: c,
		Runner: &restore.Runner{Live: c, Mover: mover, Stages: stage.New(c, snapshot.Options{})},
		Finisher: &reconcilekit.Finisher{
			Controller: "pvcrestore", Events: restoreEvents(recorder), Status: reconcilekit.NewStatusWriter(c, reconcilekit.StatusOptions{}),
		},
		Options: Options{
			Mover: mover, Stores: scheduled.Stores{ClusterID: "c1"}, Now: now, Attempts: backup.Attempts{Backoff: time.Nanosecond},
		},
	}
}
