// Package controller holds the reconcilers of PVCBackup and PVCRestore.
//
// # What it does
//
// It wires the loops of packages backup/scheduled and backup/restore to a controller-runtime manager: which events wake
// which object, and which status a restore gets. What is decided is decided in those packages.
//
// # Minimal use
//
//	err := controller.SetupPVCBackup(mgr, options)
//	err = controller.SetupPVCRestore(mgr, options)
//
// # Guarantees
//
// A run is driven by events of what it waits for. The VolumeSnapshot API may be installed after the operator started:
// its events are watched from then on.
//
// # RBAC
//
// The markers in this package are all the rules that the operator has; see operator/config/rbac/role.yaml. Besides what
// the packages need that it is made of:
//
//	rules:
//	- apiGroups: [""]
//	  resources: [namespaces]
//	  resourceNames: [kube-system]
//	  verbs: [get]                         # its UID names the cluster
//
// # What it never does
//
// It opens no store and reads no Secret.
package controller
