package snapshot_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	"example.com/pvcbackup/reconcilekit/kittest"
	"example.com/pvcbackup/snapshot"
)

const patience = 30 * time.Second

var api = kittest.NewAPIServer(kittest.APIServerOptions{Scheme: serverScheme()})

func TestMain(m *testing.M) {
	log.SetLogger(zap.New(zap.WriteTo(io.Discard)))
	os.Exit(api.Main(m))
}

func serverScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(snapshot.AddToScheme(s))
	utilruntime.Must(apiextensionsv1.AddToScheme(s))
	return s
}

func serverRequest(namespace string) snapshot.Request {
	r := request()
	r.Namespace = namespace
	return r
}

func get(t *testing.T, c client.Client, namespace string) *snapshotv1.VolumeSnapshot {
	t.Helper()
	var vs snapshotv1.VolumeSnapshot
	require.NoError(t, c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "s"}, &vs))
	return &vs
}

func TestServerEnsureCreatesOnceAndLeavesItUntouched(t *testing.T) {
	server := api.Start(t)
	ns := server.Namespace(t)
	s := snapshot.New(server.Client, snapshot.Options{})
	first, err := s.Ensure(t.Context(), serverRequest(ns))
	require.NoError(t, err)
	require.NotEmpty(t, first.UID)
	require.False(t, first.Created.IsZero())
	before := get(t, server.Client, ns).ResourceVersion
	second, err := s.Ensure(t.Context(), serverRequest(ns))
	require.NoError(t, err)
	require.Equal(t, first, second)
	require.Equal(t, before, get(t, server.Client, ns).ResourceVersion)
}

func TestServerAcceptsAChangedClassAndEnsureTells(t *testing.T) {
	server := api.Start(t)
	ns := server.Namespace(t)
	s := snapshot.New(server.Client, snapshot.Options{})
	_, err := s.Ensure(t.Context(), serverRequest(ns))
	require.NoError(t, err)

	vs := get(t, server.Client, ns)
	vs.Spec.Source.PersistentVolumeClaimName = ptr.To("other")
	require.True(t, apierrors.IsInvalid(server.Client.Update(t.Context(), vs)), "the server keeps the source")
	vs = get(t, server.Client, ns)
	vs.Spec.VolumeSnapshotClassName = ptr.To("other")
	require.NoError(t, server.Client.Update(t.Context(), vs), "and lets the class change")

	_, err = s.Ensure(t.Context(), serverRequest(ns))
	require.ErrorIs(t, err, snapshot.ErrChanged)
	r := serverRequest(ns)
	r.Claim = "other"
	_, err = s.Ensure(t.Context(), r)
	require.ErrorIs(t, err, snapshot.ErrForeign)
}

func TestServerDeletesOnlyTheVersionThatWasRead(t *testing.T) {
	server := api.Start(t)
	owner := snapshot.Owner{UID: "me"}
	for name, meanwhile := range map[string]func(t *testing.T, vs *snapshotv1.VolumeSnapshot){
		"recreated": func(t *testing.T, vs *snapshotv1.VolumeSnapshot) {
			require.NoError(t, server.Client.Delete(t.Context(), vs))
			vs = &snapshotv1.VolumeSnapshot{ObjectMeta: metav1.ObjectMeta{Namespace: vs.Namespace, Name: vs.Name}, Spec: vs.Spec}
			require.NoError(t, server.Client.Create(t.Context(), vs))
		},
		"taken from us": func(t *testing.T, vs *snapshotv1.VolumeSnapshot) {
			vs.Labels = nil
			require.NoError(t, server.Client.Update(t.Context(), vs))
		},
	} {
		t.Run(name, func(t *testing.T) {
			ns := server.Namespace(t)
			o, err := snapshot.New(server.Client, snapshot.Options{}).Ensure(t.Context(), serverRequest(ns))
			require.NoError(t, err)
			racing := interceptor.NewClient(server.Client, interceptor.Funcs{
				Delete: func(ctx context.Context, c client.WithWatch, obj client.Object, opts ...client.DeleteOption) error {
					meanwhile(t, get(t, server.Client, ns))
					return c.Delete(ctx, obj, opts...)
				},
			})
			_, err = snapshot.New(racing, snapshot.Options{}).Delete(t.Context(), o.Ref(), owner)
			require.True(t, apierrors.IsConflict(err), "got %v", err)
			require.Nil(t, get(t, server.Client, ns).DeletionTimestamp)
		})
	}
}

