package v1_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// least is what every PVCBackup needs besides a store.
const least = "pvcName: data, schedule: '@daily'"

func TestContradictionsInAPVCBackupAreRefusedWithAMessageThatNamesTheField(t *testing.T) {
	refused := map[string]struct{ spec, message string }{
		"no store":                 {"{" + least + "}", "set exactly one of s3Bucket and storage.url"},
		"storage without url":      {"{" + least + ", storage: {prefix: a}}", "set exactly one of s3Bucket and storage.url"},
		"two stores":               {"{" + least + ", s3Bucket: abc, storage: {url: 's3://abc'}}", "set exactly one of s3Bucket and storage.url"},
		"volume without file":      {"{" + least + ", storage: {url: 's3://abc', volume: nas}}", "storage.volume and a file: storage.url belong together"},
		"volume with s3Bucket":     {"{" + least + ", s3Bucket: abc, storage: {volume: nas}}", "storage.volume and a file: storage.url belong together"},
		"file without volume":      {"{" + least + ", storage: {url: 'file:///pvcbackup/destination'}}", "storage.volume and a file: storage.url belong together"},
		"file elsewhere":           {"{" + least + ", storage: {url: 'file:///tmp', volume: nas}}", "file:///pvcbackup/destination with storage.volume"},
		"file beside":              {"{" + least + ", storage: {url: 'file:///pvcbackup/destination2', volume: nas}}", "file:///pvcbackup/destination with storage.volume"},
		"mem":                      {"{" + least + ", storage: {url: 'mem://abc'}}", "url must be s3://, gs:// or azblob://"},
		"user in url":              {"{" + least + ", storage: {url: 's3://key@abc'}}", "without user or password"},
		"user and password in url": {"{" + least + ", storage: {url: 's3://key:secret@abc/x'}}", "without user or password"},
		"url without bucket":       {"{" + least + ", storage: {url: 's3://'}}", "with a bucket"},
		"prefix with ..":           {"{" + least + ", s3Bucket: abc, storage: {prefix: a/../b}}", "prefix must not contain . or .. as a part"},
		"prefix with .":            {"{" + least + ", s3Bucket: abc, storage: {prefix: ./b}}", "prefix must not contain . or .. as a part"},
		"prefix that is absolute":  {"{" + least + ", s3Bucket: abc, storage: {prefix: /b}}", "spec.storage.prefix"},
		"prefix that ends in /":    {"{" + least + ", s3Bucket: abc, storage: {prefix: b/}}", "spec.storage.prefix"},
		"retention without rules":  {"{" + least + ", s3Bucket: abc, retention: {}}", "spec.retention"},
		"negative rule":            {"{" + least + ", s3Bucket: abc, retention: {daily: -1}}", "spec.retention.daily"},
		"within that is no time":   {"{" + least + ", s3Bucket: abc, retention: {within: soon}}", "spec.retention.within"},
		"negative jitter":          {"{" + least + ", s3Bucket: abc, jitter: -5m}", "jitter must not be negative"},
		"no claim":                 {"{schedule: '@daily', s3Bucket: abc}", "spec.pvcName: Required value"},
		"empty claim":              {"{pvcName: '', schedule: '@daily', s3Bucket: abc}", "spec.pvcName"},
		"no schedule":              {"{pvcName: data, s3Bucket: abc}", "spec.schedule: Required value"},
		"empty schedule":           {"{pvcName: data, schedule: '', s3Bucket: abc}", "spec.schedule"},
		"bucket in capitals":       {"{" + least + ", s3Bucket: ABC}", "spec.s3Bucket"},
		"bucket too short":         {"{" + least + ", s3Bucket: ab}", "spec.s3Bucket"},
		"starting deadline zero":   {"{" + least + ", s3Bucket: abc, startingDeadlineSeconds: 0}", "spec.startingDeadlineSeconds"},
		"Allow":                    {"{" + least + ", s3Bucket: abc, concurrencyPolicy: Allow}", "supported values: \"Forbid\", \"Replace\""},
		"unknown deletionPolicy":   {"{" + least + ", s3Bucket: abc, deletionPolicy: Orphan}", "supported values: \"Retain\", \"Delete\""},
		"unknown privilege":        {"{" + least + ", s3Bucket: abc, mover: {privilege: Root}}", "supported values: \"Restricted\", \"Baseline\""},
		"root as restricted user":  {"{" + least + ", s3Bucket: abc, mover: {runAsUser: 0}}", "spec.mover.runAsUser"},
		"negative snapshot.keep":   {"{" + least + ", s3Bucket: abc, snapshot: {keep: -1}}", "spec.snapshot.keep"},
		"negative sample":          {"{" + least + ", s3Bucket: abc, verify: {sampleBlobs: -1}}", "spec.verify.sampleBlobs"},
		"secret without name":      {"{" + least + ", s3Bucket: abc, storage: {credentialsSecretRef: {}}}", "spec.storage.credentialsSecretRef.name: Required value"},
		"unknown field":            {"{" + least + ", s3Bucket: abc, s3bucket: abc}", "unknown field \"spec.s3bucket\""},
		"unknown nested field":     {"{" + least + ", s3Bucket: abc, mover: {hostNetwork: true}}", "unknown field \"spec.mover.hostNetwork\""},
	}
	for name, c := range refused {
		t.Run(name, func(t *testing.T) { requireRefused(t, backupOf(t, c.spec), c.message) })
	}
}

