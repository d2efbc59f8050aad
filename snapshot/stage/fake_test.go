package stage_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"example.com/pvcbackup/snapshot"
	"example.com/pvcbackup/snapshot/stage"
)

var me = snapshot.Owner{UID: "me"}

func scheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	s := runtime.NewScheme()
	require.NoError(t, snapshot.AddToScheme(s))
	return s
}

func fakeClient(t *testing.T, objs ...client.Object) client.WithWatch {
	t.Helper()
	return fake.NewClientBuilder().WithScheme(scheme(t)).WithObjects(objs...).
		WithStatusSubresource(&snapshotv1.VolumeSnapshot{}).Build()
}

func request() stage.Request {
	return stage.Request{Namespace: "ns", Name: "c", Owner: me,
		Snapshot: snapshot.Observation{State: snapshot.Ready, Namespace: "ns", Name: "s", RestoreSize: 1 << 30},
		Source:   snapshot.Claim{Mode: corev1.PersistentVolumeFilesystem, StorageClass: "fast", Capacity: resource.MustParse("512Mi")}}
}

// claim is a staged claim of ours, from snapshot s, bound to volume v.
func claim(change func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	pvc := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", UID: "u",
			Labels: map[string]string{snapshot.OwnerUIDLabel: "me", stage.PurposeLabel: stage.PurposeStage}},
		Spec: corev1.PersistentVolumeClaimSpec{
			VolumeName:    "v",
			DataSourceRef: &corev1.TypedObjectReference{APIGroup: ptr.To(snapshotv1.GroupName), Kind: "VolumeSnapshot", Name: "s"},
		},
		Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound},
	}
	if change != nil {
		change(pvc)
	}
	return pvc
}

func volume(claimUID types.UID) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "v"}, Spec: corev1.PersistentVolumeSpec{
		ClaimRef:                      &corev1.ObjectReference{UID: claimUID},
		PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
	}}
}

func policyOf(t *testing.T, c client.Client) corev1.PersistentVolumeReclaimPolicy {
	t.Helper()
	var pv corev1.PersistentVolume
	require.NoError(t, c.Get(t.Context(), client.ObjectKey{Name: "v"}, &pv))
	return pv.Spec.PersistentVolumeReclaimPolicy
}

func TestEnsureTakesOverWhatTheSourceHas(t *testing.T) {
	gi := func(n string) corev1.VolumeResourceRequirements {
		return corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(n)}}
	}
	ref := &corev1.TypedObjectReference{APIGroup: ptr.To(snapshotv1.GroupName), Kind: "VolumeSnapshot", Name: "s"}
	modes := func(m corev1.PersistentVolumeAccessMode) []corev1.PersistentVolumeAccessMode {
		return []corev1.PersistentVolumeAccessMode{m}
	}
	for name, tc := range map[string]struct {
		change func(*stage.Request)
		want   corev1.PersistentVolumeClaimSpec
	}{
		"the restore size where that is larger": {want: corev1.PersistentVolumeClaimSpec{DataSourceRef: ref, StorageClassName: ptr.To("fast"),
			AccessModes: modes(corev1.ReadWriteOnce), VolumeMode: ptr.To(corev1.PersistentVolumeFilesystem), Resources: gi("1Gi")}},
		"the source's size where that is larger, its mode, another class, RWOP": {
			change: func(r *stage.Request) {
				r.Source.Capacity, r.Source.Mode = resource.MustParse("3Gi"), corev1.PersistentVolumeBlock
				r.StorageClass, r.AccessMode = "slow", corev1.ReadWriteOncePod
			},
			want: corev1.PersistentVolumeClaimSpec{DataSourceRef: ref, StorageClassName: ptr.To("slow"),
				AccessModes: modes(corev1.ReadWriteOncePod), VolumeMode: ptr.To(corev1.PersistentVolumeBlock), Resources: gi("3Gi")}},
	} {
		t.Run(name, func(t *testing.T) {
			r := request()
			if tc.change != nil {
				tc.change(&r)
			}
			c := fakeClient(t)
			for range 2 {
				_, err := stage.New(c, stage.Options{}).Ensure(t.Context(), r)
				require.NoError(t, err)
			}
			var pvc corev1.PersistentVolumeClaim
			require.NoError(t, c.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "c"}, &pvc))
			if d := cmp.Diff(tc.want, pvc.Spec); d != "" {
				t.Fatal(d)
			}
			require.Equal(t, map[string]string{snapshot.OwnerUIDLabel: "me", stage.PurposeLabel: stage.PurposeStage}, pvc.Labels)
		})
	}
}

