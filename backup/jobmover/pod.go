package jobmover

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"example.com/pvcbackup/backup"
	"example.com/pvcbackup/backup/contract"
)

func podSpec(task backup.Task, request string, o Options) corev1.PodSpec {
	p := task.Pod
	no, grace := false, int64(terminationGrace)
	mountToken := p.ServiceAccountName != ""
	volumes, mounts := volumes(task.Volumes)
	return corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever,
		// The deadline is the Pod's and not the Job's: a Job that meets its own deletes the Pod and its message.
		ActiveDeadlineSeconds:         seconds(task.Deadlines.Run),
		TerminationGracePeriodSeconds: &grace,
		ServiceAccountName:            p.ServiceAccountName,
		AutomountServiceAccountToken:  &mountToken,
		EnableServiceLinks:            &no,
		NodeSelector:                  p.NodeSelector,
		Tolerations:                   p.Tolerations,
		Affinity:                      p.Affinity,
		PriorityClassName:             p.PriorityClassName,
		ImagePullSecrets:              p.ImagePullSecrets,
		SecurityContext:               podSecurity(p),
		Volumes:                       volumes,
		Containers: []corev1.Container{{
			Name: ContainerName, Image: o.Image, ImagePullPolicy: o.ImagePullPolicy,
			Command: literals(o.Command), Args: literals(o.Args),
			Env: environment(task, request), EnvFrom: credentials(task.Secrets),
			Resources:                resources(p.Resources),
			VolumeMounts:             mounts,
			TerminationMessagePath:   contract.DefaultResultFile,
			TerminationMessagePolicy: corev1.TerminationMessageReadFile,
			SecurityContext:          containerSecurity(task),
		}},
	}
}

// literal keeps Kubernetes from expanding $(NAME) and $$ in a value: a request could otherwise quote the password.
func literal(value string) string { return strings.ReplaceAll(value, "$", "$$") }

func literals(values []string) []string {
	var out []string
	for _, value := range values {
		out = append(out, literal(value))
	}
	return out
}

func environment(task backup.Task, request string) []corev1.EnvVar {
	env := []corev1.EnvVar{
		{Name: contract.EnvRequest, Value: literal(request)},
		{Name: contract.EnvRepository, Value: literal(task.Repository)},
		fromField(contract.EnvPodName, "metadata.name"),
		fromField(contract.EnvPodUID, "metadata.uid"),
	}
	for _, path := range []struct{ claim, name, value string }{
		{task.Volumes.Source, contract.EnvSource, backup.SourcePath},
		{task.Volumes.Target, contract.EnvTarget, backup.TargetPath},
		{task.Volumes.Destination, contract.EnvDestination, backup.DestinationPath},
	} {
		if path.claim != "" {
			env = append(env, corev1.EnvVar{Name: path.name, Value: path.value})
		}
	}
	if task.Secrets.Password != "" {
		env = append(env, corev1.EnvVar{Name: contract.EnvPassword, ValueFrom: &corev1.EnvVarSource{
			SecretKeyRef: &corev1.SecretKeySelector{
				LocalObjectReference: corev1.LocalObjectReference{Name: task.Secrets.Password}, Key: passwordKey(task.Secrets),
			},
		}})
	}
	if limit := task.Pod.Resources.Limits.Memory().Value(); limit > 0 {
		// The collector works harder near nine tenths of the limit, rather than the kernel killing the mover at it.
		env = append(env, corev1.EnvVar{Name: "GOMEMLIMIT", Value: strconv.FormatInt(limit/10*9, 10)})
	}
	return env
}

func passwordKey(s backup.Secrets) string {
	if s.PasswordKey == "" {
		return contract.PasswordKey
	}
	return s.PasswordKey
}

func fromField(name, path string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{
		APIVersion: "v1", FieldPath: path,
	}}}
}

// credentials become variables by envFrom, over which the mover's own variables win.
func credentials(s backup.Secrets) []corev1.EnvFromSource {
	if s.Credentials == "" {
		return nil
	}
	optional := s.CredentialsOptional
	return []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: s.Credentials}, Optional: &optional,
	}}}
}

func volumes(v backup.Volumes) (volumes []corev1.Volume, mounts []corev1.VolumeMount) {
	add := func(name, path string, readOnly bool, source corev1.VolumeSource) {
		volumes = append(volumes, corev1.Volume{Name: name, VolumeSource: source})
		mounts = append(mounts, corev1.VolumeMount{Name: name, MountPath: path, ReadOnly: readOnly})
	}
	claim := func(name, path, claim string, readOnly bool) {
		if claim != "" {
			add(name, path, readOnly, corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{
				ClaimName: claim, ReadOnly: readOnly,
			}})
		}
	}
	claim("source", backup.SourcePath, v.Source, true)
	claim("target", backup.TargetPath, v.Target, false)
	claim("destination", backup.DestinationPath, v.Destination, false)
	// On disk: in memory it would count against the mover's limit.
	add("tmp", "/tmp", false, corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}})
	return volumes, mounts
}

// resources are enough for the engine's buffers. A limit without requests is left alone: it becomes the request.
func resources(r corev1.ResourceRequirements) corev1.ResourceRequirements {
	if len(r.Requests) > 0 || len(r.Limits) > 0 {
		return r
	}
	r.Requests = corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("100m"),
		corev1.ResourceMemory: resource.MustParse("256Mi"),
	}
	return r
}
