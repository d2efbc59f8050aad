// Package cli is the data tool: what a mover runs, and what a person runs with nothing but a bucket and a key.
//
// # What it does
//
// Run interprets a command line. Nearly all commands are for people, and described in docs/cli.md; mover does what a
// contract.Request in the environment asks and reports a contract.Result.
//
// # Minimal use
//
//	os.Exit(cli.Run(ctx, os.Args[1:], cli.Options{Openers: all.Openers(), Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv}))
//
// An embedder builds a mover image of its own with the drivers it wants from these few lines.
//
// # Guarantees
//
// A success is reported only for what was verified. Exit codes are those of package contract, which are restic's where
// restic has one. Passwords and credentials are read from files and the environment only, and never printed.
//
// # What it never does
//
// It imports no Kubernetes package. A mover never writes to a mem: store, nor to a file: store outside the volume that
// is mounted for it. A restore writes nothing to the store but its lock.
package cli
