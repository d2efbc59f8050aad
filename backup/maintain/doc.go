// Package maintain keeps a repository in order: forget, prune, check, repair of the index, and the removal of a whole
// repository.
//
// # What it does
//
// Forget removes the snapshots that no keep rule wants. Prune finds out which data is still in use and frees the rest.
// Check compares everything that the repository says with what is in the store. PlanIndexRepair makes an index anew from
// the packs. RemoveRepository deletes a repository that holds no snapshot any more.
//
// # Minimal use
//
//	lock, err := r.Lock(ctx, repo.LockOptions{Exclusive: true, Host: host})
//	report, err := maintain.Forget(lock.Context(), r, maintain.ForgetOptions{Rules: keep.Rules{Daily: 7}, Match: mine})
//	plan, err := maintain.PlanPrune(lock.Context(), r, maintain.PruneOptions{})
//	freed, err := plan.Execute(lock.Context())
//
// # Guarantees
//
// Nothing is deleted on doubt: a snapshot, tree or index that cannot be read, data in use that no index lists, a listing
// of packs that does not fit the index. New data is in the store, listed and read back, before what it replaces goes;
// a crash at any point leaves a repository that restores. The newest good snapshot is never forgotten. A repair keeps
// every entry of an index that is right, reads again what comes damaged, and gives up no pack unless told to.
//
// # What it never does
//
// It takes no lock itself: Forget, PlanPrune, PlanIndexRepair, Execute, Check and RemoveRepository are called under the
// exclusive one. It imports no Kubernetes package.
package maintain
