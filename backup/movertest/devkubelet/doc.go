// Package devkubelet is a stand-in for a node: it runs Pods as processes of this machine.
//
// # What it does
//
// It registers a Node, and a CSINode for CSI drivers that need no node plugin, and keeps the Node alive by its Lease.
// Pods bound to that Node run as local processes with their environment, Secrets, ConfigMaps, claims, deadlines,
// deletion, logs and termination messages, and get the statuses that a kubelet writes. It serves the logs, so that
// pods/log of the API server works. Everything is done with the real API server, and nothing else is a stand-in.
//
// A process sees this machine's files and not its Pod's. Therefore whatever in command, arguments and environment is,
// or starts with, a path at which the Pod mounts a volume (also behind file://) becomes the path of the volume's folder
// here, and contract.EnvResultFile names the file that takes the termination message. A claim's folder is what the
// attribute "directory" of its CSI volume names, or the path of a local or hostPath volume.
//
// # Minimal use
//
//	kubelet, err := devkubelet.Start(ctx, kubernetes.NewForConfigOrDie(config), devkubelet.Options{
//		Dir:    t.TempDir(),
//		Images: map[string][]string{"mover:test": {"/usr/local/bin/pvcbackup"}},
//	})
//	defer kubelet.Stop()
//
// # Guarantees
//
// Stop, and the end of this process, end every process of every Pod. A Pod's end is in its status before the Pod is
// deleted. Pods that another devkubelet ran are failed, never adopted.
//
// # RBAC
//
// It is meant for the administrator of a cluster of its own.
//
// # What it never does
//
// It is no sandbox: processes run as the user who runs it, whatever runAsUser says, read-only mounts are not enforced,
// limits are not applied, and the log server asks nobody who they are. It supports no init containers, probes, exec,
// block volumes, service account tokens or downward API volumes. Never use it on a shared machine, or for anything but
// development and tests.
package devkubelet
