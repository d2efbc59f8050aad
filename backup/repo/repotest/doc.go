// Package repotest offers stores for tests of code that works on repositories.
//
// # What it does
//
// A Memory is an object store in memory that can be told to fail, to drop writes and to change what is read. A Dir lays
// objects out as files, so that the stock restic program opens the repository in it.
//
// # Minimal use
//
//	s := repotest.NewMemory()
//	s.Before = func(op, key string) error { return blobstore.ErrPermission }
//	r, err := repo.Init(ctx, s, "password", &repo.InitOptions{KeyOptions: repo.KeyOptions{Scrypt: repotest.Cheap}})
//
// # Guarantees
//
// Conditional writes have exactly one winner. Listings are sorted.
//
// # What it never does
//
// It keeps nothing beyond a test: a Memory has no durability, and a Dir does not sync.
package repotest
