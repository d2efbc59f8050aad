package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"example.com/pvcbackup/backup/archiver"
	"example.com/pvcbackup/backup/contract"
	"example.com/pvcbackup/backup/internal/edgetree"
	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/blobstore"
)

func TestABackupComesBackAndItsRunIsNotDoneTwice(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	require.Equal(t, contract.RepositoryAbsent, r.good(contract.Request{Operation: contract.OperationLookup}).Repository)
	first := r.good(backupRun(0))
	require.True(t, first.Initialized)
	require.EqualValues(t, 2, first.Files)
	require.Equal(t, contract.RepositoryPresent, r.good(contract.Request{Operation: contract.OperationLookup}).Repository)
	again := r.good(backupRun(0))
	require.True(t, again.Reused)
	require.Equal(t, first.SnapshotID, again.SnapshotID)
	require.Len(t, r.snapshots(), 1)
	got := r.good(restoreRequest())
	require.Equal(t, first.SnapshotID, got.SnapshotID)
	require.Equal(t, "content", r.restored("file"))
	require.Empty(t, r.box.below(t, "cluster/ns/claim/locks/"))
}

func TestRestoreChoosesByTimeOffsetAndID(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var names []string
	for n := range 3 {
		r.write("file", fmt.Sprint(n))
		names = append(names, r.good(backupRun(n)).SnapshotID)
	}
	for want, choice := range map[int]contract.Restore{
		0: {AsOf: slot.Add(30 * time.Minute)}, 1: {Offset: 1}, 2: {SnapshotID: names[2][:10]},
	} {
		request := restoreRequest()
		choice.Overwrite = "Always"
		request.Restore = &choice
		require.Equal(t, names[want], r.good(request).SnapshotID)
		require.Equal(t, fmt.Sprint(want), r.restored("file"))
	}
}

func TestTwoMoversHeldBeforeTheirCommitEndInOneSnapshot(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.good(backupRun(0))
	r.write("file", "changed")
	var barrier sync.WaitGroup
	barrier.Add(2)
	r.box.before = func(_ context.Context, op, key string) error {
		if op == "put" && strings.Contains(key, "/runs/") {
			barrier.Done()
			barrier.Wait()
		}
		return nil
	}
	results := make([]contract.Result, 2)
	var movers sync.WaitGroup
	request := backupRun(1)
	request.Locks.AsOf = 1000 // neither is known to have ended
	for i := range results {
		movers.Go(func() { results[i] = r.move(request) })
	}
	movers.Wait()
	for _, result := range results {
		require.Equal(t, contract.Succeeded, result.Outcome, result.Message)
	}
	require.Equal(t, results[0].SnapshotID, results[1].SnapshotID)
	require.NotEqual(t, results[0].Reused, results[1].Reused)
	require.Len(t, r.snapshots(), 2)
}

func TestAMoverNeverUsesMemNorFileOutsideItsDestination(t *testing.T) {
	t.Parallel()
	destination := t.TempDir()
	for _, tc := range []struct {
		url, destination string
		allowed          bool
	}{
		{"mem://bucket", "", false},
		{"mem://bucket", destination, false},
		{"file://" + destination, "", false},
		{"file://" + destination + "/a", "", false},
		{"file:///tmp", destination, false},
		{"file://" + destination + "-not", destination, false},
		{"file://" + destination + "/a/../../b", destination, false},
		{"file://" + destination, destination, true},
		{"file://" + destination + "/cluster/ns/claim", destination, true},
	} {
		t.Run(tc.url+" in "+tc.destination, func(t *testing.T) {
			r := newRig(t)
			r.env[contract.EnvRepository], r.env[contract.EnvDestination] = tc.url, tc.destination
			if tc.allowed {
				r.good(backupRun(0))
				return
			}
			result := r.fails(contract.ReasonStoreInvalid, backupRun(0))
			require.Equal(t, contract.ExitUsage, result.ExitCode())
		})
	}
}

func TestARepositoryThatIsGoneIsNotBegunAnew(t *testing.T) {
	t.Parallel()
	for name, request := range map[string]contract.Request{"backup": backupRun(0), "restore": restoreRequest(), "maintain": maintainRequest(contract.Keep{})} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			request.RepositoryID = strings.Repeat("ab", 32)
			if request.Restore != nil {
				request.Restore.AllowAbsent = true
			}
			result := r.fails(contract.ReasonRepositoryMissing, request)
			require.Equal(t, contract.ExitNoRepository, result.ExitCode())
			require.False(t, result.Retry)
			require.Empty(t, r.box.keys, "something was written")
		})
	}
}

