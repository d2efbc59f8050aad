package snapshot_test

import (
	"context"
	"testing"
	"time"

	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"example.com/pvcbackup/snapshot"
)

var snapshotResource = schema.GroupResource{Group: snapshotv1.GroupName, Resource: "volumesnapshots"}

func scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	require.NoError(t, snapshot.AddToScheme(s))
	return s
}

// fakeClient serves control flow only; what a server decides is tested against
// a server.
func fakeClient(t *testing.T, objs ...client.Object) client.WithWatch {
	t.Helper()
	return fake.NewClientBuilder().WithScheme(scheme(t)).WithObjects(objs...).
		WithStatusSubresource(&snapshotv1.VolumeSnapshot{}, &snapshotv1.VolumeSnapshotContent{}).Build()
}

func request() snapshot.Request {
	return snapshot.Request{Namespace: "ns", Name: "s", Claim: "data", Class: "gold", Owner: snapshot.Owner{UID: "me"},
		Labels: map[string]string{"slot": "1"}, Annotations: map[string]string{"note": "n"}}
}

func existing(change func(*snapshotv1.VolumeSnapshot)) *snapshotv1.VolumeSnapshot {
	vs := &snapshotv1.VolumeSnapshot{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "s", UID: "u", Labels: map[string]string{snapshot.OwnerUIDLabel: "me"}},
		Spec: snapshotv1.VolumeSnapshotSpec{
			Source:                  snapshotv1.VolumeSnapshotSource{PersistentVolumeClaimName: ptr.To("data")},
			VolumeSnapshotClassName: ptr.To("gold"),
		},
	}
	if change != nil {
		change(vs)
	}
	return vs
}

func TestEnsureCreatesOnceWithTheMarksOfItsOwner(t *testing.T) {
	c := fakeClient(t)
	r := request()
	r.Owner.Reference = &metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "o", UID: "me",
		Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true)}
	for range 2 {
		o, err := snapshot.New(c, snapshot.Options{}).Ensure(t.Context(), r)
		require.NoError(t, err)
		require.Equal(t, snapshot.Creating, o.State)
	}
	var vs snapshotv1.VolumeSnapshot
	require.NoError(t, c.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "s"}, &vs))
	require.Equal(t, map[string]string{snapshot.OwnerUIDLabel: "me", "slot": "1"}, vs.Labels)
	require.Equal(t, map[string]string{"note": "n"}, vs.Annotations)
	require.Equal(t, []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "o", UID: "me"}}, vs.OwnerReferences)
	require.Equal(t, map[string]string{"slot": "1"}, r.Labels, "the request is left as it was")
}

func TestEnsureNeverWritesToWhatExists(t *testing.T) {
	for name, tc := range map[string]struct {
		there   *snapshotv1.VolumeSnapshot
		want    error
		wantTxt string
	}{
		"ours is observed": {there: existing(nil)},
		"another owner is foreign": {there: existing(func(vs *snapshotv1.VolumeSnapshot) { vs.Labels[snapshot.OwnerUIDLabel] = "you" }), want: snapshot.ErrForeign,
			wantTxt: `VolumeSnapshot ns/s: label storage.example.com/owner-uid is "you" and not "me", so it is left alone; remove it, or choose another name`},
		"no owner is foreign": {there: existing(func(vs *snapshotv1.VolumeSnapshot) { vs.Labels = nil }), want: snapshot.ErrForeign},
		"another source is foreign": {there: existing(func(vs *snapshotv1.VolumeSnapshot) { vs.Spec.Source.PersistentVolumeClaimName = ptr.To("db") }), want: snapshot.ErrForeign,
			wantTxt: `VolumeSnapshot ns/s: spec.source.persistentVolumeClaimName is "db" and not "data"; delete it, or choose another name`},
		"a pre-provisioned one is foreign": {there: existing(func(vs *snapshotv1.VolumeSnapshot) {
			vs.Spec.Source = snapshotv1.VolumeSnapshotSource{VolumeSnapshotContentName: ptr.To("c")}
		}), want: snapshot.ErrForeign},
		"another class is changed": {there: existing(func(vs *snapshotv1.VolumeSnapshot) { vs.Spec.VolumeSnapshotClassName = ptr.To("tin") }), want: snapshot.ErrChanged,
			wantTxt: `VolumeSnapshot ns/s: spec.volumeSnapshotClassName is "tin" and not "gold"; delete it to have it taken anew`},
	} {
		t.Run(name, func(t *testing.T) {
			c := interceptor.NewClient(fakeClient(t, tc.there), refuseWrites(t))
			_, err := snapshot.New(c, snapshot.Options{}).Ensure(t.Context(), request())
			if tc.want == nil {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, tc.want)
			require.True(t, verdictOf(t, err).Terminal)
			if tc.wantTxt != "" {
				require.EqualError(t, err, tc.wantTxt)
			}
		})
	}
}

