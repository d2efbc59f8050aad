// Package localmover does the work in this process.
//
// # What it does
//
// It implements backup.Mover by calling an Engine, a function, in a goroutine per attempt. The engine gets what a mover
// Pod would find in its environment, so that the same program runs in a Pod and here; this package links no engine by
// itself.
//
// # Minimal use
//
//	mover := localmover.New(engine, localmover.Options{
//		Env: func(ctx context.Context, task backup.Task) (map[string]string, error) {
//			return map[string]string{contract.EnvSource: "/var/lib/data", contract.EnvPassword: password}, nil
//		},
//	})
//	defer mover.Close()
//
// # Guarantees
//
// Results are in memory: with the process they are lost, and an attempt is then absent, so that it is started again.
// An engine that panics, or that returns no valid result, has failed. Close ends every attempt and returns when none
// runs.
//
// # What it never does
//
// It touches no cluster, and knows no volumes: where a task's claims are is what Options.Env tells.
package localmover