func TestAnotherRepositoryThanTheOneSeenBeforeIsRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.good(backupRun(0))
	request := backupRun(1)
	request.RepositoryID = strings.Repeat("ab", 32)
	r.fails(contract.ReasonRepositoryForeign, request)
	request = backupRun(1)
	request.Backup.Owner = "another/ns/claim"
	r.fails(contract.ReasonRepositoryForeign, request)
	require.Len(t, r.snapshots(), 1)
}

func TestARepositoryWithoutItsConfigIsBrokenAndNotBegunAnew(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.good(backupRun(0))
	require.NoError(t, r.box.bucket.Delete(t.Context(), "cluster/ns/claim/config"))
	require.Equal(t, contract.RepositoryBroken, r.good(contract.Request{Operation: contract.OperationLookup}).Repository)
	before := r.box.all(t)
	r.now = r.now.Add(time.Hour)
	r.fails(contract.ReasonRepositoryBroken, backupRun(1))
	if diff := cmp.Diff(before, r.box.all(t)); diff != "" {
		t.Errorf("objects: -before +after:\n%s", diff)
	}
}

// A mover killed between the key and the config of its new repository leaves a key that is of no use.
func TestACreationThatWasInterruptedLongAgoIsBegunAnew(t *testing.T) {
	r := newRig(t)
	r.box.before = func(_ context.Context, op, key string) error {
		if op == "put" && strings.HasSuffix(key, "/config") {
			return &blobstore.Error{Kind: blobstore.KindInvalid}
		}
		return nil
	}
	r.fails(contract.ReasonStoreInvalid, backupRun(0))
	require.Len(t, r.box.all(t), 1)
	r.box.before = nil
	young := r.fails(contract.ReasonLocked, backupRun(0))
	require.True(t, young.Retry)
	r.now = r.now.Add(time.Hour)
	r.good(backupRun(0))
	require.Len(t, r.box.below(t, "cluster/ns/claim/keys/"), 1)
}

// forbidden is an S3 server that refuses everything. It counts what would have changed something.
func forbidden(t *testing.T, r *rig) (writes func() int) {
	var mu sync.Mutex
	n := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if request.Method != http.MethodGet && request.Method != http.MethodHead {
			mu.Lock()
			n++
			mu.Unlock()
		}
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `<?xml version="1.0"?><Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>`)
	}))
	t.Cleanup(server.Close)
	t.Setenv("AWS_ACCESS_KEY_ID", "some-access-key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "some-secret-key")
	r.env[contract.EnvRepository] = "s3://bucket/prefix?region=eu-central-1&use_path_style=true&endpoint=" + server.URL
	return func() int { mu.Lock(); defer mu.Unlock(); return n }
}

func TestAStoreThatAnswers403IsNeverTakenForAbsent(t *testing.T) {
	r := newRig(t)
	writes := forbidden(t, r)
	absentAllowed := restoreRequest()
	absentAllowed.Restore.AllowAbsent = true
	for _, request := range []contract.Request{
		{Operation: contract.OperationLookup}, backupRun(0), restoreRequest(), absentAllowed, maintainRequest(contract.Keep{Last: 1}), deleteRequest("uid-1"),
	} {
		result := r.fails(contract.ReasonStoreDenied, request)
		require.Empty(t, result.Repository)
		require.NotContains(t, result.Message, "some-secret-key")
	}
	require.Zero(t, writes())
}

func TestAStoreThatConfirmsAndDropsAnyOnePutNeverYieldsASuccess(t *testing.T) {
	t.Parallel()
	for n := 1; ; n++ {
		r := newRig(t)
		var mu sync.Mutex
		puts, dropped := 0, ""
		r.box.drop = func(_, key string) bool {
			mu.Lock()
			defer mu.Unlock()
			if puts++; puts == n {
				dropped = key
			}
			return puts == n
		}
		result := r.move(backupRun(0))
		if dropped == "" {
			require.Equal(t, contract.Succeeded, result.Outcome)
			require.Greater(t, n, 7, "fewer puts than a backup takes")
			return
		}
		if result.Outcome != contract.Failed {
			t.Errorf("put %d of %s was dropped, and the outcome is %s", n, dropped, result.Outcome)
		}
	}
}

