package app_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/pvcbackup/backup/scheduled"
	v1 "example.com/pvcbackup/operator/api/v1"
)

// fill puts everything into a folder that is easily lost.
func fill(t *testing.T, dir string) {
	t.Helper()
	at := time.Date(2020, 2, 3, 4, 5, 6, 789000000, time.UTC)
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "sub", "empty"), 0o750))
	for name, text := range map[string]string{
		"hello.txt": "hello", "empty": "", "sub/big": strings.Repeat("many words, ", 200_000), "sub/ünïcode \n name": "x",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o640))
	}
	require.NoError(t, os.Symlink("../hello.txt", filepath.Join(dir, "sub", "link")))
	require.NoError(t, os.Link(filepath.Join(dir, "hello.txt"), filepath.Join(dir, "sub", "hard")))
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600))
	require.NoError(t, os.Chmod(filepath.Join(dir, "empty"), 0o4711))
	for _, name := range []string{"hello.txt", "sub/big", "sub/empty", "sub"} {
		require.NoError(t, os.Chtimes(filepath.Join(dir, name), at, at))
	}
}

func TestWhatIsBackedUpIsRestoredEqual(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	source := p.claim("data")
	fill(t, source)
	obj := p.backup("data", "data")
	p.backedUp(obj, "")
	p.restored(restoreOf("newest", "data"), source)

	require.Equal(t, "Create", obj.Status.LastAttempt.Kind, "a new object is backed up at once")
	require.Equal(t, obj.Status.LastAttempt.Finished, *obj.Status.LastBackup)
	require.NotNil(t, obj.Status.NextBackup)
	p.is(obj, scheduled.ConditionKeyEscrowed, metav1.ConditionFalse, "KeyNotSaved")
	key := p.keySecret("data")
	require.NotNil(t, key)
	require.Empty(t, key.OwnerReferences, "the key outlives the object")
	p.change(obj, func() {
		obj.Annotations = map[string]string{scheduled.AnnotationKeySaved: obj.Status.Repository.KeyFingerprint}
	})
	p.is(obj, scheduled.ConditionKeyEscrowed, metav1.ConditionTrue, "Acknowledged")

	p.settled()
	require.Equal(t, 1, p.events("data")["BackupCompleted"])
	require.Len(t, p.objects("/snapshots/"), 1)
	require.Empty(t, p.objects("/locks/"))
}

func TestAnOlderBackupCanBeChosen(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	source := p.claim("data")
	p.write(source, "file", "one")
	obj := p.backup("data", "data")
	p.backedUp(obj, "")
	first := obj.Status.LastSuccess
	one := t.TempDir()
	p.write(one, "file", "one")
	copyTimes(t, source, one)

	p.write(source, "file", "two")
	p.backedUp(obj, p.again(obj))
	require.Equal(t, "Manual", obj.Status.LastAttempt.Kind)
	require.NotEqual(t, first.SnapshotID, obj.Status.LastSuccess.SnapshotID)

	byID, byTime, byOffset, offset := restoreOf("by-id", "data"), restoreOf("by-time", "data"), restoreOf("by-offset", "data"), int32(1)
	byID.Spec.SnapshotID, byTime.Spec.AsOf, byOffset.Spec.Offset = first.SnapshotID, first.Time, &offset
	p.restored(byID, one)
	p.restored(byTime, one)
	p.restored(byOffset, one)
	p.restored(restoreOf("newest", "data"), source)
}

// copyTimes gives the folder and its file the times and modes of another one's.
func copyTimes(t *testing.T, from, to string) {
	t.Helper()
	for _, name := range []string{"file", "."} {
		info, err := os.Stat(filepath.Join(from, name))
		require.NoError(t, err)
		require.NoError(t, os.Chmod(filepath.Join(to, name), info.Mode()))
		require.NoError(t, os.Chtimes(filepath.Join(to, name), info.ModTime(), info.ModTime()))
	}
}

func TestABackupIsTakenAtItsScheduledTime(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write(p.claim("data"), "file", "text")
	no := false
	obj := p.backup("data", "data", func(b *v1.PVCBackup) { b.Spec.Schedule, b.Spec.RunOnCreate = "* * * * *", &no })
	p.backedUp(obj, "")
	require.Equal(t, "Scheduled", obj.Status.LastAttempt.Kind)
	late := obj.Status.LastAttempt.Started.Sub(obj.Status.LastAttempt.Started.Truncate(time.Minute))
	require.Less(t, late, 20*time.Second)
	p.change(obj, func() { obj.Spec.Suspend = true })
	p.await(obj, func() error {
		if obj.Status.NextBackup != nil {
			return conditionIs(nil, "nextBackup", "unset", "Suspended")
		}
		return nil
	})
}

func TestAnEmptyVolumeIsRecordedAndNeverDisplacesAGoodBackup(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	source := p.claim("data")
	p.write(source, "file", "text")
	obj := p.backup("data", "data")
	p.backedUp(obj, "")
	good, last := *obj.Status.LastSuccess, *obj.Status.LastBackup
	kept := t.TempDir()
	p.write(kept, "file", "text")
	copyTimes(t, source, kept)

	require.NoError(t, os.Remove(filepath.Join(source, "file")))
	p.ended(obj, p.again(obj), "Empty")
	require.Equal(t, good, *obj.Status.LastSuccess)
	require.True(t, last.Equal(obj.Status.LastBackup))
	require.Len(t, p.objects("/snapshots/"), 2)
	p.restored(restoreOf("newest", "data"), kept)

	p.claim("hollow")
	hollow := p.backup("hollow", "hollow")
	p.ended(hollow, "", "Empty")
	p.failed(hollow, scheduled.ReasonVolumeEmpty)
	require.Nil(t, hollow.Status.LastBackup)
}

