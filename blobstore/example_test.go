package blobstore_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"

	"gocloud.dev/blob"
	"gocloud.dev/blob/memblob"

	"example.com/pvcbackup/blobstore"
	"example.com/pvcbackup/blobstore/drivers/mem"
)

// inMemory returns a store for examples.
func inMemory() *blobstore.Store {
	s, err := blobstore.Open(context.Background(), "mem://example", &blobstore.Options{Openers: mem.Openers()})
	if err != nil {
		panic(err)
	}
	return s
}

func ExampleOpen() {
	_, err := blobstore.Open(context.Background(), "s3://bucket", &blobstore.Options{Openers: mem.Openers()})
	fmt.Println(err)
	_, err = blobstore.Open(context.Background(), "s3://key:secret@bucket", nil)
	fmt.Println(err)
	// Output:
	// no driver for the scheme "s3": add example.com/pvcbackup/blobstore/drivers/s3.Openers() to Options.Openers; available: mem
	// open: invalid argument: storage URL s3://bucket has a user or password in it: pass credentials by the environment
}

// Any bucket of gocloud becomes a store.
func ExampleNew() {
	s := blobstore.New(memblob.OpenBucket(nil), nil)
	fmt.Println(s.PutBytes(context.Background(), "greeting", []byte("hello"), nil))
	fmt.Println(s.Close())
	// Output:
	// <nil>
	// <nil>
}

// A driver says what the storage can do beyond gocloud's interface: here, that keys are at most 10 bytes long.
func ExampleFromDriver() {
	s := blobstore.FromDriver(&blobstore.Driver{
		Bucket: memblob.OpenBucket(nil),
		CheckKey: func(key string) error {
			if len(key) > 10 {
				return fmt.Errorf("key %q is longer than 10 bytes", key)
			}
			return nil
		},
		Tune: func(_ int64, o *blob.WriterOptions) { o.BufferSize = 1 << 20 },
	}, nil)
	defer s.Close()
	fmt.Println(s.PutBytes(context.Background(), "much/too/long", nil, nil))
	// Output: put "much/too/long": invalid argument: key "much/too/long" is longer than 10 bytes
}

func ExampleStore_Put() {
	ctx, s := context.Background(), inMemory()
	broken := io.MultiReader(strings.NewReader("half of it"), brokenReader{})
	err := s.Put(ctx, "k", broken, nil)
	fmt.Println(errors.Is(err, blobstore.ErrSource))
	_, err = s.Stat(ctx, "k") // there is no half object
	fmt.Println(errors.Is(err, blobstore.ErrNotFound))
	// Output:
	// true
	// true
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, errors.New("the disk is gone") }

func ExampleStore_PutBytes() {
	ctx, s := context.Background(), inMemory()
	wrong := sha256.Sum256([]byte("something else"))
	err := s.PutBytes(ctx, "k", []byte("hello"), &blobstore.PutOptions{SHA256: &wrong})
	fmt.Println(errors.Is(err, blobstore.ErrCorrupt))
	fmt.Println(s.PutBytes(ctx, "k", []byte("hello"), &blobstore.PutOptions{OnlyIfAbsent: true}))
	err = s.PutBytes(ctx, "k", []byte("again"), &blobstore.PutOptions{OnlyIfAbsent: true})
	fmt.Println(errors.Is(err, blobstore.ErrExists))
	// Output:
	// true
	// <nil>
	// true
}

func ExampleStore_Get() {
	ctx, s := context.Background(), inMemory()
	_ = s.PutBytes(ctx, "k", []byte("hello"), nil)
	r, err := s.Get(ctx, "k")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer r.Close()
	text, err := io.ReadAll(r)
	fmt.Printf("%s %v\n", text, err)
	// Output: hello <nil>
}

func ExampleStore_GetBytes() {
	ctx, s := context.Background(), inMemory()
	_ = s.PutBytes(ctx, "k", []byte("hello"), nil)
	_, err := s.GetBytes(ctx, "k", 4)
	fmt.Println(err)
	// Output: get "k": object larger than allowed: it has 5 bytes, the limit is 4
}

func ExampleStore_GetRange() {
	ctx, s := context.Background(), inMemory()
	_ = s.PutBytes(ctx, "k", []byte("hello"), nil)
	part, err := s.GetRange(ctx, "k", 1, 3)
	fmt.Printf("%s %v\n", part, err)
	_, err = s.GetRange(ctx, "k", 3, 3) // never less than asked for
	fmt.Println(errors.Is(err, blobstore.ErrCorrupt))
	// Output:
	// ell <nil>
	// true
}

func ExampleStore_Stat() {
	ctx, s := context.Background(), inMemory()
	_ = s.PutBytes(ctx, "k", []byte("hello"), nil)
	object, err := s.Stat(ctx, "k")
	fmt.Println(object.Size, err)
	// Output: 5 <nil>
}

func ExampleStore_List() {
	ctx, s := context.Background(), inMemory()
	for _, key := range []string{"b", "a/2", "a/1"} {
		_ = s.PutBytes(ctx, key, nil, nil)
	}
	for object, err := range s.List(ctx, "a/") {
		fmt.Println(object.Key, err)
	}
	// Output:
	// a/1 <nil>
	// a/2 <nil>
}

func ExampleStore_Delete() {
	ctx, s := context.Background(), inMemory()
	_ = s.PutBytes(ctx, "k", nil, nil)
	fmt.Println(s.Delete(ctx, "k"))
	// Output: <nil>
}

func ExampleStore_DeleteAll() {
	ctx, s := context.Background(), inMemory()
	for _, key := range []string{"old/1", "old/2", "new/1"} {
		_ = s.PutBytes(ctx, key, nil, nil)
	}
	fmt.Println(s.DeleteAll(ctx, "old/"))
	// Output: 2 <nil>
}

func ExampleStore_Probe() {
	report, err := inMemory().Probe(context.Background())
	fmt.Println(report.Write.OK, report.ConditionalPut.Detail, err)
	// Output: true the store honours conditional puts <nil>
}

func ExampleStore_Sub() {
	ctx, s := context.Background(), inMemory()
	team := s.Sub("teams/red")
	_ = team.PutBytes(ctx, "k", nil, nil)
	for object, err := range s.List(ctx, "") {
		fmt.Println(object.Key, team.URL(), err)
	}
	// Output: teams/red/k mem://example/teams/red/ <nil>
}

func ExampleCheckKey() {
	fmt.Println(blobstore.CheckKey("data/3f"))
	fmt.Println(blobstore.CheckKey("../etc"))
	// Output:
	// <nil>
	// key "../etc" has the segment ".."
}

func ExampleRedact() {
	fmt.Println(blobstore.Redact("azblob://backups/db?storage_account=acme&sig=c2VjcmV0"))
	// Output: azblob://backups/db?sig=redacted&storage_account=acme
}

func ExamplePathPrefix() {
	u, _ := url.Parse("s3://bucket/a/b")
	fmt.Println(blobstore.PathPrefix(u))
	// Output: a/b/
}

func ExampleInvalid() {
	err := blobstore.Invalid("open", "parameter %q is unknown", "regoin")
	fmt.Println(err, errors.Is(err, blobstore.ErrInvalid))
	// Output: open: invalid argument: parameter "regoin" is unknown true
}