func TestServerDeleteAndAgain(t *testing.T) {
	server := api.Start(t)
	ns := server.Namespace(t)
	s := snapshot.New(server.Client, snapshot.Options{})
	owner := snapshot.Owner{UID: "me"}
	o, err := s.Ensure(t.Context(), serverRequest(ns))
	require.NoError(t, err)
	vs := get(t, server.Client, ns)
	vs.Finalizers = []string{"example.com/hold"}
	require.NoError(t, server.Client.Update(t.Context(), vs))

	for range 2 {
		gone, err := s.Delete(t.Context(), o.Ref(), owner)
		require.NoError(t, err)
		require.Equal(t, snapshot.Deleting, gone.State, "another's finalizer is waited for and never removed")
	}
	seen, err := s.Ensure(t.Context(), serverRequest(ns))
	require.NoError(t, err)
	require.Equal(t, snapshot.Deleting, seen.State)
	vs = get(t, server.Client, ns)
	require.Equal(t, []string{"example.com/hold"}, vs.Finalizers)
	vs.Finalizers = nil
	require.NoError(t, server.Client.Update(t.Context(), vs))
	gone, err := s.Delete(t.Context(), o.Ref(), owner)
	require.NoError(t, err)
	require.Equal(t, snapshot.Absent, gone.State)
}

func TestServerRefusesCreatesInAGoneNamespace(t *testing.T) {
	server := api.Start(t)
	ns := server.Namespace(t)
	s := snapshot.New(server.Client, snapshot.Options{})
	require.NoError(t, server.Client.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}))
	kittest.Eventually(t, patience, func() error {
		_, err := s.Ensure(t.Context(), serverRequest(ns))
		if err == nil {
			return errors.New("the namespace is not terminating yet")
		}
		require.ErrorIs(t, err, snapshot.ErrNamespaceGone)
		require.True(t, verdictOf(t, err).Terminal)
		return nil
	})
	_, err := s.Ensure(t.Context(), serverRequest("never-was"))
	require.ErrorIs(t, err, snapshot.ErrNamespaceGone)
	require.False(t, snapshot.IsGone(err), "a 404 from a create is not about the object")
}