func TestEnsureRefusesWhatIsForeignAndLeavesIt(t *testing.T) {
	for name, change := range map[string]func(*corev1.PersistentVolumeClaim){
		"another owner":    func(c *corev1.PersistentVolumeClaim) { c.Labels[snapshot.OwnerUIDLabel] = "you" },
		"no owner":         func(c *corev1.PersistentVolumeClaim) { c.Labels = nil },
		"a user's":         func(c *corev1.PersistentVolumeClaim) { c.Labels[stage.PurposeLabel] = stage.PurposeTarget },
		"another snapshot": func(c *corev1.PersistentVolumeClaim) { c.Spec.DataSourceRef.Name = "t" },
		"another mode":     func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeMode = ptr.To(corev1.PersistentVolumeBlock) },
		"a user's without a source": func(c *corev1.PersistentVolumeClaim) {
			c.Labels, c.Spec.DataSourceRef = nil, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := fakeClient(t, claim(change), volume("u"))
			_, err := stage.New(c, stage.Options{}).Ensure(t.Context(), request())
			require.ErrorIs(t, err, snapshot.ErrForeign)
			require.NoError(t, c.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "c"}, &corev1.PersistentVolumeClaim{}))
			require.Equal(t, corev1.PersistentVolumeReclaimRetain, policyOf(t, c))
		})
	}
}

func TestAClaimOfOursWithoutItsSourceIsDeletedAgain(t *testing.T) {
	c := fakeClient(t, claim(func(c *corev1.PersistentVolumeClaim) { c.Spec.DataSourceRef, c.Spec.VolumeName = nil, "" }))
	_, err := stage.New(c, stage.Options{}).Ensure(t.Context(), request())
	require.ErrorIs(t, err, stage.ErrSourceDropped, "also when the process died between the create and the delete")
	require.True(t, snapshot.IsGone(c.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "c"}, &corev1.PersistentVolumeClaim{})))
}

func TestADroppedSourceWhoseDeletionFailsTellsBoth(t *testing.T) {
	down := errors.New("down")
	c := interceptor.NewClient(fakeClient(t, claim(func(c *corev1.PersistentVolumeClaim) { c.Spec.DataSourceRef = nil })), interceptor.Funcs{
		Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error { return down },
	})
	_, err := stage.New(c, stage.Options{}).Ensure(t.Context(), request())
	require.ErrorIs(t, err, stage.ErrSourceDropped)
	require.ErrorIs(t, err, down, "so that it is tried again soon")
}

func TestReclaimPolicyIsSetOnlyOnTheVolumeOfThisVeryClaim(t *testing.T) {
	for name, tc := range map[string]struct {
		claimUID types.UID
		want     corev1.PersistentVolumeReclaimPolicy
	}{
		"ours":            {"u", corev1.PersistentVolumeReclaimDelete},
		"another claim's": {"x", corev1.PersistentVolumeReclaimRetain},
	} {
		t.Run(name, func(t *testing.T) {
			c := fakeClient(t, claim(nil), volume(tc.claimUID))
			o, err := stage.New(c, stage.Options{}).Ensure(t.Context(), request())
			require.NoError(t, err)
			require.Equal(t, stage.Bound, o.State)
			require.Equal(t, tc.want, policyOf(t, c))
		})
	}
	t.Run("a claim for a user keeps its policy", func(t *testing.T) {
		c := fakeClient(t, claim(func(c *corev1.PersistentVolumeClaim) {
			c.Spec.DataSourceRef, c.Labels[stage.PurposeLabel] = nil, stage.PurposeTarget
		}), volume("u"))
		_, err := stage.New(c, stage.Options{}).EnsureEmpty(t.Context(), stage.EmptyRequest{Namespace: "ns", Name: "c", Owner: me, Size: resource.MustParse("1Gi")})
		require.NoError(t, err)
		require.Equal(t, corev1.PersistentVolumeReclaimRetain, policyOf(t, c))
	})
}

