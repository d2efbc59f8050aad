package scheduled

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"example.com/pvcbackup/backup"
	"example.com/pvcbackup/backup/contract"
)

func id(n int64) *int64 { return ptr.To(n) }

// podUsing is a Pod whose second container mounts the claim.
func podUsing(claim string, pod *corev1.PodSecurityContext, user, other *corev1.SecurityContext) *corev1.Pod {
	return &corev1.Pod{Spec: corev1.PodSpec{
		SecurityContext: pod,
		Volumes: []corev1.Volume{
			{Name: "tmp"},
			{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}},
		},
		Containers: []corev1.Container{
			{Name: "sidecar", SecurityContext: other, VolumeMounts: []corev1.VolumeMount{{Name: "tmp"}}},
			{Name: "app", SecurityContext: user, VolumeMounts: []corev1.VolumeMount{{Name: "data"}}},
		},
	}}
}

func TestAMoverTakesTheIdentityOfWhatMountsTheClaim(t *testing.T) {
	group := &corev1.PodSecurityContext{RunAsUser: id(1), RunAsGroup: id(2), FSGroup: id(3), SupplementalGroups: []int64{4}}
	for name, test := range map[string]struct {
		have backup.PodSettings
		pod  *corev1.Pod
		want backup.PodSettings
	}{
		"nothing said": {pod: podUsing("data", nil, nil, nil)},
		"of the Pod, and its fsGroup becomes a supplemental group": {
			pod:  podUsing("data", group, nil, nil),
			want: backup.PodSettings{RunAsUser: id(1), RunAsGroup: id(2), SupplementalGroups: []int64{4, 3}},
		},
		"of the container that mounts it, and of no other": {
			pod:  podUsing("data", group, &corev1.SecurityContext{RunAsUser: id(7), RunAsGroup: id(8)}, &corev1.SecurityContext{RunAsUser: id(9)}),
			want: backup.PodSettings{RunAsUser: id(7), RunAsGroup: id(8), SupplementalGroups: []int64{4, 3}},
		},
		"never root": {
			pod:  podUsing("data", &corev1.PodSecurityContext{RunAsUser: id(0), RunAsGroup: id(0)}, nil, nil),
			want: backup.PodSettings{RunAsGroup: id(0)},
		},
		"what the spec says has precedence": {
			have: backup.PodSettings{RunAsUser: id(50), RunAsGroup: id(51)},
			pod:  podUsing("data", group, nil, nil),
			want: backup.PodSettings{RunAsUser: id(50), RunAsGroup: id(51), SupplementalGroups: []int64{4, 3}},
		},
	} {
		require.Empty(t, cmp.Diff(test.want, takeIdentity(test.have, test.pod, "data")), name)
	}
}

func TestARestrictedMoverRunsAsThePodThatMountsTheClaim(t *testing.T) {
	w := newWorld(t)
	pod := podUsing("data", &corev1.PodSecurityContext{RunAsUser: id(1001), RunAsGroup: id(1002), FSGroup: id(1003)}, nil, nil)
	pod.Namespace, pod.Name = w.ns, "app"
	for i := range pod.Spec.Containers {
		pod.Spec.Containers[i].Image = "app"
		pod.Spec.Containers[i].VolumeMounts[0].MountPath = "/data"
	}
	require.NoError(t, w.admin.Create(t.Context(), pod))
	var run backup.Task
	w.answer = func(task backup.Task, attempt int) *contract.Result { run = task; return well(task, attempt) }
	w.create(nil)
	w.settle()
	require.Empty(t, cmp.Diff(backup.PodSettings{
		Privilege: backup.Restricted, RunAsUser: id(1001), RunAsGroup: id(1002), SupplementalGroups: []int64{1003},
	}, run.Pod))
}
