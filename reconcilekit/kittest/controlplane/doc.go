// Package controlplane runs a real, whole Kubernetes control plane as ordinary processes of an ordinary user.
//
// # What it does
//
// [Start] runs etcd, kube-apiserver, kube-controller-manager, kube-scheduler and, with [Options.CSI], the snapshot
// controller, the CSI sidecars csi-provisioner and csi-snapshotter, and the project's CSI driver, and makes the CSIDriver,
// storage classes and snapshot class that go with it. Everything listens on loopback only, with certificates of its
// own. "make control-plane csi-driver" builds the programs into .cache/controlplane.
//
// It has no nodes. What runs pods registers a Node, and a CSINode that names [DriverName], itself; before that,
// claims of the class [WaitingClass] wait, and those of [ImmediateClass] are bound at once.
//
// # Minimal use
//
//	cluster, err := controlplane.Start(ctx, controlplane.Options{CSI: &controlplane.CSI{}})
//	if err != nil {
//		return err
//	}
//	defer cluster.Stop()
//	clientset, err := kubernetes.NewForConfig(cluster.RESTConfig())
//
// # Guarantees
//
//   - Several run beside each other, as root or not: ports are reserved for as long as a cluster runs.
//   - Stop leaves no process and no file behind, and after a crash of the calling process (on Linux) no process.
//   - A process that ends early ends Start, or closes [Cluster.Done], with an error that has the end of its log.
//
// # RBAC
//
// Roles are enforced, as on any cluster. [Cluster.RESTConfig] is an administrator's; [Cluster.RESTConfigFor] is a
// service account's, with nothing but what was granted to it. The CSI controllers act as administrators.
//
// # What it never does
//
// It runs no pods, no proxy and no DNS, downloads nothing, and is not for production: etcd does not force its data to
// disk, and data ends with the cluster.
package controlplane
