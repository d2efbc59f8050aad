package snapshot_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/pvcbackup/snapshot"
)

func TestResolveClaim(t *testing.T) {
	gi := func(n string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(n)}
	}
	for name, tc := range map[string]struct {
		change   func(*corev1.PersistentVolumeClaim, *corev1.PersistentVolume)
		noPVC    bool
		noPV     bool
		want     error
		terminal bool
	}{
		"bound":   {},
		"missing": {noPVC: true, want: snapshot.ErrClaimMissing},
		"pending": {change: func(c *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume) {
			c.Status.Phase = corev1.ClaimPending
		}, want: snapshot.ErrClaimUnbound},
		"no name":  {change: func(c *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume) { c.Spec.VolumeName = "" }, want: snapshot.ErrClaimUnbound},
		"no PV":    {noPV: true, want: snapshot.ErrClaimUnbound},
		"other PV": {change: func(_ *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) { v.Spec.ClaimRef.UID = "x" }, want: snapshot.ErrClaimUnbound},
		"lost":     {change: func(c *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume) { c.Status.Phase = corev1.ClaimLost }, want: snapshot.ErrClaimLost, terminal: true},
		"not CSI": {change: func(_ *corev1.PersistentVolumeClaim, v *corev1.PersistentVolume) {
			v.Spec.PersistentVolumeSource = corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/x"}}
		}, want: snapshot.ErrClaimNotCSI, terminal: true},
		"deleting": {change: func(c *corev1.PersistentVolumeClaim, _ *corev1.PersistentVolume) {
			c.DeletionTimestamp, c.Finalizers = ptr.To(metav1.Now()), []string{"a/b"}
		}, want: snapshot.ErrClaimDeleting, terminal: true},
	} {
		t.Run(name, func(t *testing.T) {
			pvc := &corev1.PersistentVolumeClaim{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "data", UID: "c"},
				Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "v", StorageClassName: ptr.To("fast"),
					AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod},
					Resources:   corev1.VolumeResourceRequirements{Requests: gi("1Gi")}},
				Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound, Capacity: gi("2Gi")},
			}
			pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "v"}, Spec: corev1.PersistentVolumeSpec{
				ClaimRef:               &corev1.ObjectReference{UID: "c"},
				PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "csi", VolumeHandle: "h"}},
			}}
			if tc.change != nil {
				tc.change(pvc, pv)
			}
			var objs []client.Object
			if !tc.noPVC {
				objs = append(objs, pvc)
			}
			if !tc.noPV {
				objs = append(objs, pv)
			}
			got, err := snapshot.New(fakeClient(t, objs...), snapshot.Options{}).ResolveClaim(t.Context(), "ns", "data")
			if tc.want != nil {
				require.ErrorIs(t, err, tc.want)
				v := verdictOf(t, err)
				require.Equal(t, tc.terminal, v.Terminal)
				require.LessOrEqual(t, v.After, 30*time.Second)
				return
			}
			require.NoError(t, err)
			require.Equal(t, []string{"data", "v"}, []string{got.PVC.Name, got.PV.Name})
			got.PVC, got.PV = nil, nil
			want := snapshot.Claim{Driver: "csi", Handle: "h", Mode: corev1.PersistentVolumeFilesystem, StorageClass: "fast",
				Capacity: resource.MustParse("2Gi"), AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}}
			if d := cmp.Diff(want, got); d != "" {
				t.Fatal(d)
			}
		})
	}
}