func TestALockLeftByAKilledPodDoesNotStopALaterMover(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.good(backupRun(0))
	request := maintainRequest(contract.Keep{Last: 1}) // takes the exclusive lock
	request.Locks = contract.Locks{Owner: "uid-1", AsOf: 1000, Live: []string{"job-7"}}
	earlier := contract.Locks{Owner: "uid-1", AsOf: 999}
	leave := func(pod string) {
		ctx, kill := context.WithCancel(t.Context())
		_, err := r.open().Lock(ctx, repo.LockOptions{Host: earlier.HostName(pod, "some-uid")})
		require.NoError(t, err)
		kill()
	}
	leave("job-6-xyz")
	r.good(request)
	require.Empty(t, r.box.below(t, "cluster/ns/claim/locks/"))
	leave("job-7-xyz")
	result := r.fails(contract.ReasonLocked, request)
	require.True(t, result.Retry)
	require.Equal(t, contract.ExitLocked, result.ExitCode())
	require.Contains(t, result.Message, "job-7-xyz")
	require.Len(t, r.box.below(t, "cluster/ns/claim/locks/"), 1)
}

func TestAFileThatCannotBeReadFailsTheRunAndNamesItself(t *testing.T) {
	if !edgetree.AsNobody(t) {
		return
	}
	r := newRig(t)
	r.write("sub/secret", "x")
	require.NoError(t, os.Chmod(filepath.Join(r.env[contract.EnvSource], "sub/secret"), 0))
	result := r.fails(contract.ReasonCannotRead, backupRun(0))
	require.Equal(t, 1, result.PathCount)
	require.Contains(t, result.Paths[0], "sub/secret")
	require.Contains(t, result.Message, "runAsUser")
	require.False(t, result.Retry)
	require.Empty(t, r.snapshots())
}

func TestAResultLargerThanTheLimitStillParses(t *testing.T) {
	if !edgetree.AsNobody(t) {
		return
	}
	r := newRig(t)
	for i := range 60 {
		name := fmt.Sprintf("%s-%d", strings.Repeat("é", 100), i)
		r.write(name, "x")
		require.NoError(t, os.Chmod(filepath.Join(r.env[contract.EnvSource], name), 0))
	}
	text, err := backupRun(0).Encode()
	require.NoError(t, err)
	r.env[contract.EnvRequest] = text
	require.Equal(t, contract.ExitFailed, r.run(t.Context(), io.Discard, &r.log, "mover"))
	written, err := os.ReadFile(r.env[contract.EnvResultFile])
	require.NoError(t, err)
	require.LessOrEqual(t, len(written), contract.MaxResult)
	result, err := contract.DecodeResult(string(written))
	require.NoError(t, err)
	require.Equal(t, contract.ReasonCannotRead, result.Reason)
	require.Equal(t, 60, result.PathCount)
}

func TestAKeyThatMayOnlyReadRestoresWithoutALockAndSaysSo(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.good(backupRun(0))
	r.box.before = func(_ context.Context, op, key string) error {
		if op != "list" {
			return &blobstore.Error{Op: op, Key: key, Kind: blobstore.KindPermission}
		}
		return nil
	}
	result := r.good(restoreRequest())
	require.Contains(t, strings.Join(result.Notes, "\n"), "without a lock")
	require.Equal(t, "content", r.restored("file"))
	r.fails(contract.ReasonStoreDenied, backupRun(1))
}

func TestAKeyThatMayNotDeleteFailsOnlyMaintenance(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.box.before = func(_ context.Context, op, key string) error {
		if op == "delete" && !strings.Contains(key, "/locks/") {
			return &blobstore.Error{Op: op, Key: key, Kind: blobstore.KindPermission}
		}
		return nil
	}
	for n := range 2 {
		r.good(backupRun(n))
	}
	result := r.fails(contract.ReasonKeyCannotDelete, maintainRequest(contract.Keep{Last: 1}))
	require.Contains(t, result.Message, "maintenanceCredentialsSecretRef")
	r.fails(contract.ReasonKeyCannotDelete, deleteRequest("uid-1"))
	require.Len(t, r.snapshots(), 2)
}

