// Package v1 holds the kinds PVCBackup and PVCRestore of the group storage.example.com.
//
// # What it does
//
// It declares the objects that people write, with the rules that the API server holds them to, and registers them in a
// scheme.
//
// # Minimal use
//
//	scheme := runtime.NewScheme()
//	err := v1.AddToScheme(scheme)
//
// # Guarantees
//
// The manifest of three fields (pvcName, schedule, s3Bucket) stays valid. What contradicts itself is refused by the API
// server with a message that names the field.
//
// # What it never does
//
// It holds no behaviour: schedules, runs and restores are in the packages schedule, backup and below.
//
// +kubebuilder:object:generate=true
// +groupName=storage.example.com
package v1
