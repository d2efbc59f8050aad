package jobmover

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/pvcbackup/backup"
	"example.com/pvcbackup/backup/contract"
	"example.com/pvcbackup/reconcilekit"
)

// Start creates the attempt's Job unless it exists. It fills in the request's Locks itself, and ends the Pods of earlier
// attempts that broke a deadline and run on.
func (m *Mover) Start(ctx context.Context, task backup.Task, attempt int) error {
	if _, err := BuildJob(task, attempt, m.options); err != nil {
		return err
	}
	job, err := m.getJob(ctx, m.options.Client, task, attempt)
	if err != nil || job != nil {
		return err
	}
	asOf := m.options.Now() // before the look: what is started after it is not known to it
	jobs, pods, err := m.readLive(ctx, task.Owner)
	if err != nil {
		return err
	}
	if err := m.endEarlier(ctx, task, attempt, pods); err != nil {
		return err
	}
	task.Request.Locks = contract.Locks{Owner: string(task.Owner.UID), AsOf: asOf.UnixMilli(), Live: liveJobs(jobs, pods)}
	if job, err = BuildJob(task, attempt, m.options); err != nil {
		return err
	}
	err = m.call(ctx, func(ctx context.Context) error { return m.options.Client.Create(ctx, job) })
	if apierrors.IsAlreadyExists(err) {
		return m.adopt(ctx, task, attempt)
	}
	if err != nil {
		return createError(err, job.Namespace, job.Name)
	}
	return nil
}

// adopt looks at what has the attempt's name already.
func (m *Mover) adopt(ctx context.Context, task backup.Task, attempt int) error {
	job, err := m.getJob(ctx, m.options.Reader, task, attempt)
	if err == nil && job == nil {
		return fmt.Errorf("job %s/%s existed a moment ago and is gone", task.Owner.Namespace, task.Name(attempt))
	}
	return err
}

// Poll observes the attempt and holds its deadlines against it.
func (m *Mover) Poll(ctx context.Context, task backup.Task, attempt int) (backup.MoverState, error) {
	job, err := m.getJob(ctx, m.options.Client, task, attempt)
	if err != nil {
		return backup.MoverState{}, err
	}
	if job == nil {
		if job, err = m.getJob(ctx, m.options.Reader, task, attempt); err != nil {
			return backup.MoverState{}, err
		}
	}
	pods, err := m.attemptPods(ctx, task, attempt, job)
	if err != nil {
		return backup.MoverState{}, err
	}
	seen := Observe(task, job, pods)
	switch {
	case seen.Phase == backup.MoverRunning:
		r := m.progress.look(ctx, seen.Pod)
		seen.Progress, seen.ProgressChanged, seen.ProgressRead = r.progress, r.changed, r.read
	case seen.Pod != nil:
		m.progress.forget(seen.Pod.UID)
	}
	return Judge(seen, task.Deadlines, m.options.Now()), nil
}

// attemptPods returns the attempt's Pods from the cache. That there are none is confirmed by the API server wherever
// it would say something: when there is no Job, or when the Job is over.
func (m *Mover) attemptPods(ctx context.Context, task backup.Task, attempt int, job *batchv1.Job) ([]corev1.Pod, error) {
	labels := attemptLabels(task, attempt)
	pods, err := m.listPods(ctx, m.options.Client, task.Owner, labels)
	if err != nil {
		return nil, err
	}
	if len(pods) == 0 {
		over := job == nil
		if job != nil {
			_, _, over = jobOver(job)
		}
		if !over {
			return nil, nil
		}
		if pods, err = m.listPods(ctx, m.options.Reader, task.Owner, labels); err != nil {
			return nil, err
		}
	}
	var own []corev1.Pod
	for _, pod := range pods {
		if podOf(&pod, task.Name(attempt), job) {
			own = append(own, pod)
		}
	}
	return own, nil
}

// podOf reports whether the Pod was made for the Job of that name. The Job itself may be gone.
func podOf(pod *corev1.Pod, name string, job *batchv1.Job) bool {
	controller := metav1.GetControllerOf(pod)
	if job != nil {
		return controller != nil && controller.UID == job.UID
	}
	return controller == nil && pod.Labels[batchv1.JobNameLabel] == name ||
		controller != nil && controller.Kind == "Job" && controller.Name == name
}

// getJob returns the attempt's Job, or nil when that reader has none. One that is not the owner's is ErrForeign.
func (m *Mover) getJob(ctx context.Context, reader client.Reader, task backup.Task, attempt int) (*batchv1.Job, error) {
	job := &batchv1.Job{}
	key := client.ObjectKey{Namespace: task.Owner.Namespace, Name: task.Name(attempt)}
	err := m.call(ctx, func(ctx context.Context) error { return reader.Get(ctx, key, job) })
	switch {
	case reconcilekit.IsGone(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("get job %s: %w", key, err)
	case !owned(job, task, attemptLabels(task, attempt)):
		return nil, foreign("job", key.Namespace, key.Name)
	}
	return job, nil
}

// owned reports whether the Job is controlled by the task's owner and carries these labels.
func owned(job *batchv1.Job, task backup.Task, labels map[string]string) bool {
	controller := metav1.GetControllerOf(job)
	if controller == nil || controller.UID != task.Owner.UID {
		return false
	}
	for name, value := range labels {
		if job.Labels[name] != value {
			return false
		}
	}
	return true
}

// call bounds one call to the API server.
func (m *Mover) call(ctx context.Context, do func(context.Context) error) error {
	if err := ctx.Err(); err != nil {
		return err // a cache would say something else
	}
	ctx, cancel := context.WithTimeout(ctx, m.options.Timeout)
	defer cancel()
	return do(ctx)
}

func (m *Mover) listJobs(ctx context.Context, r client.Reader, o backup.Owner, labels map[string]string) ([]batchv1.Job, error) {
	list := &batchv1.JobList{}
	err := m.call(ctx, func(ctx context.Context) error {
		return r.List(ctx, list, client.InNamespace(o.Namespace), client.MatchingLabels(labels))
	})
	if err != nil {
		return nil, fmt.Errorf("list jobs in namespace %s: %w", o.Namespace, err)
	}
	return list.Items, nil
}

func (m *Mover) listPods(ctx context.Context, r client.Reader, o backup.Owner, labels map[string]string) ([]corev1.Pod, error) {
	list := &corev1.PodList{}
	err := m.call(ctx, func(ctx context.Context) error {
		return r.List(ctx, list, client.InNamespace(o.Namespace), client.MatchingLabels(labels))
	})
	if err != nil {
		return nil, fmt.Errorf("list pods in namespace %s: %w", o.Namespace, err)
	}
	return list.Items, nil
}
