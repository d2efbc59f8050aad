// Package app assembles the reference operator.
//
// # What it does
//
// It reads the operator's flags and makes a controller-runtime manager with both controllers, their caches, metrics,
// health probes and leader election.
//
// # Minimal use
//
//	options := app.DefaultOptions()
//	options.AddFlags(flag.CommandLine)
//	mgr, err := app.New(ctx, restConfig, scheme, options)
//	err = mgr.Start(ctx)
//
// # Guarantees
//
// Two managers in one process do not disturb each other; they share controller-runtime's registry of metrics, in which
// their counts add up. A stop is graceful: status writes in flight are finished.
//
// # What it never does
//
// It reads no Secret and opens no store.
package app