// The order is the point: a client that never saw the API, sees it come, go
// and come again.
func TestServerTellsAnAPIThatIsNotServedFromAnObjectThatIsGone(t *testing.T) {
	server := api.Start(t)
	ns := server.Namespace(t)
	owner := snapshot.Owner{UID: "me"}
	crds := removeCRDs(t, server)
	installed := false
	t.Cleanup(func() {
		if !installed {
			installCRDs(t, server, crds)
		}
	})

	s := snapshot.New(server.NewClient(t), snapshot.Options{})
	ref := snapshot.Ref{Namespace: ns, Name: "s", UID: "u"}
	requireNotInstalled := func(when string) {
		t.Helper()
		for name, call := range map[string]func() error{
			"Ensure":      func() error { _, err := s.Ensure(t.Context(), serverRequest(ns)); return err },
			"Observe":     func() error { _, err := s.Observe(t.Context(), ns, "s"); return err },
			"List":        func() error { _, err := s.List(t.Context(), ns, owner, nil); return err },
			"ChooseClass": func() error { _, err := s.ChooseClass(t.Context(), "csi", ""); return err },
			"Delete":      func() error { _, err := s.Delete(t.Context(), ref, owner); return err },
		} {
			require.ErrorIs(t, call(), snapshot.ErrNotInstalled, "%s, %s", name, when)
		}
	}
	requireNotInstalled("never installed")
	cached := snapshot.New(cachedClient(t, server), snapshot.Options{Live: server.NewClient(t)})
	_, err := cached.Observe(t.Context(), ns, "s")
	require.ErrorIs(t, err, snapshot.ErrNotInstalled, "also for a cached client")

	installCRDs(t, server, crds)
	installed = true
	o, err := s.Ensure(t.Context(), serverRequest(ns))
	require.NoError(t, err, "the same client recovers")
	ref = o.Ref()
	kittest.Eventually(t, patience, func() error {
		seen, err := cached.Observe(t.Context(), ns, "s")
		if err == nil && seen.UID != ref.UID {
			err = fmt.Errorf("it is %s", seen.State)
		}
		return err
	})

	removeCRDs(t, server)
	installed = false
	requireNotInstalled("removed under a warm client")
	_, err = cached.Delete(t.Context(), ref, owner)
	require.ErrorIs(t, err, snapshot.ErrNotInstalled, "whatever the cache still shows")

	installCRDs(t, server, crds)
	installed = true
	gone, err := s.Delete(t.Context(), ref, owner)
	require.NoError(t, err)
	require.Equal(t, snapshot.Absent, gone.State, "only a served API proves absence")
}

func cachedClient(t *testing.T, server *kittest.Cluster) client.Client {
	t.Helper()
	c, err := cluster.New(server.Config, func(o *cluster.Options) { o.Scheme = server.Scheme })
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-done)
	})
	require.True(t, c.GetCache().WaitForCacheSync(ctx))
	return c.GetClient()
}

func removeCRDs(t *testing.T, server *kittest.Cluster) []*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	var out []*apiextensionsv1.CustomResourceDefinition
	for _, resource := range []string{"volumesnapshots", "volumesnapshotclasses", "volumesnapshotcontents"} {
		var crd apiextensionsv1.CustomResourceDefinition
		key := client.ObjectKey{Name: resource + "." + snapshotv1.GroupName}
		require.NoError(t, server.Client.Get(t.Context(), key, &crd))
		out = append(out, &apiextensionsv1.CustomResourceDefinition{
			ObjectMeta: metav1.ObjectMeta{Name: crd.Name, Annotations: crd.Annotations}, Spec: crd.Spec})
		require.NoError(t, server.Client.Delete(t.Context(), &crd))
		kittest.Eventually(t, patience, func() error {
			if err := server.Client.Get(t.Context(), key, &crd); !apierrors.IsNotFound(err) {
				return fmt.Errorf("%s is still there: %w", key.Name, err)
			}
			return nil
		})
	}
	for _, list := range snapshotLists() {
		kittest.Eventually(t, patience, func() error {
			if err := server.Client.List(t.Context(), list); err == nil {
				return fmt.Errorf("%T is still served", list)
			}
			return nil
		})
	}
	return out
}

func installCRDs(t *testing.T, server *kittest.Cluster, crds []*apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	var fresh []*apiextensionsv1.CustomResourceDefinition
	for _, crd := range crds {
		fresh = append(fresh, crd.DeepCopy())
	}
	_, err := envtest.InstallCRDs(server.Config, envtest.CRDInstallOptions{CRDs: fresh, MaxTime: patience})
	require.NoError(t, err)
	for _, list := range snapshotLists() {
		kittest.Eventually(t, patience, func() error { return server.Client.List(context.Background(), list) })
	}
}

func snapshotLists() []client.ObjectList {
	return []client.ObjectList{&snapshotv1.VolumeSnapshotList{}, &snapshotv1.VolumeSnapshotClassList{}, &snapshotv1.VolumeSnapshotContentList{}}
}
