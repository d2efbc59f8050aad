package snapshot_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	snapshotv1 "github.com/kubernetes-csi/external-snapshotter/client/v8/apis/volumesnapshot/v1"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/pvcbackup/snapshot"
)

func class(name, driver string, isDefault bool) snapshotv1.VolumeSnapshotClass {
	c := snapshotv1.VolumeSnapshotClass{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Driver: driver, DeletionPolicy: snapshotv1.VolumeSnapshotContentDelete,
	}
	if isDefault {
		c.Annotations = map[string]string{snapshot.DefaultClassAnnotation: "true"}
	}
	return c
}

func TestChoose(t *testing.T) {
	classes := func(cs ...snapshotv1.VolumeSnapshotClass) []snapshotv1.VolumeSnapshotClass { return cs }
	retain := class("keeps", "csi", false)
	retain.DeletionPolicy = snapshotv1.VolumeSnapshotContentRetain
	for name, tc := range map[string]struct {
		classes  []snapshotv1.VolumeSnapshotClass
		explicit string
		want     snapshot.Class
		wantErr  error
		wantText string
	}{
		"explicit wins over default": {classes: classes(class("a", "csi", true), class("b", "csi", false)), explicit: "b",
			want: snapshot.Class{Name: "b", Driver: "csi", Why: "explicit"}},
		"default wins over others": {classes: classes(class("a", "csi", false), class("b", "csi", true), class("c", "other", true)),
			want: snapshot.Class{Name: "b", Driver: "csi", Why: "default"}},
		"the only one of the driver": {classes: classes(class("a", "csi", false), class("b", "other", true)),
			want: snapshot.Class{Name: "a", Driver: "csi", Why: "only"}},
		"retain is told": {classes: classes(retain), want: snapshot.Class{Name: "keeps", Driver: "csi", Why: "only", Retain: true}},
		"several without default list the candidates": {classes: classes(class("b", "csi", false), class("a", "csi", false), class("c", "other", false)),
			wantErr:  snapshot.ErrClassAmbiguous,
			wantText: `2 VolumeSnapshotClasses fit and none is annotated as default; name one; classes of driver "csi": a, b`},
		"several defaults list them": {classes: classes(class("b", "csi", true), class("a", "csi", true), class("c", "csi", false)),
			wantErr:  snapshot.ErrClassAmbiguous,
			wantText: `2 VolumeSnapshotClasses are annotated as default (a, b); name one, or leave one annotation; classes of driver "csi": a, b, c`},
		"none of the driver": {classes: classes(class("a", "other", true)), wantErr: snapshot.ErrClassMissing,
			wantText: `there is no VolumeSnapshotClass for the volume's driver; create one; classes of driver "csi": none`},
		"explicit that does not exist": {classes: classes(class("a", "csi", true)), explicit: "z", wantErr: snapshot.ErrClassMissing,
			wantText: `there is no VolumeSnapshotClass "z"; create it, or name another; classes of driver "csi": a`},
		"explicit of another driver": {classes: classes(class("a", "csi", true), class("b", "other", false)), explicit: "b", wantErr: snapshot.ErrClassMismatch,
			wantText: `VolumeSnapshotClass "b" is of driver "other"; name one of the volume's driver; classes of driver "csi": a`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := snapshot.Choose(tc.classes, "csi", tc.explicit)
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Fatal(d)
			}
			require.Equal(t, tc.wantErr == nil, err == nil)
			if tc.wantErr != nil {
				require.ErrorIs(t, err, tc.wantErr)
				require.True(t, verdictOf(t, err).Terminal)
				require.Equal(t, tc.wantText, err.Error())
			}
		})
	}
}