func TestContradictionsInAPVCRestoreAreRefusedWithAMessageThatNamesTheField(t *testing.T) {
	const target = ", target: {pvcName: new}"
	const password = "encryption: {passwordSecretRef: {name: key}}"
	refused := map[string]struct{ spec, message string }{
		"no source":               {"{source: {}" + target + "}", "set exactly one of source.pvcBackup and source.storage"},
		"source missing":          {"{target: {pvcName: new}}", "spec.source: Required value"},
		"namespace of a store":    {"{source: {namespace: a, storage: {url: 's3://abc'}, " + password + "}" + target + "}", "source.namespace is where source.pvcBackup is"},
		"two sources":             {"{source: {pvcBackup: data, storage: {url: 's3://abc'}, " + password + "}" + target + "}", "set exactly one of source.pvcBackup and source.storage"},
		"no password":             {"{source: {storage: {url: 's3://abc'}}" + target + "}", "source.storage needs source.encryption.passwordSecretRef"},
		"empty encryption":        {"{source: {storage: {url: 's3://abc'}, encryption: {}}" + target + "}", "source.encryption.passwordSecretRef is required"},
		"no url":                  {"{source: {storage: {prefix: a}, " + password + "}" + target + "}", "source.storage.url is required"},
		"volume without file":     {"{source: {storage: {url: 's3://abc', volume: nas}, " + password + "}" + target + "}", "storage.volume and a file: storage.url belong together"},
		"file without volume":     {"{source: {storage: {url: 'file:///pvcbackup/destination'}, " + password + "}" + target + "}", "storage.volume and a file: storage.url belong together"},
		"mem":                     {"{source: {storage: {url: 'mem://abc'}, " + password + "}" + target + "}", "url must be s3://, gs:// or azblob://"},
		"host of a PVCBackup":     {"{source: {pvcBackup: data, host: a}" + target + "}", "source.pvcBackup says itself which password, host, path and tags"},
		"path of a PVCBackup":     {"{source: {pvcBackup: data, path: /a}" + target + "}", "source.pvcBackup says itself which password, host, path and tags"},
		"tags of a PVCBackup":     {"{source: {pvcBackup: data, tags: [a]}" + target + "}", "source.pvcBackup says itself which password, host, path and tags"},
		"password of a PVCBackup": {"{source: {pvcBackup: data, " + password + "}" + target + "}", "source.pvcBackup says itself which password, host, path and tags"},
		"id and time":             {"{source: {pvcBackup: data}, snapshotID: 0123abcd, asOf: '2026-01-02T03:04:05Z'" + target + "}", "set at most one of snapshotID, asOf and offset"},
		"time and offset":         {"{source: {pvcBackup: data}, asOf: '2026-01-02T03:04:05Z', offset: 1" + target + "}", "set at most one of snapshotID, asOf and offset"},
		"id and offset zero":      {"{source: {pvcBackup: data}, snapshotID: 0123abcd, offset: 0" + target + "}", "set at most one of snapshotID, asOf and offset"},
		"id that is none":         {"{source: {pvcBackup: data}, snapshotID: latest" + target + "}", "spec.snapshotID"},
		"time that is none":       {"{source: {pvcBackup: data}, asOf: yesterday" + target + "}", "spec.asOf"},
		"negative offset":         {"{source: {pvcBackup: data}, offset: -1" + target + "}", "spec.offset"},
		"no target":               {"{source: {pvcBackup: data}}", "spec.target: Required value"},
		"target without claim":    {"{source: {pvcBackup: data}, target: {}}", "spec.target.pvcName: Required value"},
		"claim without size":      {"{source: {pvcBackup: data}, target: {pvcName: new, create: {}}}", "spec.target.create.size: Required value"},
		"unknown overwrite":       {"{source: {pvcBackup: data}, target: {pvcName: new, overwrite: Maybe}}", "supported values: \"IfChanged\", \"Always\", \"Never\""},
		"unknown field":           {"{source: {pvcBackup: data}, target: {pvcName: new, size: 1Gi}}", "unknown field \"spec.target.size\""},
	}
	for name, c := range refused {
		t.Run(name, func(t *testing.T) { requireRefused(t, restoreOf(t, c.spec), c.message) })
	}
}

