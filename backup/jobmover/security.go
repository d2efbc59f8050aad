package jobmover

import (
	corev1 "k8s.io/api/core/v1"

	"example.com/pvcbackup/backup"
)

// podSecurity never sets an fsGroup: the kubelet would change the owner and the mode of every file on the volume.
func podSecurity(p backup.PodSettings) *corev1.PodSecurityContext {
	security := &corev1.PodSecurityContext{
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
	nonRoot := p.Privilege != backup.Baseline
	security.RunAsNonRoot = &nonRoot
	if nonRoot {
		security.RunAsUser, security.RunAsGroup, security.SupplementalGroups = p.RunAsUser, p.RunAsGroup, p.SupplementalGroups
		return security
	}
	root := int64(0)
	security.RunAsUser, security.RunAsGroup = &root, &root
	return security
}

func containerSecurity(task backup.Task) *corev1.SecurityContext {
	yes, no := true, false
	return &corev1.SecurityContext{
		AllowPrivilegeEscalation: &no, ReadOnlyRootFilesystem: &yes,
		Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}, Add: capabilities(task)},
	}
}

// capabilities are what root needs to read everything, and to restore everything, within what "baseline" allows.
func capabilities(task backup.Task) []corev1.Capability {
	switch {
	case task.Pod.Privilege != backup.Baseline:
		return nil
	case task.Role != backup.RoleRestore:
		return []corev1.Capability{"DAC_OVERRIDE"}
	}
	return []corev1.Capability{"DAC_OVERRIDE", "CHOWN", "FOWNER", "FSETID", "SETFCAP", "MKNOD"}
}
