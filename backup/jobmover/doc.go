// Package jobmover runs each attempt of a task as one Kubernetes Job beside the data.
//
// # What it does
//
// It implements backup.Mover. Start creates a Job of one Pod, named after the owner, the role, the slot and the attempt.
// Poll reads the Job and its Pod, takes the result from the Pod's termination message, and says in a reason and a
// sentence what a Pod that does not start is waiting for. Stop deletes the Jobs of every attempt and waits for their
// Pods to be gone.
//
// # Minimal use
//
//	mover := jobmover.New(jobmover.Options{
//		Client: mgr.GetClient(),     // cached
//		Reader: mgr.GetAPIReader(),  // live
//		Image:  "registry.example.com/pvcbackup:1.0.0",
//		Logs:   jobmover.PodLogs(clientset.CoreV1()),
//	})
//	err := mover.Start(ctx, task, 1)
//	state, err := mover.Poll(ctx, task, 1)
//
// BuildJob, Observe and Judge are pure and of use alone.
//
// # Guarantees
//
// Unknown is not success: a Pod that ended without a result that decodes, that names the operation asked for and that
// agrees with the exit code, has failed. A finalizer keeps the Pod, and so its result, until Stop. A Job or Pod that is
// not the owner's is never adopted and never deleted; deletes carry the UID of what was looked at. Nothing is declared
// absent or gone on the cache's word alone. Every call to the API server has a deadline, and a log that is not
// delivered delays Poll by a quarter of a second at the most. The Pods fit the Pod Security Standard that the task's
// privilege names, and never have an fsGroup, which would rewrite the volume.
//
// # RBAC
//
//	rules:
//	- apiGroups: [batch]
//	  resources: [jobs]
//	  verbs: [get, list, watch, create, delete]
//	- apiGroups: [""]
//	  resources: [pods]
//	  verbs: [list, watch, patch, delete]  # patch: the finalizer that keeps a result
//	- apiGroups: [""]
//	  resources: [pods/log]
//	  verbs: [get]                         # only with Options.Logs
//
// # What it never does
//
// It reads no Secret: Pods refer to them. It opens no store. It never changes a Job once created.
package jobmover