// requireRefused requires that an object is refused, and would not have been but for what the message says.
func requireRefused(t *testing.T, obj *unstructured.Unstructured, message string) {
	t.Helper()
	err := strict(t).Create(t.Context(), obj)
	require.Error(t, err)
	require.True(t, apierrors.IsInvalid(err) || apierrors.IsBadRequest(err), "%v", err)
	require.Contains(t, err.Error(), message)
	require.NotContains(t, err.Error(), "s3://key", "what may be a password is not repeated")
}

func TestWhatIsNotContradictoryIsAccepted(t *testing.T) {
	for name, spec := range map[string]string{
		"s3Bucket with a prefix":       "{" + least + ", s3Bucket: abc, storage: {prefix: a/..b/c.d}}",
		"url with parameters":          "{" + least + ", storage: {url: 's3://abc/sub?endpoint=http://127.0.0.1:9000&region=eu-1'}}",
		"gs":                           "{" + least + ", storage: {url: 'gs://abc'}}",
		"azblob":                       "{" + least + ", storage: {url: 'azblob://abc'}}",
		"file with volume":             "{" + least + ", storage: {url: 'file:///pvcbackup/destination', volume: nas}}",
		"file in a folder of volume":   "{" + least + ", storage: {url: 'file:///pvcbackup/destination/sub', volume: nas}}",
		"jitter of zero":               "{" + least + ", s3Bucket: abc, jitter: 0s}",
		"a schedule that never parses": "{pvcName: data, schedule: 'every now and then', s3Bucket: abc}",
	} {
		t.Run(name, func(t *testing.T) { require.NoError(t, strict(t).Create(t.Context(), backupOf(t, spec))) })
	}
	for name, spec := range map[string]string{
		"newest of a PVCBackup": "{source: {pvcBackup: data}, target: {pvcName: new}}",
		"offset":                "{source: {pvcBackup: data}, offset: 2, target: {pvcName: new, create: {size: 1Gi}}}",
		"from a volume": "{source: {storage: {url: 'file:///pvcbackup/destination', volume: nas}, " +
			"encryption: {passwordSecretRef: {name: key}}, host: a, tags: [x]}, target: {pvcName: new}}",
	} {
		t.Run(name, func(t *testing.T) { require.NoError(t, strict(t).Create(t.Context(), restoreOf(t, spec))) })
	}
}

func TestTheClaimOfAPVCBackupCannotChangeAndAllElseCan(t *testing.T) {
	obj := backupOf(t, "{"+least+", s3Bucket: abc}")
	require.NoError(t, strict(t).Create(t.Context(), obj))
	requirePatchRefused(t, obj, "spec: {pvcName: other}", "pvcName cannot change: create another PVCBackup for the other claim")
	patch(t, obj, "spec: {schedule: '@hourly', s3Bucket: null, storage: {url: 'gs://abc'}, deletionPolicy: Delete, suspend: true}")
}

func TestAPVCRestoreCannotChange(t *testing.T) {
	obj := restoreOf(t, "{source: {pvcBackup: data}, target: {pvcName: new}}")
	require.NoError(t, strict(t).Create(t.Context(), obj))
	for _, change := range []string{
		"spec: {target: {pvcName: other}}", "spec: {source: {pvcBackup: other}}", "spec: {offset: 1}", "spec: {allowAbsent: true}",
	} {
		requirePatchRefused(t, obj, change, "a PVCRestore cannot change: create another one")
	}
	patch(t, obj, "metadata: {labels: {a: b}}")
}

func patch(t *testing.T, obj *unstructured.Unstructured, change string) {
	t.Helper()
	require.NoError(t, tryPatch(t, obj, change))
}

func requirePatchRefused(t *testing.T, obj *unstructured.Unstructured, change, message string) {
	t.Helper()
	require.ErrorContains(t, tryPatch(t, obj, change), message)
}

func tryPatch(t *testing.T, obj *unstructured.Unstructured, change string) error {
	t.Helper()
	body, err := yaml.YAMLToJSON([]byte(strings.TrimSpace(change)))
	require.NoError(t, err)
	return strict(t).Patch(t.Context(), obj.DeepCopy(), client.RawPatch("application/merge-patch+json", body))
}