func TestEnsureEmpty(t *testing.T) {
	r := stage.EmptyRequest{Namespace: "ns", Name: "c", Owner: me, Size: resource.MustParse("1Gi")}
	c := fakeClient(t)
	s := stage.New(c, stage.Options{})
	for range 2 {
		o, err := s.EnsureEmpty(t.Context(), r)
		require.NoError(t, err)
		require.Equal(t, stage.Pending, o.State)
	}
	var pvc corev1.PersistentVolumeClaim
	require.NoError(t, c.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "c"}, &pvc))
	require.Nil(t, pvc.Spec.StorageClassName, "the cluster's default class")
	require.Equal(t, []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, pvc.Spec.AccessModes)
	require.Equal(t, stage.PurposeTarget, pvc.Labels[stage.PurposeLabel])

	r.Disposable = true
	_, err := s.EnsureEmpty(t.Context(), r)
	require.ErrorIs(t, err, snapshot.ErrForeign, "a user's claim is not taken for a disposable one")
	_, err = s.EnsureEmpty(t.Context(), stage.EmptyRequest{Namespace: "ns", Name: "c2", Owner: me})
	require.ErrorIs(t, err, snapshot.ErrInvalid)
	from := fakeClient(t, claim(nil))
	_, err = stage.New(from, stage.Options{}).EnsureEmpty(t.Context(), r)
	require.ErrorIs(t, err, snapshot.ErrForeign, "a claim with a data source is not empty")
}

func TestEnsureRefusesAnIncompleteRequest(t *testing.T) {
	for name, change := range map[string]func(*stage.Request){
		"namespace": func(r *stage.Request) { r.Namespace = "" },
		"name":      func(r *stage.Request) { r.Name = "" },
		"snapshot":  func(r *stage.Request) { r.Snapshot.Name = "" },
		"owner":     func(r *stage.Request) { r.Owner.UID = "" },
		"size":      func(r *stage.Request) { r.Snapshot.RestoreSize, r.Source.Capacity = 0, resource.Quantity{} },
	} {
		t.Run(name, func(t *testing.T) {
			r := request()
			change(&r)
			_, err := stage.New(fakeClient(t), stage.Options{}).Ensure(t.Context(), r)
			require.ErrorIs(t, err, snapshot.ErrInvalid)
		})
	}
}

func TestAMissingStorageClassIsFailing(t *testing.T) {
	o, err := stage.New(fakeClient(t), stage.Options{}).Ensure(t.Context(), request())
	require.NoError(t, err)
	require.Equal(t, []string{"Failing", `storage class "fast" does not exist`}, []string{string(o.State), o.Message})
}

func TestWaitingForConsumerIsAnAnswer(t *testing.T) {
	c := fakeClient(t, &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "fast"}, VolumeBindingMode: ptr.To(storagev1.VolumeBindingWaitForFirstConsumer)})
	s := stage.New(c, stage.Options{})
	o, err := s.Ensure(t.Context(), request())
	require.NoError(t, err)
	require.Equal(t, stage.WaitingForConsumer, o.State)
	require.NoError(t, stage.Judge(o, time.Minute, time.Now().Add(time.Hour)))
	o, err = s.Observe(t.Context(), "ns", "c")
	require.NoError(t, err)
	require.Equal(t, stage.WaitingForConsumer, o.State)
	o, err = s.Observe(t.Context(), "ns", "other")
	require.NoError(t, err)
	require.Equal(t, stage.Observation{State: stage.Absent, Namespace: "ns", Name: "other"}, o)
}

func TestDeleteNeverTouchesWhatIsNotOurStagedClaim(t *testing.T) {
	ref := snapshot.Ref{Namespace: "ns", Name: "c", UID: "u"}
	for name, tc := range map[string]struct {
		change func(*corev1.PersistentVolumeClaim)
		ref    snapshot.Ref
		owner  snapshot.Owner
		want   error
	}{
		"another owner": {change: func(c *corev1.PersistentVolumeClaim) { c.Labels[snapshot.OwnerUIDLabel] = "you" }, ref: ref, owner: me, want: snapshot.ErrForeign},
		"no label":      {change: func(c *corev1.PersistentVolumeClaim) { c.Labels = nil }, ref: ref, owner: me, want: snapshot.ErrForeign},
		"a user's":      {change: func(c *corev1.PersistentVolumeClaim) { c.Labels[stage.PurposeLabel] = stage.PurposeTarget }, ref: ref, owner: me, want: snapshot.ErrForeign},
		"no owner":      {ref: ref, want: snapshot.ErrInvalid},
		"no UID":        {ref: snapshot.Ref{Namespace: "ns", Name: "c"}, owner: me, want: snapshot.ErrInvalid},
		"another UID":   {ref: snapshot.Ref{Namespace: "ns", Name: "c", UID: "earlier"}, owner: me},
	} {
		t.Run(name, func(t *testing.T) {
			c := fakeClient(t, claim(tc.change), volume("u"))
			o, err := stage.New(c, stage.Options{}).Delete(t.Context(), tc.ref, tc.owner)
			if tc.want != nil {
				require.ErrorIs(t, err, tc.want)
			} else {
				require.NoError(t, err)
				require.Equal(t, stage.Absent, o.State)
			}
			require.NoError(t, c.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "c"}, &corev1.PersistentVolumeClaim{}))
			require.Equal(t, corev1.PersistentVolumeReclaimRetain, policyOf(t, c))
		})
	}
}

