package scheduled

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/pvcbackup/backup/movertest"
	"example.com/pvcbackup/reconcilekit"
	"example.com/pvcbackup/reconcilekit/kittest"
)

func TestAnAPIServerThatNeverAnswersHoldsUpNoReconcile(t *testing.T) {
	for name, change := range map[string]func(obj *thing){
		"of a new object":                func(obj *thing) { obj.Finalizers = nil },
		"that begins a run":              func(*thing) {},
		"of a run in flight":             func(obj *thing) { obj.Status.begin(hourly, noon) },
		"of an object at rest":           func(obj *thing) { obj.Spec.Suspend = true },
		"of an object that is deleted":   func(obj *thing) { obj.DeletionTimestamp = at(0) },
		"that writes down a bad storage": func(obj *thing) { obj.Spec.Storage = nil },
	} {
		t.Run(name, func(t *testing.T) {
			obj := &thing{}
			obj.Namespace, obj.Name, obj.UID, obj.ResourceVersion = "ns", "b", "uid", "1"
			obj.Finalizers, obj.CreationTimestamp = []string{Finalizer}, *at(0)
			obj.Spec.PVCName, obj.Spec.Schedule, obj.Spec.Storage = "data", "0 * * * *", &Storage{URL: "s3://b"}
			obj.Spec.Encryption = &Encryption{PasswordSecretRef: &SecretKeyRef{Name: "mine"}}
			obj.Status.Repository = &Repository{URL: "s3://b/c1/ns/data"}
			change(obj)
			c := kittest.Client(kittest.FakeClient(testScheme()), kittest.Rule{Fault: func(ctx context.Context, _ kittest.Attempt) error {
				<-ctx.Done()
				return ctx.Err()
			}})
			loop, err := New(Options{
				Client: c, Live: c, Mover: movertest.NewScript(), Stores: Stores{ClusterID: "c1"},
				Timeout: 20 * time.Millisecond, Now: func() time.Time { return noon },
			})
			require.NoError(t, err)
			done := make(chan error, 1)
			go func() {
				_, err := loop.Reconcile(context.Background(), obj)
				done <- err
			}()
			select {
			case err := <-done:
				require.Equal(t, reconcilekit.ClassTransient, reconcilekit.Classify(err))
			case <-time.After(20 * time.Second):
				t.Fatal("it waits without a deadline")
			}
			require.NotEmpty(t, c.Calls())
		})
	}
}

func TestOptionsThatLackSomethingAreRefused(t *testing.T) {
	c := kittest.FakeClient(testScheme())
	for name, options := range map[string]Options{
		"everything": {}, "a mover": {Client: c, Live: c}, "the cluster's id": {Client: c, Live: c, Mover: movertest.NewScript()},
	} {
		_, err := New(options)
		require.ErrorContains(t, err, "required", name)
	}
}
