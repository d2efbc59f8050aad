package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"example.com/pvcbackup/reconcilekit"
	"example.com/pvcbackup/reconcilekit/kittest"
)

var api = kittest.NewAPIServer(kittest.APIServerOptions{
	Scheme: testScheme(), CRDPaths: []string{"crd"}, WithoutVolumeSnapshots: true,
})

// testScheme knows namespaces too, which tests make.
func testScheme() *runtime.Scheme {
	s := newScheme()
	utilruntime.Must(corev1.AddToScheme(s))
	return s
}

func TestMain(m *testing.M) {
	log.SetLogger(zap.New(zap.WriteTo(io.Discard)))
	os.Exit(api.Main(m))
}

func TestTheProgramOnARealAPIServer(t *testing.T) {
	cluster, root := api.Start(t), t.TempDir()
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() { stopped <- run(ctx, cluster.Config, root) }()
	t.Cleanup(func() { stop(); require.NoError(t, <-stopped) })

	share := &Share{
		ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace(t), Name: "music"}, Spec: ShareSpec{Folder: "../../etc"},
	}
	require.NoError(t, cluster.Client.Create(t.Context(), share))
	kittest.EventuallyObject(t, cluster.Client, share, 30*time.Second, func() error {
		stalled := meta.FindStatusCondition(share.Status.Conditions, reconcilekit.TypeStalled)
		if stalled == nil || stalled.Reason != "BadFolder" {
			return fmt.Errorf("it is not stalled by its bad folder")
		}
		return nil
	})
	share.Spec.Folder = "songs"
	require.NoError(t, cluster.Client.Update(t.Context(), share))
	kittest.EventuallyObject(t, cluster.Client, share, 30*time.Second, func() error {
		if !meta.IsStatusConditionTrue(share.Status.Conditions, reconcilekit.TypeReady) {
			return fmt.Errorf("it is not ready")
		}
		return nil
	})
	kittest.CheckStatus(t, share, kittest.Contract{Settled: true})
	require.DirExists(t, share.Status.Path)

	require.NoError(t, cluster.Client.Delete(t.Context(), share))
	kittest.Eventually(t, 30*time.Second, func() error {
		if err := cluster.Client.Get(t.Context(), client.ObjectKeyFromObject(share), share); !reconcilekit.IsGone(err) {
			return fmt.Errorf("it is still there: %w", err)
		}
		return nil
	})
	require.NoDirExists(t, share.Status.Path)
}

// TestItMayCrashAnywhere stops the operator before and after each of its writes, and lets each fail and lose its answer.
func TestItMayCrashAnywhere(t *testing.T) {
	for name, deleted := range map[string]bool{"made": false, "deleted": true} {
		t.Run(name, func(t *testing.T) {
			newWorld := func(t testing.TB) kittest.World { return world(t, deleted) }
			require.Positive(t, kittest.CrashEverywhere(t, kittest.Scenario{World: newWorld}))
		})
	}
}

func world(t testing.TB, deleted bool) kittest.World {
	root, key := t.TempDir(), client.ObjectKey{Namespace: "ns", Name: "music"}
	share := &Share{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: "uid", Generation: 1}}
	if deleted {
		share.Finalizers = []string{finalizer}
		require.NoError(t, os.Mkdir(root+"/uid", 0o700))
	}
	c := kittest.FakeClient(newScheme(), share)
	if deleted {
		require.NoError(t, c.Delete(t.Context(), share))
	}
	return kittest.World{
		Client: c,
		Start: func(p kittest.Process) kittest.Reconcile {
			r := &reconciler{Client: p.Client, root: root, finisher: &reconcilekit.Finisher{
				Status: reconcilekit.NewStatusWriter(p.Client, reconcilekit.StatusOptions{}),
			}}
			return func(ctx context.Context) (ctrl.Result, error) {
				return r.Reconcile(ctx, ctrl.Request{NamespacedName: key})
			}
		},
		Final: func(ctx context.Context) (any, error) {
			share := &Share{}
			err := c.Get(ctx, key, share)
			folders, readErr := os.ReadDir(root)
			if readErr != nil {
				return nil, readErr
			}
			ready := meta.IsStatusConditionTrue(share.Status.Conditions, reconcilekit.TypeReady)
			return fmt.Sprint(reconcilekit.IsGone(err), share.Finalizers, ready, len(folders)), nil
		},
	}
}