func TestDeleteHasTheVolumeGoWithTheClaim(t *testing.T) {
	c := fakeClient(t, claim(nil), volume("u"))
	s := stage.New(c, stage.Options{})
	o, err := s.Delete(t.Context(), snapshot.Ref{Namespace: "ns", Name: "c", UID: "u"}, me)
	require.NoError(t, err)
	require.Equal(t, stage.Deleting, o.State)
	require.Equal(t, corev1.PersistentVolumeReclaimDelete, policyOf(t, c))
	o, err = s.Delete(t.Context(), snapshot.Ref{Namespace: "ns", Name: "c", UID: "u"}, me)
	require.NoError(t, err)
	require.Equal(t, stage.Absent, o.State)
}

func TestSweepDeletesOurLeftoversAndNothingElse(t *testing.T) {
	pvc := func(name string, change func(*corev1.PersistentVolumeClaim)) client.Object {
		return claim(func(c *corev1.PersistentVolumeClaim) {
			c.Name, c.UID, c.Spec.VolumeName = name, types.UID(name), ""
			if change != nil {
				change(c)
			}
		})
	}
	snap := func(name, owner string) client.Object {
		return &snapshotv1.VolumeSnapshot{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name),
			Labels: map[string]string{snapshot.OwnerUIDLabel: owner}}}
	}
	c := fakeClient(t, pvc("left", nil), pvc("keep", nil),
		pvc("target", func(c *corev1.PersistentVolumeClaim) { c.Labels[stage.PurposeLabel] = stage.PurposeTarget }),
		pvc("users", func(c *corev1.PersistentVolumeClaim) { c.Labels = nil }),
		pvc("yours", func(c *corev1.PersistentVolumeClaim) { c.Labels[snapshot.OwnerUIDLabel] = "you" }),
		pvc("held", func(c *corev1.PersistentVolumeClaim) { c.Finalizers = []string{"a/b"} }),
		snap("s-left", "me"), snap("s-keep", "me"), snap("s-yours", "you"))
	s := stage.New(c, stage.Options{})
	keep := func(l stage.Leftover) bool { return l.Name == "keep" || l.Name == "s-keep" }
	swept, err := s.Sweep(t.Context(), "ns", me, keep)
	require.NoError(t, err)
	require.Equal(t, []string{"keep", "s-keep"}, names(swept.Kept))
	require.Equal(t, []string{"held", "left", "s-left"}, names(swept.Deleting))
	swept, err = s.Sweep(t.Context(), "ns", me, keep)
	require.NoError(t, err)
	require.Equal(t, []string{"held"}, names(swept.Deleting), "what is held by a finalizer is still told of")

	var claims corev1.PersistentVolumeClaimList
	var snaps snapshotv1.VolumeSnapshotList
	require.NoError(t, c.List(t.Context(), &claims))
	require.NoError(t, c.List(t.Context(), &snaps))
	var left []string
	for _, x := range claims.Items {
		left = append(left, x.Name)
	}
	for _, x := range snaps.Items {
		left = append(left, x.Name)
	}
	require.Equal(t, []string{"held", "keep", "target", "users", "yours", "s-keep", "s-yours"}, left)
	_, err = s.Sweep(t.Context(), "ns", snapshot.Owner{}, nil)
	require.ErrorIs(t, err, snapshot.ErrInvalid)
}

func TestSweepWithoutTheSnapshotAPISweepsClaimsAndSaysSo(t *testing.T) {
	c := interceptor.NewClient(fakeClient(t, claim(nil)), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if _, ok := list.(*snapshotv1.VolumeSnapshotList); ok {
				return &meta.NoKindMatchError{}
			}
			return c.List(ctx, list, opts...)
		},
	})
	swept, err := stage.New(c, stage.Options{}).Sweep(t.Context(), "ns", me, nil)
	require.ErrorIs(t, err, snapshot.ErrNotInstalled)
	require.Equal(t, []string{"c"}, names(swept.Deleting))
}

func names(ls []stage.Leftover) []string {
	var out []string
	for _, l := range ls {
		out = append(out, l.Name)
	}
	return out
}