func refuseWrites(t *testing.T) interceptor.Funcs {
	return interceptor.Funcs{
		Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error {
			t.Error("create was called")
			return nil
		},
		Update: func(context.Context, client.WithWatch, client.Object, ...client.UpdateOption) error {
			t.Error("update was called")
			return nil
		},
		Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
			t.Error("patch was called")
			return nil
		},
		Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error {
			t.Error("delete was called")
			return nil
		},
	}
}

// behind is a cache that has not seen anything yet.
func behind(t *testing.T, server client.WithWatch) client.Client {
	return interceptor.NewClient(server, interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
			return apierrors.NewNotFound(snapshotResource, key.Name)
		},
	})
}

func TestEnsureReadsLiveWhenTheCacheIsBehind(t *testing.T) {
	server := fakeClient(t, existing(nil))
	o, err := snapshot.New(behind(t, server), snapshot.Options{Live: server}).Ensure(t.Context(), request())
	require.NoError(t, err)
	require.Equal(t, "u", string(o.UID))

	foreign := fakeClient(t, existing(func(vs *snapshotv1.VolumeSnapshot) { vs.Labels = nil }))
	_, err = snapshot.New(behind(t, foreign), snapshot.Options{Live: foreign}).Ensure(t.Context(), request())
	require.ErrorIs(t, err, snapshot.ErrForeign)
}

func TestEnsureLooksAgainWhenNoReadShowsWhatExists(t *testing.T) {
	_, err := snapshot.New(behind(t, fakeClient(t, existing(nil))), snapshot.Options{}).Ensure(t.Context(), request())
	require.ErrorIs(t, err, snapshot.ErrUnsettled)
	require.Equal(t, time.Second, verdictOf(t, err).After)
}

func TestEnsureRefusesAnIncompleteRequest(t *testing.T) {
	for name, change := range map[string]func(*snapshot.Request){
		"namespace":          func(r *snapshot.Request) { r.Namespace = "" },
		"name":               func(r *snapshot.Request) { r.Name = "" },
		"bad name":           func(r *snapshot.Request) { r.Name = "A_b" },
		"claim":              func(r *snapshot.Request) { r.Claim = "" },
		"class":              func(r *snapshot.Request) { r.Class = "" },
		"owner":              func(r *snapshot.Request) { r.Owner.UID = "" },
		"owner not a label":  func(r *snapshot.Request) { r.Owner.UID = "a b" },
		"reference to other": func(r *snapshot.Request) { r.Owner.Reference = &metav1.OwnerReference{UID: "you"} },
	} {
		t.Run(name, func(t *testing.T) {
			r := request()
			change(&r)
			_, err := snapshot.New(fakeClient(t), snapshot.Options{}).Ensure(t.Context(), r)
			require.ErrorIs(t, err, snapshot.ErrInvalid)
			require.True(t, verdictOf(t, err).Terminal)
		})
	}
}

func TestObserveProvesAbsence(t *testing.T) {
	o, err := snapshot.New(fakeClient(t), snapshot.Options{}).Observe(t.Context(), "ns", "s")
	require.NoError(t, err)
	require.Equal(t, snapshot.Observation{State: snapshot.Absent, Namespace: "ns", Name: "s"}, o)
}

func TestContentsFillHandleAndDriverOfAReadySnapshot(t *testing.T) {
	vs := existing(func(vs *snapshotv1.VolumeSnapshot) {
		vs.Status = &snapshotv1.VolumeSnapshotStatus{ReadyToUse: ptr.To(true), BoundVolumeSnapshotContentName: ptr.To("c")}
	})
	content := &snapshotv1.VolumeSnapshotContent{ObjectMeta: metav1.ObjectMeta{Name: "c"},
		Spec:   snapshotv1.VolumeSnapshotContentSpec{Driver: "csi"},
		Status: &snapshotv1.VolumeSnapshotContentStatus{SnapshotHandle: ptr.To("h")}}
	c := fakeClient(t, vs, content)
	o, err := snapshot.New(c, snapshot.Options{Contents: true}).Observe(t.Context(), "ns", "s")
	require.NoError(t, err)
	require.Equal(t, []string{"h", "csi"}, []string{o.Handle, o.Driver})
	o, err = snapshot.New(c, snapshot.Options{}).Observe(t.Context(), "ns", "s")
	require.NoError(t, err)
	require.Empty(t, o.Handle+o.Driver)
}