func TestAMissingClaimIsWaitedForAndNoticedWhenItAppears(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	obj := p.backup("data", "data")
	p.failed(obj, "ClaimMissing")
	require.Nil(t, obj.Status.LastAttempt, "the slot is not used up")
	appeared := time.Now()
	p.write(p.claim("data"), "file", "text")
	p.ended(obj, "", "Succeeded")
	require.Less(t, obj.Status.LastAttempt.Started.Sub(appeared), 25*time.Second, "an event tells of it, not only the look every 30 seconds")
	p.is(obj, scheduled.ConditionReady, metav1.ConditionTrue, scheduled.ReasonProtected)
	require.Equal(t, 1, p.events("data")["ClaimMissing"], "an event on the transition only")
}

func TestAFileThatCannotBeReadFailsTheRunAndNamesItself(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	source := p.claim("data")
	p.write(source, "open", "text")
	p.write(source, "sub/closed", "text")
	require.NoError(t, os.Chmod(filepath.Join(source, "sub", "closed"), 0))
	obj := p.backup("data", "data")
	p.ended(obj, "", "Failed")
	require.Equal(t, "MoverCannotRead", obj.Status.LastAttempt.Reason)
	require.Contains(t, obj.Status.LastAttempt.Message, "sub/closed")
	require.Nil(t, obj.Status.LastBackup)
	p.failed(obj, "MoverCannotRead")
	require.Empty(t, p.objects("/snapshots/"))
	require.Equal(t, int32(1), obj.Status.LastAttempt.Movers, "nothing is tried again that only a person can mend")

	require.NoError(t, os.Chmod(filepath.Join(source, "sub", "closed"), 0o600))
	p.backedUp(obj, p.again(obj))
	require.Equal(t, int32(0), obj.Status.ConsecutiveFailures)
}

func TestTwoClaimsShareABucketAndNothingElse(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	var backups []*v1.PVCBackup
	folders := map[string]string{}
	for _, name := range []string{"one", "two"} {
		folders[name] = p.claim(name)
		p.write(folders[name], "file", "text of "+name)
		backups = append(backups, p.backup(name, name))
	}
	for _, obj := range backups {
		p.backedUp(obj, "")
		p.restored(restoreOf(obj.Name, obj.Name), folders[obj.Name])
	}
	require.NotEqual(t, backups[0].Status.Repository.ID, backups[1].Status.Repository.ID)
	require.NotEqual(t, p.keySecret("one").Data, p.keySecret("two").Data)
	require.Len(t, p.objects("/one/config"), 1)
	require.Len(t, p.objects("/two/config"), 1)
}

func TestAVolumeCanBeTheStore(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	source, nas := p.claim("data"), p.claim("nas")
	p.write(source, "file", "text")
	obj := p.backup("data", "data", func(b *v1.PVCBackup) {
		b.Spec.S3Bucket = ""
		b.Spec.Storage = &scheduled.Storage{URL: "file:///pvcbackup/destination", Volume: "nas", Prefix: "backups/of/data"}
	})
	p.backedUp(obj, "")
	require.Len(t, files(t, nas, "/backups/of/data/snapshots/"), 1)
	require.Empty(t, p.objects("/"))
	p.restored(restoreOf("from-the-object", "data"), source)

	// With nothing but the store and the key, as after the loss of a cluster.
	alone := &v1.PVCRestore{ObjectMeta: metav1.ObjectMeta{Name: "from-the-store"}, Spec: v1.PVCRestoreSpec{Source: v1.RestoreSource{
		Storage:    &scheduled.Storage{URL: "file:///pvcbackup/destination", Volume: "nas", Prefix: "backups/of/data"},
		Encryption: &scheduled.Encryption{PasswordSecretRef: &scheduled.SecretKeyRef{Name: obj.Status.Repository.GeneratedKey}},
	}}}
	p.restored(alone, source)
}

func TestAStoreInMemoryIsRefused(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	obj := &v1.PVCBackup{ObjectMeta: p.object("data"), Spec: v1.PVCBackupSpec{PVCName: "data"}}
	obj.Spec.Schedule, obj.Spec.Storage = never, &scheduled.Storage{URL: "mem://bucket"}
	require.ErrorContains(t, p.admin.Create(t.Context(), obj), "url must be s3://, gs:// or azblob://")
}

func TestBackupsThatNoRuleKeepsAreForgotten(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	source := p.claim("data")
	p.write(source, "file", "one")
	obj := p.backup("data", "data", func(b *v1.PVCBackup) { b.Spec.Retention = &scheduled.Retention{Last: 1} })
	p.backedUp(obj, "")
	p.write(source, "file", "two")
	p.backedUp(obj, p.again(obj))
	newest := obj.Status.LastSuccess.SnapshotID
	p.is(obj, scheduled.ConditionMaintained, metav1.ConditionTrue, "Maintained")
	require.Len(t, p.objects("/snapshots/"), 1)
	require.Contains(t, p.objects("/snapshots/")[0], newest)
	p.settled()
	p.restored(restoreOf("newest", "data"), source)
	require.NoError(t, p.admin.Get(t.Context(), client.ObjectKeyFromObject(obj), obj))
	require.Nil(t, obj.Status.Current)
}
