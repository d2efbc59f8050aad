package repo_test

import (
	"context"
	"errors"
	"fmt"

	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/backup/repo/repotest"
)

// quick makes examples fast. Real repositories take the defaults.
var quick = &repo.InitOptions{KeyOptions: repo.KeyOptions{Scrypt: repotest.Cheap}}

func ExampleInit() {
	ctx, store := context.Background(), repotest.NewMemory()
	r, err := repo.Init(ctx, store, "a password", quick)
	fmt.Println(r.Version(), len(r.ID()), err)
	_, err = repo.Init(ctx, store, "a password", quick)
	fmt.Println(errors.Is(err, repo.ErrAlreadyInitialised))
	// Output:
	// 2 64 <nil>
	// true
}

func ExampleOpen() {
	ctx, store := context.Background(), repotest.NewMemory()
	_, err := repo.Open(ctx, store, "a password", nil)
	fmt.Println(errors.Is(err, repo.ErrAbsent))
	_, err = repo.Init(ctx, store, "a password", quick)
	fmt.Println(err)
	_, err = repo.Open(ctx, store, "another password", nil)
	fmt.Println(errors.Is(err, repo.ErrWrongPassword))
	// Output:
	// true
	// <nil>
	// true
}

func ExampleProbe() {
	ctx, store := context.Background(), repotest.NewMemory()
	state, err := repo.Probe(ctx, store)
	fmt.Println(state, err)
	_, _ = repo.Init(ctx, store, "a password", quick)
	state, err = repo.Probe(ctx, store)
	fmt.Println(state, err)
	// Output:
	// absent <nil>
	// repository <nil>
}

func ExampleRepository_Lock() {
	ctx := context.Background()
	r, _ := repo.Init(ctx, repotest.NewMemory(), "a password", quick)
	lock, err := r.Lock(ctx, repo.LockOptions{Host: "pod-1/uid-1", Exclusive: true})
	fmt.Println(err)
	_, err = r.Lock(ctx, repo.LockOptions{Host: "pod-2/uid-2"})
	var held *repo.LockedError
	fmt.Println(errors.As(err, &held), errors.Is(err, repo.ErrLocked))
	fmt.Println(lock.Unlock(ctx), lock.Context().Err())
	// Output:
	// <nil>
	// true true
	// <nil> context canceled
}

func ExampleRepository_AddKey() {
	ctx, store := context.Background(), repotest.NewMemory()
	r, _ := repo.Init(ctx, store, "a password", quick)
	_, err := r.AddKey(ctx, "another password", quick.KeyOptions)
	fmt.Println(err)
	_, err = repo.Open(ctx, store, "another password", nil)
	fmt.Println(err)
	// Output:
	// <nil>
	// <nil>
}

func ExamplePackSize() {
	fmt.Println(repo.PackSize(nil))
	// Output: 36
}
