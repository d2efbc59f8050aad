package devkubelet

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Why the containers of a Pod are ended.
var (
	errDeleted  = errors.New("the pod is being deleted")
	errVanished = errors.New("the pod is gone")
	errDeadline = errors.New("the pod was active on the node longer than the specified deadline")
)

// worker lives one Pod.
type worker struct {
	kubelet  *Kubelet
	deleting chan struct{} // closed when the Pod's deletion is seen
	gone     chan struct{} // closed when the Pod is gone
	ended    chan struct{} // closed when every container has ended for good

	mu        sync.Mutex
	latest    *corev1.Pod
	processes map[string]*os.Process

	publishing sync.Mutex
	status     *podStatus
}

func newWorker(k *Kubelet, pod *corev1.Pod) *worker {
	return &worker{
		kubelet: k, latest: pod, status: newPodStatus(pod), processes: map[string]*os.Process{},
		deleting: make(chan struct{}), gone: make(chan struct{}), ended: make(chan struct{}),
	}
}

func (w *worker) pod() *corev1.Pod {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.latest
}

func (w *worker) update(pod *corev1.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.latest = pod
	if pod.DeletionTimestamp != nil && !closed(w.deleting) {
		close(w.deleting)
	}
}

func (w *worker) vanish() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !closed(w.gone) {
		close(w.gone)
	}
}

func closed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// signal reports whether there was a process to send it to.
func (w *worker) signal(signal syscall.Signal) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, process := range w.processes {
		signalGroup(process, signal)
	}
	return len(w.processes) > 0
}

func (w *worker) dir() string { return filepath.Join(w.kubelet.options.Dir, string(w.pod().UID)) }

func (w *worker) containerDir(name string) string { return filepath.Join(w.dir(), "containers", name) }

func (w *worker) logFile(container string) string {
	return filepath.Join(w.containerDir(container), "log")
}

func (w *worker) run(ctx context.Context) {
	pod := w.pod()
	switch {
	case hasEnded(pod):
	case ranBefore(pod):
		w.change(ctx, func(s *podStatus) { s.lost() })
	default:
		w.live(ctx)
	}
	close(w.ended)
	select {
	case <-ctx.Done():
		return
	case <-w.gone:
	case <-w.deleting:
		w.remove(ctx)
		select {
		case <-ctx.Done():
			return
		case <-w.gone:
		}
	}
	if err := os.RemoveAll(w.dir()); err != nil {
		w.kubelet.options.Log("pod %s/%s: %v", pod.Namespace, pod.Name, err)
	}
}

// live runs the Pod's containers from their first start to their last end.
func (w *worker) live(ctx context.Context) {
	run, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	go func() {
		select {
		case <-w.deleting:
			stop(errDeleted)
		case <-w.gone:
			stop(errVanished)
		case <-run.Done():
		}
	}()
	pod := w.pod()
	w.change(ctx, func(s *podStatus) { s.creating() })
	if seconds := pod.Spec.ActiveDeadlineSeconds; seconds != nil {
		deadline := time.AfterFunc(time.Duration(*seconds)*time.Second, func() { stop(errDeadline) })
		defer deadline.Stop()
	}
	w.runContainers(ctx, run)
	if ctx.Err() == nil {
		w.change(ctx, func(s *podStatus) { s.finish(context.Cause(run)) })
	}
}

func (w *worker) runContainers(ctx, run context.Context) {
	pod := w.pod()
	if len(pod.Spec.InitContainers) > 0 {
		w.change(ctx, func(s *podStatus) { s.refuse("the development kubelet runs no init containers") })
		return
	}
	mounted := w.untilMounted(ctx, run)
	if mounted == nil {
		return
	}
	w.change(ctx, func(s *podStatus) { s.sandboxReady() })
	var all sync.WaitGroup
	for i := range pod.Spec.Containers {
		all.Go(func() { w.container(ctx, run, &pod.Spec.Containers[i], mounted) })
	}
	all.Wait()
}

// untilMounted waits for the Pod's volumes; nil means that the Pod ended meanwhile.
func (w *worker) untilMounted(ctx, run context.Context) folders {
	for {
		mounted, err := w.kubelet.mount(run, w.pod(), w.dir())
		if err == nil {
			return mounted
		}
		w.change(ctx, func(s *podStatus) { s.waitAll("ContainerCreating", err.Error()) })
		if !w.pause(run) {
			return nil
		}
	}
}

// pause reports whether to go on after it.
func (w *worker) pause(run context.Context) bool {
	timer := time.NewTimer(w.kubelet.options.Retry)
	defer timer.Stop()
	select {
	case <-run.Done():
		return false
	case <-timer.C:
		return true
	}
}

// change changes the status and writes it, again and again until it is written or the Pod is gone. An unchanged one is
// not written.
func (w *worker) change(ctx context.Context, change func(*podStatus)) {
	w.publishing.Lock()
	defer w.publishing.Unlock()
	before := w.status.patch()
	change(w.status)
	patch := w.status.patch()
	if string(patch) == string(before) {
		return
	}
	for ctx.Err() == nil && !closed(w.gone) {
		err := w.write(ctx, patch)
		if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			return // a conflict is about the UID: another Pod has the name now
		}
		w.kubelet.options.Log("pod %s/%s: write status: %v", w.pod().Namespace, w.pod().Name, err)
		w.pause(ctx)
	}
}

func (w *worker) write(ctx context.Context, patch []byte) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	pod := w.pod()
	_, err := w.kubelet.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch,
		metav1.PatchOptions{}, "status")
	return err
}

// remove says the last word of a deletion, as only a kubelet may.
func (w *worker) remove(ctx context.Context) {
	now := int64(0)
	for ctx.Err() == nil && !closed(w.gone) {
		pod := w.pod()
		err := func() error {
			ctx, cancel := context.WithTimeout(ctx, callTimeout)
			defer cancel()
			return w.kubelet.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
				GracePeriodSeconds: &now, Preconditions: &metav1.Preconditions{UID: &pod.UID},
			})
		}()
		if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			return
		}
		w.kubelet.options.Log("pod %s/%s: delete: %v", pod.Namespace, pod.Name, err)
		w.pause(ctx)
	}
}

func (w *worker) grace() time.Duration {
	pod := w.pod()
	switch {
	case pod.DeletionGracePeriodSeconds != nil:
		return time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second
	case pod.Spec.TerminationGracePeriodSeconds != nil:
		return time.Duration(*pod.Spec.TerminationGracePeriodSeconds) * time.Second
	}
	return 30 * time.Second
}
