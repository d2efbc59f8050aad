package devkubelet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Options are the options of Start.
type Options struct {
	// Node is the Node's name. Empty means "dev".
	Node string
	// Labels are further labels of the Node: a CSI driver's topology, for instance.
	Labels map[string]string
	// Dir takes what Pods need: logs, Secrets, emptyDirs. It is created if need be. Required.
	Dir string
	// Images are the images that can be "pulled": for each name the entrypoint, a local program and its first
	// arguments. As everywhere, a Pod's command replaces the entrypoint.
	Images map[string][]string
	// Env are further variables, as NAME=VALUE, of every process. A Pod's own win over them.
	Env []string
	// CSIDrivers are the drivers whose volumes the node takes.
	CSIDrivers []CSIDriver
	// Retry is the pause before something missing is looked for again. Zero means 250 ms.
	Retry time.Duration
	// Log takes what a person may want to know; nil drops it.
	Log func(format string, args ...any)
}

// CSIDriver is a CSI driver as the node knows it.
type CSIDriver struct {
	Name string
	// NodeID is the driver's name for the node. Empty means the Node's name.
	NodeID string
	// TopologyKeys are the Node's labels that the driver's volumes are placed by.
	TopologyKeys []string
}

// Kubelet is a running stand-in for a node.
type Kubelet struct {
	options Options
	client  kubernetes.Interface
	server  *logServer
	cancel  context.CancelFunc
	wg      sync.WaitGroup

	mu   sync.Mutex
	pods map[types.UID]*worker
}

const callTimeout = 10 * time.Second

// Start registers the node and runs its Pods until Stop is called or ctx ends.
func Start(ctx context.Context, client kubernetes.Interface, o Options) (*Kubelet, error) {
	if o.Dir == "" {
		return nil, errors.New("devkubelet: Options.Dir is empty: name a folder")
	}
	if o.Node == "" {
		o.Node = "dev"
	}
	if o.Retry <= 0 {
		o.Retry = 250 * time.Millisecond
	}
	if o.Log == nil {
		o.Log = func(string, ...any) {}
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, err
	}
	o.Dir = dir
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	k := &Kubelet{options: o, client: client, pods: map[types.UID]*worker{}}
	if k.server, err = startLogServer(k); err != nil {
		return nil, err
	}
	ctx, k.cancel = context.WithCancel(ctx)
	if err := k.register(ctx); err != nil {
		k.Stop()
		return nil, fmt.Errorf("register node %s: %w", o.Node, err)
	}
	k.wg.Go(func() { k.heartbeat(ctx) })
	if err := k.watch(ctx); err != nil {
		k.Stop()
		return nil, err
	}
	return k, nil
}

// Stop ends every process and returns when nothing of the kubelet is left. The Pods' statuses stay as they are, as on a
// node that lost its power. It may be called again.
func (k *Kubelet) Stop() {
	k.cancel()
	k.server.stop()
	k.wg.Wait()
}

// KillPod sends a signal to the processes of a Pod, as the kernel or a person on the node may. A Pod without a running
// process is an error.
func (k *Kubelet) KillPod(namespace, name string, signal syscall.Signal) error {
	w := k.find(namespace, name)
	if w == nil || !w.signal(signal) {
		return fmt.Errorf("pod %s/%s has no running process on node %s", namespace, name, k.options.Node)
	}
	return nil
}

func (k *Kubelet) watch(ctx context.Context) error {
	factory := informers.NewSharedInformerFactoryWithOptions(k.client, 0, informers.WithTweakListOptions(
		func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", k.options.Node).String()
		}))
	informer := factory.Core().V1().Pods().Informer()
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { k.saw(ctx, obj.(*corev1.Pod)) },
		UpdateFunc: func(_, obj any) { k.saw(ctx, obj.(*corev1.Pod)) },
		DeleteFunc: func(obj any) {
			if last, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = last.Obj
			}
			if pod, ok := obj.(*corev1.Pod); ok {
				k.vanished(pod.UID)
			}
		},
	})
	if err != nil {
		return err
	}
	k.wg.Go(func() { informer.RunWithContext(ctx) })
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		return fmt.Errorf("the pods of node %s were not listed: %w", k.options.Node, ctx.Err())
	}
	return nil
}

func (k *Kubelet) saw(ctx context.Context, pod *corev1.Pod) {
	if pod.Spec.NodeName != k.options.Node || ctx.Err() != nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	w := k.pods[pod.UID]
	if w == nil {
		w = newWorker(k, pod)
		k.pods[pod.UID] = w
		k.wg.Go(func() { w.run(ctx) })
	}
	w.update(pod)
}

func (k *Kubelet) vanished(uid types.UID) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if w := k.pods[uid]; w != nil {
		w.vanish()
		delete(k.pods, uid)
	}
}

func (k *Kubelet) find(namespace, name string) *worker {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, w := range k.pods {
		if pod := w.pod(); pod.Namespace == namespace && pod.Name == name {
			return w
		}
	}
	return nil
}
