package app_test

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/pvcbackup/backup/scheduled"
	v1 "example.com/pvcbackup/operator/api/v1"
	"example.com/pvcbackup/reconcilekit/kittest"
)

// impatient ends a mover that cannot start soon.
func impatient(b *v1.PVCBackup) {
	b.Spec.Deadlines = &scheduled.Deadlines{MoverStarted: &metav1.Duration{Duration: 10 * time.Second}}
}

func TestAKeySecretDeletedBetweenRunsIsNeverGeneratedAgain(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write(p.claim("data"), "file", "text")
	obj := p.backup("data", "data", impatient)
	p.backedUp(obj, "")
	key := p.keySecret("data")
	require.NoError(t, p.admin.Delete(t.Context(), key))

	before := p.again(obj)
	p.failed(obj, "SecretMissing")
	require.Nil(t, p.keySecret("data"))
	p.ended(obj, before, "Failed")
	require.Equal(t, "SecretMissing", obj.Status.LastAttempt.Reason)
	require.Contains(t, obj.Status.LastAttempt.Message, key.Name)
	require.Nil(t, p.keySecret("data"))
	require.Len(t, p.objects("/keys/"), 1)

	key.ResourceVersion, key.UID = "", ""
	p.create(key)
	p.backedUp(obj, p.again(obj))
}

func TestAKeyIsNeverGeneratedAgainWhenItsSecretAndTheObjectAreDeletedAndTheObjectIsMadeAgain(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write(p.claim("data"), "file", "text")
	obj := p.backup("data", "data")
	p.backedUp(obj, "")
	key := p.keySecret("data")
	p.deleted(obj)
	require.NotNil(t, p.keySecret("data"), "the key outlives the object")
	require.NoError(t, p.admin.Delete(t.Context(), key))
	before := p.objects("/")

	obj = p.backup("data", "data", impatient)
	p.ended(obj, "", "Failed")
	require.Equal(t, "SecretMissing", obj.Status.LastAttempt.Reason)
	p.failed(obj, "SecretMissing")
	require.Nil(t, p.keySecret("data"))
	require.Equal(t, before, p.objects("/"), "nothing was put into the store")

	key.ResourceVersion, key.UID = "", ""
	p.create(key)
	p.backedUp(obj, p.again(obj))
	require.Len(t, p.objects("/snapshots/"), 2)
}

// deleted deletes an object and waits until it is gone.
func (p *place) deleted(obj *v1.PVCBackup) {
	p.Helper()
	require.NoError(p, p.admin.Delete(p.Context(), obj))
	p.gone(obj)
}

func TestABucketEmptiedBehindOurBackIsNeverInitializedAgain(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write(p.claim("data"), "file", "text")
	obj := p.backup("data", "data")
	p.backedUp(obj, "")
	p.empty()

	p.ended(obj, p.again(obj), "Failed")
	require.Equal(t, "RepositoryMissing", obj.Status.LastAttempt.Reason)
	p.failed(obj, "RepositoryMissing")
	require.Empty(t, p.objects("/"))

	p.deleted(obj)
	obj = p.backup("data", "data")
	p.ended(obj, "", "Failed")
	require.Equal(t, "RepositoryMissing", obj.Status.LastAttempt.Reason, "the key that is left tells that there was one")
	require.Contains(t, obj.Status.LastAttempt.Message, p.keySecret("data").Name)
	require.Empty(t, p.objects("/"))
}

// empty removes everything from the test's bucket.
func (p *place) empty() {
	p.Helper()
	dir := filepath.Join(p.s3.Dir, p.bucket)
	require.NoError(p, os.RemoveAll(dir))
	require.NoError(p, os.Mkdir(dir, 0o755))
}

func TestAStoreThatRefusesTheCredentialsIsNeverTakenForEmpty(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write(p.claim("data"), "file", "text")
	p.credentials("not the key")
	obj := p.backup("data", "data")
	p.ended(obj, "", "Failed")
	require.Equal(t, "StoreDenied", obj.Status.LastAttempt.Reason)
	p.failed(obj, "StoreDenied")
	require.Nil(t, p.keySecret("data"), "no key is made on doubt")
	require.Empty(t, p.objects("/"))

	p.credentials(p.s3.SecretKey)
	p.backedUp(obj, p.again(obj))
	p.gate.guard(p.bucket, func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusForbidden)
		return true
	})
	before := p.objects("/")
	p.ended(obj, p.again(obj), "Failed")
	require.Equal(t, "StoreDenied", obj.Status.LastAttempt.Reason)
	require.Equal(t, before, p.objects("/"))
	require.Equal(t, 1, p.events("data")["BackupCompleted"])
	p.gate.guard(p.bucket, nil)
	p.backedUp(obj, p.again(obj))
}

func TestDeletionPolicyRetainLeavesTheBucketAsItIsAndNoMetricsBehind(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write(p.claim("data"), "file", "text")
	obj := p.backup("data", "data")
	p.backedUp(obj, "")
	p.settled()
	require.NotEmpty(t, p.series("data"))
	before := p.objects("/")
	p.deleted(obj)
	require.Equal(t, before, p.objects("/"))
	kittest.Eventually(t, patience, func() error { return isEmpty(p.series("data")) })
	kittest.Eventually(t, patience, func() error { return isEmpty(p.snapshots()) })
	require.Len(t, p.objects("/snapshots/"), 1)
}

func TestDeletionPolicyDeleteRemovesThisObjectsBackupsAndTheRepositoryWhenNobodyElsesRemain(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write(p.claim("data"), "file", "text")
	withDelete := func(b *v1.PVCBackup) { b.Spec.DeletionPolicy = scheduled.Delete }
	first := p.backup("first", "data", withDelete)
	p.backedUp(first, "")
	second := p.backup("second", "data", withDelete)
	p.backedUp(second, "")
	require.Equal(t, first.Status.Repository.ID, second.Status.Repository.ID)
	require.Len(t, p.objects("/snapshots/"), 2)

	p.deleted(first)
	left := p.objects("/snapshots/")
	require.Len(t, left, 1)
	require.Contains(t, left[0], second.Status.LastSuccess.SnapshotID)
	require.NotEmpty(t, p.objects("/config"))

	p.deleted(second)
	require.Empty(t, p.objects("/"))
	p.settled()
}