func TestListShowsOurOwnNewestDataFirst(t *testing.T) {
	at := func(name string, taken int, labels map[string]string) client.Object {
		return existing(func(vs *snapshotv1.VolumeSnapshot) {
			vs.Name, vs.UID, vs.Labels = name, "", labels
			if taken > 0 {
				vs.Status = &snapshotv1.VolumeSnapshotStatus{CreationTime: ptr.To(metav1.Unix(int64(taken), 0))}
			}
		})
	}
	mine := map[string]string{snapshot.OwnerUIDLabel: "me"}
	c := fakeClient(t, at("new", 3, mine), at("old", 1, mine), at("mid", 2, mine), at("untaken", 0, mine),
		at("yours", 4, map[string]string{snapshot.OwnerUIDLabel: "you"}), at("nobodys", 4, nil))
	got, err := snapshot.New(c, snapshot.Options{}).List(t.Context(), "ns", snapshot.Owner{UID: "me"}, nil)
	require.NoError(t, err)
	var names []string
	for _, o := range got {
		names = append(names, o.Name)
	}
	require.Equal(t, []string{"new", "mid", "old", "untaken"}, names)
	_, err = snapshot.New(c, snapshot.Options{}).List(t.Context(), "ns", snapshot.Owner{}, nil)
	require.ErrorIs(t, err, snapshot.ErrInvalid, "an empty owner must not select what carries an empty label")
}

func TestEveryCallHasADeadline(t *testing.T) {
	hang := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	c := interceptor.NewClient(fakeClient(t), interceptor.Funcs{
		Get: func(ctx context.Context, _ client.WithWatch, _ client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
			return hang(ctx)
		},
		List: func(ctx context.Context, _ client.WithWatch, _ client.ObjectList, _ ...client.ListOption) error {
			return hang(ctx)
		},
	})
	s := snapshot.New(c, snapshot.Options{Timeout: time.Millisecond})
	owner := snapshot.Owner{UID: "me"}
	for name, call := range map[string]func() error{
		"Ensure":  func() error { _, err := s.Ensure(t.Context(), request()); return err },
		"Observe": func() error { _, err := s.Observe(t.Context(), "ns", "s"); return err },
		"Delete": func() error {
			_, err := s.Delete(t.Context(), snapshot.Ref{Namespace: "ns", Name: "s", UID: "u"}, owner)
			return err
		},
		"List":         func() error { _, err := s.List(t.Context(), "ns", owner, nil); return err },
		"ChooseClass":  func() error { _, err := s.ChooseClass(t.Context(), "csi", ""); return err },
		"ResolveClaim": func() error { _, err := s.ResolveClaim(t.Context(), "ns", "data"); return err },
	} {
		t.Run(name, func(t *testing.T) { require.ErrorIs(t, call(), context.DeadlineExceeded) })
	}
}

func TestDeleteRefusesWithoutUIDOrOwner(t *testing.T) {
	c := interceptor.NewClient(fakeClient(t, existing(nil)), refuseWrites(t))
	s := snapshot.New(c, snapshot.Options{})
	_, err := s.Delete(t.Context(), snapshot.Ref{Namespace: "ns", Name: "s"}, snapshot.Owner{UID: "me"})
	require.ErrorIs(t, err, snapshot.ErrInvalid)
	_, err = s.Delete(t.Context(), snapshot.Ref{Namespace: "ns", Name: "s", UID: "u"}, snapshot.Owner{})
	require.ErrorIs(t, err, snapshot.ErrInvalid)
	_, err = s.Delete(t.Context(), snapshot.Ref{Namespace: "ns", Name: "s", UID: "u"}, snapshot.Owner{UID: "you"})
	require.ErrorIs(t, err, snapshot.ErrForeign)
	o, err := s.Delete(t.Context(), snapshot.Ref{Namespace: "ns", Name: "s", UID: "earlier"}, snapshot.Owner{UID: "me"})
	require.NoError(t, err)
	require.Equal(t, snapshot.Absent, o.State, "another object of that name is not the one meant")
}

func TestDeleteTakesANotServedAPIForNoSuccess(t *testing.T) {
	notServed := apierrors.NewGenericServerResponse(404, "GET", snapshotResource, "s", "404 page not found", 0, true)
	c := interceptor.NewClient(fakeClient(t), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return notServed
		},
	})
	_, err := snapshot.New(c, snapshot.Options{}).Delete(t.Context(), snapshot.Ref{Namespace: "ns", Name: "s", UID: "u"}, snapshot.Owner{UID: "me"})
	require.ErrorIs(t, err, snapshot.ErrNotInstalled)
	require.True(t, apierrors.IsNotFound(err), "which is why a bare IsNotFound is not enough")
	require.False(t, snapshot.IsGone(err))
	require.Equal(t, time.Minute, verdictOf(t, err).After)
}
