package devkubelet

import (
	"context"
	"maps"
	"runtime"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
)

const (
	heartbeatEvery = 10 * time.Second
	leaseSeconds   = 40
)

// heartbeat registers again and again, which finds nothing to do unless somebody meddled.
func (k *Kubelet) heartbeat(ctx context.Context) {
	tick := time.NewTicker(heartbeatEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := k.register(ctx); err != nil && ctx.Err() == nil {
			k.options.Log("node %s: %v", k.options.Node, err)
		}
	}
}

// register makes the Node, its CSINode and its Lease what they should be. A new Node is changed at once by the
// controller that taints it, so that a conflict is nothing unusual: what is there then is looked at again.
func (k *Kubelet) register(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error { return k.registerOnce(ctx) })
}

func (k *Kubelet) registerOnce(ctx context.Context) error {
	node, err := k.registerNode(ctx)
	if err != nil {
		return err
	}
	if err := k.registerDrivers(ctx, node); err != nil {
		return err
	}
	return k.renewLease(ctx, node)
}

func (k *Kubelet) registerNode(ctx context.Context) (*corev1.Node, error) {
	nodes := k.client.CoreV1().Nodes()
	node, err := nodes.Get(ctx, k.options.Node, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		node, err = nodes.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: k.options.Node, Labels: k.labels()}}, metav1.CreateOptions{})
	}
	if err != nil {
		return nil, err
	}
	if node.Status.DaemonEndpoints.KubeletEndpoint.Port == k.server.port && isReady(node) {
		return node, nil
	}
	node = node.DeepCopy()
	node.Status = k.nodeStatus()
	return nodes.UpdateStatus(ctx, node, metav1.UpdateOptions{})
}

func (k *Kubelet) labels() map[string]string {
	labels := map[string]string{
		corev1.LabelHostname: k.options.Node, corev1.LabelOSStable: runtime.GOOS, corev1.LabelArchStable: runtime.GOARCH,
	}
	maps.Copy(labels, k.options.Labels)
	return labels
}

func isReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// nodeStatus promises more than the machine may have: nothing is taken from it by a request.
func (k *Kubelet) nodeStatus() corev1.NodeStatus {
	now := metav1.Now()
	room := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("32"), corev1.ResourceMemory: resource.MustParse("64Gi"),
		corev1.ResourceEphemeralStorage: resource.MustParse("256Gi"), corev1.ResourcePods: resource.MustParse("110"),
	}
	status := corev1.NodeStatus{
		Capacity: room, Allocatable: room,
		// Only an address: the API server would prefer a host name, and nothing resolves it.
		Addresses:       []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: localhost}},
		DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: k.server.port}},
		NodeInfo: corev1.NodeSystemInfo{
			OperatingSystem: runtime.GOOS, Architecture: runtime.GOARCH, KubeletVersion: "v0.0.0-devkubelet",
			ContainerRuntimeVersion: "process://0", OSImage: "development kubelet (stand-in)",
		},
	}
	for kind, value := range map[corev1.NodeConditionType]corev1.ConditionStatus{
		corev1.NodeReady: corev1.ConditionTrue, corev1.NodeMemoryPressure: corev1.ConditionFalse,
		corev1.NodeDiskPressure: corev1.ConditionFalse, corev1.NodePIDPressure: corev1.ConditionFalse,
	} {
		status.Conditions = append(status.Conditions, corev1.NodeCondition{
			Type: kind, Status: value, Reason: "DevelopmentKubelet", LastHeartbeatTime: now, LastTransitionTime: now,
		})
	}
	return status
}

func (k *Kubelet) registerDrivers(ctx context.Context, node *corev1.Node) error {
	want := storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{}}
	for _, driver := range k.options.CSIDrivers {
		id := driver.NodeID
		if id == "" {
			id = node.Name
		}
		want.Drivers = append(want.Drivers, storagev1.CSINodeDriver{Name: driver.Name, NodeID: id, TopologyKeys: driver.TopologyKeys})
	}
	csinodes := k.client.StorageV1().CSINodes()
	found, err := csinodes.Get(ctx, node.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		owner := metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}
		_, err = csinodes.Create(ctx, &storagev1.CSINode{
			ObjectMeta: metav1.ObjectMeta{Name: node.Name, OwnerReferences: []metav1.OwnerReference{owner}}, Spec: want,
		}, metav1.CreateOptions{})
		return err
	}
	if err != nil || sameDrivers(found.Spec, want) {
		return err
	}
	found = found.DeepCopy()
	found.Spec = want
	_, err = csinodes.Update(ctx, found, metav1.UpdateOptions{})
	return err
}

func sameDrivers(a, b storagev1.CSINodeSpec) bool {
	return slices.EqualFunc(a.Drivers, b.Drivers, func(a, b storagev1.CSINodeDriver) bool {
		return a.Name == b.Name && a.NodeID == b.NodeID && slices.Equal(a.TopologyKeys, b.TopologyKeys)
	})
}

func (k *Kubelet) renewLease(ctx context.Context, node *corev1.Node) error {
	leases := k.client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	seconds, now := int32(leaseSeconds), metav1.NowMicro()
	lease, err := leases.Get(ctx, node.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = leases.Create(ctx, &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: node.Name, Namespace: corev1.NamespaceNodeLease},
			Spec:       coordinationv1.LeaseSpec{HolderIdentity: &node.Name, LeaseDurationSeconds: &seconds, RenewTime: &now},
		}, metav1.CreateOptions{})
		return err
	}
	if err != nil {
		return err
	}
	lease = lease.DeepCopy()
	lease.Spec.HolderIdentity, lease.Spec.LeaseDurationSeconds, lease.Spec.RenewTime = &node.Name, &seconds, &now
	_, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
	return err
}