func TestALockThatCannotBeRemovedIsANoteAndNotAFailure(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.box.before = func(_ context.Context, op, key string) error {
		if op == "delete" {
			return &blobstore.Error{Op: op, Key: key, Kind: blobstore.KindPermission}
		}
		return nil
	}
	require.Contains(t, strings.Join(r.good(backupRun(0)).Notes, "\n"), "lock could not be removed")
}

func TestAWrongPasswordIsToldApart(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.good(backupRun(0))
	r.env[contract.EnvPassword] = "another"
	require.Equal(t, contract.ExitWrongPassword, r.fails(contract.ReasonWrongPassword, backupRun(1)).ExitCode())
}

func TestAnEmptyVolumeIsRecordedAndNeverDisplacesABackup(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	full := r.good(backupRun(0))
	r.env[contract.EnvSource] = t.TempDir()
	require.Equal(t, contract.Empty, r.move(backupRun(1)).Outcome)
	require.Equal(t, full.SnapshotID, r.good(restoreRequest()).SnapshotID)
	r.good(maintainRequest(contract.Keep{Last: 1}))
	require.Equal(t, full.SnapshotID, r.snapshots()[0].ID.String())
}

func TestOnlyAProvenAbsenceYieldsAnEmptyRestoreAndOnlyIfAsked(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	allowed := restoreRequest()
	allowed.Restore.AllowAbsent = true
	require.Equal(t, contract.ExitNoRepository, r.fails(contract.ReasonRepositoryMissing, restoreRequest()).ExitCode())
	require.Equal(t, contract.Empty, r.move(allowed).Outcome)
	r.good(backupRun(0))
	allowed.Identity.Path, allowed.Restore.Overwrite = "/ns/other", "Always"
	other := restoreRequest()
	other.Identity.Path = "/ns/other"
	r.fails(contract.ReasonSnapshotNotFound, other)
	result := r.move(allowed)
	require.Equal(t, contract.Empty, result.Outcome)
	require.Contains(t, strings.Join(result.Notes, "\n"), "proven")
	require.NoFileExists(t, filepath.Join(r.env[contract.EnvTarget], "file"))
	r.box.before = func(_ context.Context, op, key string) error {
		return &blobstore.Error{Op: op, Key: key, Kind: blobstore.KindPermission}
	}
	r.fails(contract.ReasonStoreDenied, allowed)
}

func TestARestoreNeedsAnEmptyTargetOrAPolicy(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.good(backupRun(0))
	r.good(restoreRequest())
	r.fails(contract.ReasonTargetNotEmpty, restoreRequest())
	request := restoreRequest()
	request.Restore.Overwrite = "IfChanged"
	r.good(request)
	request.Restore.Overwrite = "perhaps"
	r.fails(contract.ReasonInvalidRequest, request)
	request = restoreRequest()
	request.Identity.Host = ""
	r.fails(contract.ReasonInvalidRequest, request)
}

func TestMaintainKeepsToItsOwnSeries(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for n := range 3 {
		r.write("file", strings.Repeat(fmt.Sprint(n), 5000))
		r.good(backupRun(n))
	}
	other := backupRun(5)
	other.Identity.Path = "/ns/other"
	r.good(other)
	result := r.good(maintainRequest(contract.Keep{Last: 1}))
	require.Equal(t, 1, result.Kept)
	require.Equal(t, 2, result.Removed)
	require.Positive(t, result.Freed)
	require.Len(t, r.snapshots(), 2)
	everything := maintainRequest(contract.Keep{Last: 1})
	everything.Identity = contract.Identity{}
	r.fails(contract.ReasonInvalidRequest, everything)
	wrong := maintainRequest(contract.Keep{Within: "often"})
	r.fails(contract.ReasonInvalidRequest, wrong)
}

func TestDeleteForgetsOnlyItsOwnersSnapshotsAndRemovesTheRepositoryWithTheLast(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.good(backupRun(0))
	other := backupRun(1)
	other.Backup.Tags = []string{contract.TagOwner + "=uid-2"}
	r.good(other)
	result := r.good(deleteRequest("uid-1"))
	require.Equal(t, 1, result.Removed)
	require.Equal(t, 1, result.Kept)
	left := r.snapshots()
	require.Len(t, left, 1)
	require.Contains(t, left[0].Tags, contract.TagOwner+"=uid-2")
	require.Zero(t, r.good(deleteRequest("uid-1")).Removed)
	require.Len(t, r.snapshots(), 1)
	r.good(deleteRequest("uid-2"))
	require.Empty(t, r.box.all(t))
	r.good(deleteRequest("uid-2"))
}

