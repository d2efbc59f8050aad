package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"gocloud.dev/blob"
	"gocloud.dev/blob/memblob"

	"example.com/pvcbackup/backup/contract"
	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/backup/repo/repotest"
	"example.com/pvcbackup/blobstore"
	"example.com/pvcbackup/blobstore/drivers/file"
	"example.com/pvcbackup/blobstore/drivers/mem"
	"example.com/pvcbackup/blobstore/drivers/s3"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const password = "correct-horse-battery"

// box is a bucket in memory, at box://any/prefix, whose calls can be disturbed.
type box struct {
	bucket *blob.Bucket
	// before is called with put, delete or list and a key; its error is the call's.
	before func(ctx context.Context, op, key string) error
	// drop makes a put or deletion succeed without doing anything.
	drop func(op, key string) bool

	mu   sync.Mutex
	keys []string // that were put
}

func newBox(t testing.TB) *box {
	b := &box{bucket: memblob.OpenBucket(&memblob.Options{NoMD5: true})}
	t.Cleanup(func() { require.NoError(t, b.bucket.Close()) })
	return b
}

func (b *box) opener(_ context.Context, u *url.URL, _ *blobstore.Options) (*blobstore.Driver, error) {
	return &blobstore.Driver{
		Bucket: b.bucket, Prefix: blobstore.PathPrefix(u), Close: func() error { return nil },
		PutHashed: b.put, Delete: b.delete, List: b.list,
	}, nil
}

func (b *box) call(ctx context.Context, op, key string) error {
	if b.before == nil {
		return nil
	}
	return b.before(ctx, op, key)
}

func (b *box) put(ctx context.Context, key string, data []byte, _ [32]byte, o *blobstore.PutOptions) error {
	if err := b.call(ctx, "put", key); err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.keys = append(b.keys, key)
	if o.OnlyIfAbsent {
		if there, err := b.bucket.Exists(ctx, key); err != nil {
			return err
		} else if there {
			return &blobstore.Error{Op: "put", Key: key, Kind: blobstore.KindExists}
		}
	}
	if b.drop != nil && b.drop("put", key) {
		return nil
	}
	return b.bucket.WriteAll(ctx, key, data, nil)
}

func (b *box) delete(ctx context.Context, key string) error {
	if err := b.call(ctx, "delete", key); err != nil {
		return err
	}
	return b.bucket.Delete(ctx, key)
}

func (b *box) list(ctx context.Context, prefix string) iter.Seq2[blobstore.Object, error] {
	return func(yield func(blobstore.Object, error) bool) {
		if err := b.call(ctx, "list", prefix); err != nil {
			yield(blobstore.Object{}, err)
			return
		}
		for list := b.bucket.List(&blob.ListOptions{Prefix: prefix}); ; {
			found, err := list.Next(ctx)
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(blobstore.Object{}, err)
				return
			}
			if !yield(blobstore.Object{Key: found.Key, Size: found.Size, ModTime: found.ModTime}, nil) {
				return
			}
		}
	}
}

// all returns the keys in the bucket.
func (b *box) all(t testing.TB) []string {
	t.Helper()
	keys := []string{}
	for list := b.bucket.List(nil); ; {
		found, err := list.Next(context.Background())
		if errors.Is(err, io.EOF) {
			return keys
		}
		require.NoError(t, err)
		keys = append(keys, found.Key)
	}
}

func (b *box) below(t testing.TB, prefix string) []string {
	return slices.DeleteFunc(b.all(t), func(key string) bool { return !strings.HasPrefix(key, prefix) })
}

// rig is the environment of movers.
type rig struct {
	// looks counts the requests, in the place of the time at which an operator looked.
	looks atomic.Int64
	t     testing.TB
	box   *box
	env   map[string]string
	now   time.Time
	log   bytes.Buffer
	// wait is how long to wait for locks.
	wait time.Duration
}

func newRig(t testing.TB) *rig {
	r := &rig{t: t, box: newBox(t), now: time.Now(), wait: time.Nanosecond}
	r.env = map[string]string{
		contract.EnvRepository: "box://bucket/cluster/ns/claim", contract.EnvPassword: password,
		contract.EnvSource: t.TempDir(), contract.EnvTarget: filepath.Join(t.TempDir(), "target"),
		contract.EnvResultFile: filepath.Join(t.TempDir(), "result"), contract.EnvPodName: "job-1-abcde", contract.EnvPodUID: "pod-uid",
	}
	r.write("file", "content")
	r.write("sub/other", strings.Repeat("more content\n", 1000))
	return r
}

func (r *rig) write(name, text string) {
	r.t.Helper()
	name = filepath.Join(r.env[contract.EnvSource], name)
	require.NoError(r.t, os.MkdirAll(filepath.Dir(name), 0o755))
	require.NoError(r.t, os.WriteFile(name, []byte(text), 0o644))
}

