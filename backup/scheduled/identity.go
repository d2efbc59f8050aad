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
	var pods corev1.PodList
	if err := p.live.List(ctx, &pods, client.InNamespace(p.owner.Namespace)); err != nil {
		return pod, fmt.Errorf("listing the Pods that mount the claim: %w", err)
	}
	for i := range pods.Items {
		if user := &pods.Items[i]; backup.Mounts(user, p.obj.BackupClaim()) {
			return takeIdentity(pod, user), nil
		}
	}
	return pod, nil
}

// takeIdentity takes over the Pod's uid and gid, never root's: a restricted Pod may not run as root. The fsGroup becomes
// a supplemental group, because as an fsGroup it would rewrite the volume.
func takeIdentity(settings backup.PodSettings, pod *corev1.Pod) backup.PodSettings {
	var uid, gid *int64
	if sc := pod.Spec.SecurityContext; sc != nil {
		uid, gid = sc.RunAsUser, sc.RunAsGroup
		settings.SupplementalGroups = append(settings.SupplementalGroups, sc.SupplementalGroups...)
		if sc.FSGroup != nil {
			settings.SupplementalGroups = append(settings.SupplementalGroups, *sc.FSGroup)
		}
	}
	for _, c := range pod.Spec.Containers {
		if c.SecurityContext != nil && c.SecurityContext.RunAsUser != nil {
			uid = c.SecurityContext.RunAsUser
		}
		if c.SecurityContext != nil && c.SecurityContext.RunAsGroup != nil {
			gid = c.SecurityContext.RunAsGroup
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