func TestADeleteThatCrashedAnywhereConvergesWhenDoneAgain(t *testing.T) {
	t.Parallel()
	for n := 1; ; n++ {
		r := newRig(t)
		r.good(backupRun(0))
		var count atomic.Int64
		r.box.before = func(context.Context, string, string) error {
			if count.Add(1) >= int64(n) {
				return &blobstore.Error{Kind: blobstore.KindInvalid, Err: errors.New("crash")}
			}
			return nil
		}
		result := r.move(deleteRequest("uid-1"))
		r.box.before = nil
		if count.Load() < int64(n) {
			require.Equal(t, contract.Succeeded, result.Outcome)
			require.Greater(t, n, 15)
			return
		}
		r.now = r.now.Add(time.Hour)
		r.good(deleteRequest("uid-1"))
		require.Empty(t, r.box.all(t), "after a crash at call %d", n)
	}
}

func TestAMoverThatIsToldToStopStillWritesItsResult(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx, stop := context.WithCancel(t.Context())
	r.box.before = func(ctx context.Context, op, key string) error {
		if op == "put" && strings.Contains(key, "/data/") {
			stop()
			<-ctx.Done()
			return ctx.Err()
		}
		return nil
	}
	text, err := backupRun(0).Encode()
	require.NoError(t, err)
	r.env[contract.EnvRequest] = text
	require.Equal(t, contract.ExitInterrupted, r.run(ctx, io.Discard, &r.log, "mover"))
	written, err := os.ReadFile(r.env[contract.EnvResultFile])
	require.NoError(t, err)
	result, err := contract.DecodeResult(string(written))
	require.NoError(t, err)
	require.Equal(t, contract.ReasonInterrupted, result.Reason)
	require.True(t, result.Retry)
	require.Empty(t, r.box.below(t, "cluster/ns/claim/locks/"))
	require.Empty(t, r.snapshots())
}

func TestARequestThatIsNotUnderstoodIsReported(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "nonsense", `{"version":2,"operation":"lookup"}`, `{"version":1,"operation":"format"}`, `{"version":1,"operation":"restore"}`} {
		r := newRig(t)
		r.env[contract.EnvRequest] = text
		require.Equal(t, contract.ExitUsage, r.run(t.Context(), io.Discard, &r.log, "mover"))
		written, err := os.ReadFile(r.env[contract.EnvResultFile])
		require.NoError(t, err)
		result, err := contract.DecodeResult(string(written))
		require.NoError(t, err)
		require.Equal(t, contract.ReasonInvalidRequest, result.Reason)
		require.False(t, result.Retry)
	}
}

func TestAResultThatCannotBeWrittenIsAFailure(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.env[contract.EnvRequest] = `{"version":1,"operation":"lookup"}`
	r.env[contract.EnvResultFile] = filepath.Join(t.TempDir(), "missing", "result")
	require.Equal(t, contract.ExitFailed, r.run(t.Context(), io.Discard, &r.log, "mover"))
}

func TestMoversTellTheirProgressInLinesOfTheContract(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	text, err := backupRun(0).Encode()
	require.NoError(t, err)
	r.env[contract.EnvRequest] = text
	var stdout bytes.Buffer
	require.Zero(t, r.run(t.Context(), &stdout, &r.log, "mover"), r.log.String())
	var last contract.Progress
	for line := range strings.Lines(r.log.String()) {
		p, ok := contract.ParseProgress(line)
		require.True(t, ok, line)
		last = p
	}
	require.Equal(t, "reading", last.Stage)
	require.Positive(t, last.TotalBytes)
	require.Empty(t, stdout.String())
	require.NotContains(t, r.log.String(), password)
}

func TestPartialAndEmptyOutcomesOfABackup(t *testing.T) {
	t.Parallel()
	for want, done := range map[contract.Outcome]archiver.Result{
		contract.Succeeded: {}, contract.Empty: {Empty: true}, contract.Partial: {Partial: true, Unreadable: archiver.Paths{First: []string{"a"}, Count: 7}},
	} {
		got := backupResult(&done, slot)
		require.Equal(t, want, got.Outcome)
		require.Equal(t, done.Unreadable.Count, got.PathCount)
	}
}
