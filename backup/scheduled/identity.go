package scheduled

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/pvcbackup/backup"
)

// identity completes the settings of a restricted mover with the uid and gid of a Pod that mounts the claim, so that it
// can read what that Pod wrote. What the spec says has precedence.
func (p *pass) identity(ctx context.Context, pod backup.PodSettings) (backup.PodSettings, error) {
	if pod.Privilege != backup.Restricted || pod.RunAsUser != nil && pod.RunAsGroup != nil {
		return pod, nil
	}
	ctx, cancel := context.WithTimeout(ctx, p.timeout())
	defer cancel()
	var pods corev1.PodList
	if err := p.live.List(ctx, &pods, client.InNamespace(p.owner.Namespace)); err != nil {
		return pod, fmt.Errorf("listing the Pods that mount the claim: %w", err)
	}
	for i := range pods.Items {
		user := &pods.Items[i]
		if backup.Mounts(user, p.obj.BackupClaim()) && user.Labels[backup.LabelManagedBy] != backup.ManagedBy {
			return takeIdentity(pod, user, p.obj.BackupClaim()), nil
		}
	}
	return pod, nil
}

// takeIdentity takes over the uid and gid of the Pod's container that mounts the claim, never root's: a restricted Pod
// may not run as root. The fsGroup becomes a supplemental group, because as an fsGroup it would rewrite the volume.
func takeIdentity(settings backup.PodSettings, pod *corev1.Pod, claim string) backup.PodSettings {
	var uid, gid *int64
	if sc := pod.Spec.SecurityContext; sc != nil {
		uid, gid = sc.RunAsUser, sc.RunAsGroup
		settings.SupplementalGroups = append(settings.SupplementalGroups, sc.SupplementalGroups...)
		if sc.FSGroup != nil {
			settings.SupplementalGroups = append(settings.SupplementalGroups, *sc.FSGroup)
		}
	}
	if sc := securityOfUser(pod, claim); sc != nil {
		if sc.RunAsUser != nil {
			uid = sc.RunAsUser
		}
		if sc.RunAsGroup != nil {
			gid = sc.RunAsGroup
		}
	}
	if settings.RunAsUser == nil && uid != nil && *uid != 0 {
		settings.RunAsUser = uid
	}
	if settings.RunAsGroup == nil {
		settings.RunAsGroup = gid
	}
	return settings
}

// securityOfUser returns the security context of the first container that mounts the claim; nil when it has none.
func securityOfUser(pod *corev1.Pod, claim string) *corev1.SecurityContext {
	for _, container := range pod.Spec.Containers {
		for _, mount := range container.VolumeMounts {
			if claimOf(pod, mount.Name) == claim {
				return container.SecurityContext
			}
		}
	}
	return nil
}

// claimOf returns the claim of a volume of the Pod; empty when the volume is of another kind.
func claimOf(pod *corev1.Pod, volume string) string {
	for _, v := range pod.Spec.Volumes {
		if v.Name == volume && v.PersistentVolumeClaim != nil {
			return v.PersistentVolumeClaim.ClaimName
		}
	}
	return ""
}
