//go:build unix

package controlplane

import (
	"io"
	"time"
)

// Names of what a cluster with CSI has from the beginning.
const (
	// DriverName is the name of the CSI driver.
	DriverName = "csi.pvcbackup.example.com"
	// ImmediateClass is the default storage class, whose claims are bound at once.
	ImmediateClass = "csi"
	// WaitingClass is the storage class whose claims wait for their first pod.
	WaitingClass = "csi-wait"
	// SnapshotClass is the volume snapshot class, the default one. Deleting a snapshot deletes what it keeps.
	SnapshotClass = "csi"
	// DirectoryAttribute is the key, in spec.csi.volumeAttributes of a PersistentVolume, of the absolute path of the
	// directory that is the volume.
	DirectoryAttribute = "directory"
)

// Options say how to run a control plane. The zero value is ready to use, and has no CSI.
type Options struct {
	// Dir holds all data, certificates and logs. It is made when missing and must be empty. Empty: a new directory
	// among the temporary files.
	Dir string
	// Keep keeps Dir when the cluster is stopped, for its logs.
	Keep bool
	// Binaries is the directory of the programs. Empty: $KUBEBUILDER_ASSETS or else .cache/controlplane in the
	// working directory or any directory above it.
	Binaries string
	// Log is told, in a line each, what is started. May be nil.
	Log io.Writer
	// Timeout is how long starting may take. Zero: two minutes, which a busy machine may need; 10 seconds are usual.
	Timeout time.Duration
	// CRDs are files and directories of custom resource definitions to install.
	CRDs []string
	// APIServerArgs are further arguments of kube-apiserver, such as "--audit-policy-file=...".
	APIServerArgs []string
	// CSI adds volumes and snapshots. Nil: none, and no VolumeSnapshot API.
	CSI *CSI
}

// CSI says how to provide volumes. The zero value is ready to use.
type CSI struct {
	// Root holds the volumes. Empty: "volumes" in [Options.Dir]. Another one is not removed by Stop.
	Root string
	// Node is the name of the node volumes are on, for Topology. Empty: the host's name.
	Node string
	// Topology ties each volume to its node. Then no claim is bound, of either class, before a Node with the label
	// [TopologyKey] and a CSINode exist.
	Topology bool
}

// TopologyKey is the label of nodes that [CSI.Topology] goes by; its value is the node's name. A CSINode lists it.
const TopologyKey = "topology." + DriverName + "/node"
