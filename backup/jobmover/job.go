package jobmover

import (
	"maps"
	"net/url"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"example.com/pvcbackup/backup"
	"example.com/pvcbackup/backup/contract"
)

// terminationGrace is how long a mover that is told to stop has for giving its locks back, in seconds.
const terminationGrace = 30

// BuildJob returns the Job that runs one attempt of a task. It is pure: the same arguments give the same Job. A task
// that no valid Job can be made of is an ErrInvalidTask.
func BuildJob(task backup.Task, attempt int, o Options) (*batchv1.Job, error) {
	o = o.withDefaults()
	if err := validate(task, attempt, o); err != nil {
		return nil, err
	}
	request, err := task.Request.Encode()
	if err != nil {
		return nil, invalidTask("the request cannot be encoded: %v", err)
	}
	labels := attemptLabels(task, attempt)
	one, no, never := int32(1), int32(0), batchv1.Failed
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: task.Owner.Namespace, Name: task.Name(attempt), Labels: labels,
			OwnerReferences: []metav1.OwnerReference{task.Owner.Reference()},
		},
		Spec: batchv1.JobSpec{
			Parallelism: &one, Completions: &one, BackoffLimit: &no,
			// A second Pod must not start while the first still ends.
			PodReplacementPolicy: &never,
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{
					Labels:     maps.Clone(labels),
					Finalizers: []string{Finalizer},
					// A node that is emptied to save money waits for the mover.
					Annotations: map[string]string{"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"},
				},
				Spec: podSpec(task, request, o),
			},
		},
	}, nil
}

func validate(task backup.Task, attempt int, o Options) error {
	switch {
	case o.Image == "":
		return invalidTask("no mover image is set: set Options.Image")
	case task.Owner.UID == "" || task.Owner.Namespace == "" || task.Owner.Name == "":
		return invalidTask("the owner %q in namespace %q lacks its name, namespace or UID", task.Owner.Name, task.Owner.Namespace)
	case task.Role == "" || len(validation.IsDNS1123Label(task.Slot)) > 0:
		return invalidTask("role %q and slot %q must be set, and the slot must be a DNS label", task.Role, task.Slot)
	case attempt < 1:
		return invalidTask("attempt %d: attempts count from 1", attempt)
	}
	if err := validateVolumes(task); err != nil {
		return err
	}
	if u, err := url.Parse(task.Repository); err != nil || task.Repository == "" || u.User != nil {
		return invalidTask("the repository's URL is empty, malformed or holds credentials: put those into a Secret")
	}
	return validatePod(task.Pod)
}

// validateVolumes keeps a task that lost its claim on the way from being taken for one whose volume is empty.
func validateVolumes(task backup.Task) error {
	switch {
	case task.Request.Operation == contract.OperationBackup && task.Volumes.Source == "":
		return invalidTask("the backup of slot %q names no source claim", task.Slot)
	case task.Request.Operation == contract.OperationRestore && task.Volumes.Target == "":
		return invalidTask("the restore of slot %q names no target claim", task.Slot)
	}
	return nil
}

func validatePod(p backup.PodSettings) error {
	switch {
	case p.Privilege != "" && p.Privilege != backup.Restricted && p.Privilege != backup.Baseline:
		return invalidTask("privilege %q is not known: use %s or %s", p.Privilege, backup.Restricted, backup.Baseline)
	case p.Privilege != backup.Baseline && p.RunAsUser != nil && *p.RunAsUser == 0:
		return invalidTask("a restricted mover cannot run as uid 0: choose another uid, or privilege %s", backup.Baseline)
	}
	return nil
}

func taskLabels(task backup.Task) map[string]string { return task.Owner.Labels(task.Role, task.Slot) }

func attemptLabels(task backup.Task, attempt int) map[string]string {
	labels := taskLabels(task)
	labels[backup.LabelAttempt] = strconv.Itoa(attempt)
	return labels
}

// seconds rounds up, so that no deadline becomes 0, which the API server refuses.
func seconds(d time.Duration) *int64 {
	if d <= 0 {
		return nil
	}
	s := int64((d + time.Second - 1) / time.Second)
	return &s
}
