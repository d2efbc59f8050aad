package backup

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"
)

var owner = Owner{APIVersion: "example.com/v1", Kind: "Thing", Namespace: "ns", Name: "thing", UID: "uid-1"}

func TestChildNamesDifferForEverythingElse(t *testing.T) {
	other := owner
	other.UID = "uid-2"
	names := map[string]string{}
	for what, name := range map[string]string{
		"itself":          owner.ChildName(RoleBackup, "s1", 1),
		"another uid":     other.ChildName(RoleBackup, "s1", 1),
		"another role":    owner.ChildName(RoleRestore, "s1", 1),
		"another slot":    owner.ChildName(RoleBackup, "s2", 1),
		"another attempt": owner.ChildName(RoleBackup, "s1", 2),
	} {
		require.Empty(t, names[name], what)
		names[name] = what
	}
}

// The name is part of what survives a restart with another version of the operator.
func TestChildNamesStayTheSameFromReleaseToRelease(t *testing.T) {
	require.Equal(t, "thing-backup-6pk6a6os1hh2qgb3", owner.ChildName(RoleBackup, "s1", 1))
}

func FuzzAChildNameIsADNSLabelThatLeavesRoomForAPodsSuffix(f *testing.F) {
	for _, name := range []string{"", "data", "-", "1", "a.b.c", "Ä", strings.Repeat("x", 300), strings.Repeat("-", 300), "0-0", "ends-with-a-dash-at20-x"} {
		f.Add(name, "uid", "20260102t030405z", 1)
	}
	roles := []Role{RoleSnapshot, RoleStage, RoleLookup, RoleBackup, RoleRestore, RoleMaintain, RoleDelete}
	f.Fuzz(func(t *testing.T, name, uid, slot string, attempt int) {
		for _, role := range roles {
			child := Owner{Name: name, UID: types.UID(uid)}.ChildName(role, slot, attempt)
			require.Empty(t, validation.IsDNS1035Label(child), child)
			require.LessOrEqual(t, len(child), 47)
		}
	})
}

func TestChildrenAreOwnedAndLabelled(t *testing.T) {
	require.Empty(t, cmp.Diff(metav1.OwnerReference{
		APIVersion: "example.com/v1", Kind: "Thing", Name: "thing", UID: "uid-1", Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(false),
	}, owner.Reference()))
	require.Empty(t, cmp.Diff(map[string]string{
		LabelManagedBy: ManagedBy, LabelOwnerUID: "uid-1", LabelRole: "backup", LabelSlot: "s1",
	}, owner.Labels(RoleBackup, "s1")))
}

func TestAPodMountsAClaimUntilItEnds(t *testing.T) {
	claims := []corev1.Volume{{Name: "tmp"}, {Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
	for phase, want := range map[corev1.PodPhase]bool{
		corev1.PodPending: true, corev1.PodRunning: true, corev1.PodUnknown: true, corev1.PodSucceeded: false, corev1.PodFailed: false,
	} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{Volumes: claims}, Status: corev1.PodStatus{Phase: phase}}
		require.Equal(t, want, Mounts(pod, "data"), phase)
		require.False(t, Mounts(pod, "other"), phase)
	}
}
