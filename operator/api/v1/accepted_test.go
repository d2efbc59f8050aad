package v1_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/pvcbackup/backup/scheduled"
	v1 "example.com/pvcbackup/operator/api/v1"
)

func TestTheManifestOfThreeFieldsIsAcceptedUnchangedAndGetsTheDefaults(t *testing.T) {
	c := strict(t)
	require.NoError(t, c.Create(t.Context(), object(t, `
apiVersion: storage.example.com/v1
kind: PVCBackup
metadata: {name: demo}
spec: {pvcName: data, schedule: "* * * * *", s3Bucket: demo-backups}
`)))
	var got v1.PVCBackup
	require.NoError(t, c.Get(t.Context(), client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: "demo"}, &got))
	yes := true
	want := v1.PVCBackupSpec{PVCName: "data", S3Bucket: "demo-backups", Spec: scheduled.Spec{
		Schedule: "* * * * *", ConcurrencyPolicy: scheduled.Forbid, RunOnCreate: &yes, DeletionPolicy: scheduled.Retain,
	}}
	require.Empty(t, cmp.Diff(want, got.Spec))
	require.Equal(t, "s3://demo-backups", got.BackupSpec().Storage.URL)
	require.Nil(t, got.Spec.Storage, "the spec as a URL is a copy")
}

func TestWhatIsGivenInPartGetsTheOtherDefaults(t *testing.T) {
	c := strict(t)
	obj := backupOf(t, "{"+least+", s3Bucket: abc, encryption: {passwordSecretRef: {name: key}}, snapshot: {}, verify: {}, mover: {}}")
	require.NoError(t, c.Create(t.Context(), obj))
	var got v1.PVCBackup
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(obj), &got))
	one, sixteen := int32(1), int32(16)
	require.Empty(t, cmp.Diff(&scheduled.SecretKeyRef{Name: "key", Key: "password"}, got.Spec.Encryption.PasswordSecretRef))
	require.Empty(t, cmp.Diff(&scheduled.SnapshotPolicy{Keep: &one}, got.Spec.Snapshot))
	require.Empty(t, cmp.Diff(&scheduled.Verify{SampleBlobs: &sixteen}, got.Spec.Verify))
	require.Equal(t, "Restricted", got.Spec.Mover.Privilege)
}

func TestEverySampleIsAcceptedUnderStrictValidation(t *testing.T) {
	dir := filepath.Join("..", "..", "config", "samples")
	files, err := filepath.Glob(filepath.Join(dir, "storage_*.yaml"))
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(files), 4)
	listed, err := os.ReadFile(filepath.Join(dir, "kustomization.yaml"))
	require.NoError(t, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		obj := object(t, string(text))
		obj.SetName("sample-" + obj.GetName())
		require.NoError(t, strict(t).Create(t.Context(), obj), file)
		require.Contains(t, string(listed), filepath.Base(file))
	}
}

func TestStatusAndSpecAreWrittenApart(t *testing.T) {
	c := strict(t)
	obj := backupOf(t, "{"+least+", s3Bucket: abc}")
	obj.Object["status"] = map[string]any{"phase": "Idle"}
	require.NoError(t, c.Create(t.Context(), obj))

	var got v1.PVCBackup
	key := client.ObjectKeyFromObject(obj)
	require.NoError(t, c.Get(t.Context(), key, &got))
	require.Empty(t, got.Status.Phase, "a status in a create is dropped")
	generation := got.Generation

	got.Status.Phase, got.Spec.Schedule = "Idle", "@hourly"
	require.NoError(t, c.Status().Update(t.Context(), &got))
	require.NoError(t, c.Get(t.Context(), key, &got))
	require.Equal(t, "Idle", got.Status.Phase)
	require.Equal(t, "@daily", got.Spec.Schedule, "a write of the status leaves the spec")
	require.Equal(t, generation, got.Generation)

	got.Status.Phase, got.Spec.Schedule = "Failed", "@hourly"
	require.NoError(t, c.Update(t.Context(), &got))
	require.NoError(t, c.Get(t.Context(), key, &got))
	require.Equal(t, "Idle", got.Status.Phase, "a write of the spec leaves the status")
	require.Equal(t, "@hourly", got.Spec.Schedule)
	require.Greater(t, got.Generation, generation)
}

func TestColumnsAnswerWhetherTheDataIsSafe(t *testing.T) {
	c := strict(t)
	obj := backupOf(t, "{"+least+", s3Bucket: abc}")
	require.NoError(t, c.Create(t.Context(), obj))
	var got v1.PVCBackup
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(obj), &got))
	now := metav1.NewTime(time.Now().Add(-time.Hour).Truncate(time.Second))
	next := metav1.NewTime(now.Add(24 * time.Hour))
	got.Status.LastBackup, got.Status.NextBackup, got.Status.Phase = &now, &next, "Idle"
	got.SetConditions([]metav1.Condition{{Type: scheduled.ConditionReady, Status: "True", Reason: "Protected", LastTransitionTime: now}})
	require.NoError(t, c.Status().Update(t.Context(), &got))

	want := map[string]any{"Name": got.Name, "Claim": "data", "Protected": "True", "Reason": "Protected", "Phase": "Idle",
		"Last Backup": "60m", "Next Backup": next.UTC().Format(time.RFC3339)}
	require.Empty(t, cmp.Diff(want, columns(t, "pvcbackups", got.Name)))
}

func TestColumnsOfAPVCRestoreAnswerWhatBecameOfIt(t *testing.T) {
	c := strict(t)
	obj := restoreOf(t, "{source: {pvcBackup: data}, target: {pvcName: new}}")
	require.NoError(t, c.Create(t.Context(), obj))
	var got v1.PVCRestore
	require.NoError(t, c.Get(t.Context(), client.ObjectKeyFromObject(obj), &got))
	got.Status.Phase, got.Status.Files = "Completed", 7
	got.SetConditions([]metav1.Condition{{Type: v1.ConditionSucceeded, Status: "True", Reason: "Restored", LastTransitionTime: metav1.Now()}})
	require.NoError(t, c.Status().Update(t.Context(), &got))

	row := columns(t, "pvcrestores", got.Name)
	delete(row, "Age")
	want := map[string]any{"Name": got.Name, "Target": "new", "Succeeded": "True", "Reason": "Restored", "Phase": "Completed", "Files": int64(7)}
	require.Empty(t, cmp.Diff(want, row))
}

// columns returns what kubectl get shows of an object, by column, without those that -o wide adds.
func columns(t *testing.T, resource, name string) map[string]any {
	t.Helper()
	scheme := newScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	require.NoError(t, metav1.AddMetaToScheme(scheme))
	config := rest.CopyConfig(server.Start(t).Config)
	config.GroupVersion, config.APIPath = &v1.GroupVersion, "/apis"
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	rests, err := rest.RESTClientFor(config)
	require.NoError(t, err)
	var table metav1.Table
	err = rests.Get().Namespace(metav1.NamespaceDefault).Resource(resource).Name(name).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").Do(t.Context()).Into(&table)
	require.NoError(t, err)
	require.Len(t, table.Rows, 1)
	row := map[string]any{}
	for i, column := range table.ColumnDefinitions {
		if column.Priority == 0 {
			row[column.Name] = table.Rows[0].Cells[i]
		}
	}
	return row
}