func (r *rig) openers() map[string]blobstore.Opener {
	return map[string]blobstore.Opener{
		"box": r.box.opener, "mem": mem.Openers()["mem"], "file": file.Openers()["file"], "s3": s3.Openers()["s3"],
	}
}

func (r *rig) options(stdout, stderr io.Writer) Options {
	return Options{
		Openers: r.openers(), Stdout: stdout, Stderr: stderr, Getenv: func(name string) string { return r.env[name] },
		Version: "test", Now: func() time.Time { return r.now },
	}
}

// hurried is a clock for which waits are short.
type hurried struct{}

func (hurried) Now() time.Time { return time.Now() }

func (hurried) After(d time.Duration) <-chan time.Time { return time.After(d / 100) }

func (r *rig) tool(o Options) *tool {
	t := newTool(o)
	t.moverWait, t.scrypt, t.clock = r.wait, repo.ScryptParams(repotest.Cheap), hurried{}
	return t
}

// run interprets a command line.
func (r *rig) run(ctx context.Context, stdout, stderr io.Writer, args ...string) int {
	return r.tool(r.options(stdout, stderr)).run(ctx, args)
}

// move does a request in this process.
func (r *rig) move(request contract.Request) contract.Result {
	r.t.Helper()
	return r.moveContext(r.t.Context(), request)
}

func (r *rig) moveContext(ctx context.Context, request contract.Request) contract.Result {
	r.t.Helper()
	env := map[string]string{}
	for name, value := range r.env {
		env[name] = value
	}
	if request.Locks.AsOf == 0 { // an operator starts movers one after the other, and knows which of them ended
		request.Locks.AsOf = r.looks.Add(1)
	}
	text, err := request.Encode()
	require.NoError(r.t, err)
	env[contract.EnvRequest] = text
	o := r.options(io.Discard, io.Discard)
	o.Getenv = func(name string) string { return env[name] }
	result := r.tool(o).move(ctx)
	// What is not reported is not known: every result goes through its encoding.
	result, err = contract.DecodeResult(string(result.Encode()))
	require.NoError(r.t, err)
	return result
}

func (r *rig) good(request contract.Request) contract.Result {
	r.t.Helper()
	result := r.move(request)
	require.Equal(r.t, contract.Succeeded, result.Outcome, "%s: %s", result.Reason, result.Message)
	return result
}

func (r *rig) fails(reason string, request contract.Request) contract.Result {
	r.t.Helper()
	result := r.move(request)
	require.Equal(r.t, reason, result.Reason, "%s %s", result.Outcome, result.Message)
	require.Equal(r.t, contract.Failed, result.Outcome)
	require.NotEmpty(r.t, result.Message)
	require.NotContains(r.t, result.Message, password)
	return result
}

// open opens the repository as a bystander.
func (r *rig) open() *repo.Repository {
	r.t.Helper()
	store, err := blobstore.Open(r.t.Context(), r.env[contract.EnvRepository], &blobstore.Options{Openers: r.openers()})
	require.NoError(r.t, err)
	opened, err := repo.Open(r.t.Context(), store, password, nil)
	require.NoError(r.t, err)
	return opened
}

func (r *rig) snapshots() []repo.SnapshotInfo {
	r.t.Helper()
	all, err := r.open().Snapshots(r.t.Context())
	require.NoError(r.t, err)
	return all
}

func (r *rig) restored(name string) string {
	r.t.Helper()
	text, err := os.ReadFile(filepath.Join(r.env[contract.EnvTarget], name))
	require.NoError(r.t, err)
	return string(text)
}

var slot = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

var identity = contract.Identity{Host: "cluster", Path: "/ns/claim"}

// backupRun asks for the n-th run.
func backupRun(n int) contract.Request {
	at := slot.Add(time.Duration(n) * time.Hour)
	return contract.Request{
		Operation: contract.OperationBackup, Identity: identity, Locks: contract.Locks{Owner: "uid-1"},
		Backup: &contract.Backup{Run: "uid-1-" + at.Format("20060102t150405z"), Time: at, Tags: []string{contract.TagOwner + "=uid-1"}, Initialize: true, Owner: "cluster/ns/claim"},
	}
}

func restoreRequest() contract.Request {
	return contract.Request{Operation: contract.OperationRestore, Identity: identity, Locks: contract.Locks{Owner: "uid-1"}, Restore: &contract.Restore{}}
}

func deleteRequest(uid string) contract.Request {
	return contract.Request{Operation: contract.OperationDelete, Identity: identity, Locks: contract.Locks{Owner: uid}, Delete: &contract.Delete{OwnerUID: uid}}
}

func maintainRequest(k contract.Keep) contract.Request {
	return contract.Request{Operation: contract.OperationMaintain, Identity: identity, Locks: contract.Locks{Owner: "uid-1"}, Maintain: &contract.Maintain{Keep: k}}
}

func jsonOf[T any](t testing.TB, text string) (value T) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(text), &value), text)
	return value
}
