package app_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"example.com/pvcbackup/backup"
	"example.com/pvcbackup/backup/restorer/treecmp"
	"example.com/pvcbackup/backup/scheduled"
	v1 "example.com/pvcbackup/operator/api/v1"
	"example.com/pvcbackup/reconcilekit/kittest"
)

// patience is how long a test waits for what takes a few seconds on an idle machine.
const patience = 2 * time.Minute

// never is a schedule that does not fire during a test: what runs is the first backup, and what is asked for.
const never = "0 0 1 1 *"

// place is the namespace and the bucket of one test.
type place struct {
	*testing.T
	*world
	namespace, bucket string
	triggers          int
}

func newPlace(t *testing.T) *place {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	require.NoError(t, shared.admin.Create(t.Context(), namespace))
	p := &place{T: t, world: &shared, namespace: namespace.Name, bucket: "bucket-" + namespace.Name}
	_, err := p.s3.BucketURL(p.bucket)
	require.NoError(t, err)
	p.credentials(p.s3.SecretKey)
	t.Cleanup(func() {
		if t.Failed() {
			p.explain()
		}
	})
	return p
}

// explain shows the objects of a test that failed.
func (p *place) explain() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	out, err := p.kubectl(ctx, "get", "pvcbackups,pvcrestores,jobs,pods,pvc,events", "-n", p.namespace)
	p.Log(out, err)
	out, err = p.kubectl(ctx, "get", "pvcbackups,pvcrestores", "-n", p.namespace, "-o", "yaml")
	p.Log(out, err)
}

func (p *place) object(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: p.namespace, Name: name}
}

func (p *place) create(obj client.Object) {
	p.Helper()
	require.NoError(p, p.admin.Create(p.Context(), obj))
}

// credentials makes or changes the Secret that movers find the store's credentials in.
func (p *place) credentials(secretKey string) {
	p.Helper()
	secret := &corev1.Secret{ObjectMeta: p.object(scheduled.DefaultCredentials), StringData: map[string]string{
		"AWS_ACCESS_KEY_ID": p.s3.AccessKey, "AWS_SECRET_ACCESS_KEY": secretKey,
	}}
	err := p.admin.Create(p.Context(), secret)
	if apierrors.IsAlreadyExists(err) {
		err = p.admin.Update(p.Context(), secret)
	}
	require.NoError(p, err)
}

// claim makes a bound claim and returns the folder that is its volume.
func (p *place) claim(name string) string {
	p.Helper()
	p.create(&corev1.PersistentVolumeClaim{ObjectMeta: p.object(name), Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}})
	return p.folder(name)
}

func (p *place) folder(claim string) (dir string) {
	p.Helper()
	kittest.Eventually(p, patience, func() (err error) {
		dir, err = p.cluster.VolumeDirectory(p.Context(), p.namespace, claim)
		return err
	})
	return dir
}

func (p *place) write(dir, name, text string) {
	p.Helper()
	path := filepath.Join(dir, name)
	require.NoError(p, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(p, os.WriteFile(path, []byte(text), 0o644))
}

// backup makes a PVCBackup of a claim into the test's bucket.
func (p *place) backup(name, claim string, change ...func(*v1.PVCBackup)) *v1.PVCBackup {
	p.Helper()
	obj := &v1.PVCBackup{ObjectMeta: p.object(name), Spec: v1.PVCBackupSpec{PVCName: claim, S3Bucket: p.bucket}}
	// The default keeps one backup of an hour, and a test makes several.
	obj.Spec.Schedule, obj.Spec.Retention = never, &scheduled.Retention{Last: 10}
	for _, f := range change {
		f(obj)
	}
	p.create(obj)
	return obj
}

// await waits until check returns nil for an object.
func (p *place) await(obj client.Object, check func() error) {
	p.Helper()
	kittest.EventuallyObject(p, p.admin, obj, patience, check)
}

// backedUp waits until the newest run of a PVCBackup has ended well, and was of another slot than before.
func (p *place) backedUp(obj *v1.PVCBackup, before string) {
	p.Helper()
	p.ended(obj, before, "Succeeded")
	require.NotNil(p, obj.Status.LastSuccess)
	require.Equal(p, obj.Status.LastAttempt.Slot, obj.Status.LastSuccess.Slot)
	p.is(obj, scheduled.ConditionReady, metav1.ConditionTrue, scheduled.ReasonProtected)
	require.Nil(p, meta.FindStatusCondition(obj.Status.Conditions, scheduled.ConditionReconciling))
}

// ended waits until a run of another slot than before has ended, and requires its outcome.
func (p *place) ended(obj *v1.PVCBackup, before, outcome string) {
	p.Helper()
	p.await(obj, func() error {
		if last := obj.Status.LastAttempt; last == nil || last.Slot == before {
			return errors.New("no run has ended")
		}
		return nil
	})
	require.Equal(p, outcome, obj.Status.LastAttempt.Outcome, obj.Status.LastAttempt.Message)
}

// again asks for another run, and returns the slot of the last one.
func (p *place) again(obj *v1.PVCBackup) (before string) {
	p.Helper()
	if obj.Status.LastAttempt != nil {
		before = obj.Status.LastAttempt.Slot
	}
	p.triggers++
	p.change(obj, func() {
		if obj.Annotations == nil {
			obj.Annotations = map[string]string{}
		}
		obj.Annotations[scheduled.AnnotationTrigger] = fmt.Sprint(p.triggers)
	})
	return before
}

func (p *place) change(obj client.Object, change func()) {
	p.Helper()
	before := obj.DeepCopyObject().(client.Object)
	change()
	require.NoError(p, p.admin.Patch(p.Context(), obj, client.MergeFrom(before)))
}

// failed waits until Ready is False for that reason.
func (p *place) failed(obj *v1.PVCBackup, reason string) {
	p.Helper()
	p.await(obj, func() error {
		return conditionIs(obj.Status.Conditions, scheduled.ConditionReady, metav1.ConditionFalse, reason)
	})
}

func (p *place) is(obj *v1.PVCBackup, kind string, status metav1.ConditionStatus, reason string) {
	p.Helper()
	p.await(obj, func() error { return conditionIs(obj.Status.Conditions, kind, status, reason) })
}

func conditionIs(conditions []metav1.Condition, kind string, status metav1.ConditionStatus, reason string) error {
	c := meta.FindStatusCondition(conditions, kind)
	if c == nil || c.Status != status || c.Reason != reason {
		return fmt.Errorf("%s is not %s for the reason %s: %+v", kind, status, reason, c)
	}
	return nil
}

// settled waits until nothing is left of an object's runs but the VolumeSnapshots for fast restores.
func (p *place) settled() {
	p.Helper()
	kittest.Eventually(p, patience, func() error {
		var jobs batchv1.JobList
		var pods corev1.PodList
		var claims corev1.PersistentVolumeClaimList
		in := client.InNamespace(p.namespace)
		ours := client.MatchingLabels{backup.LabelRole: string(backup.RoleStage)}
		if err := errors.Join(p.admin.List(p.Context(), &jobs, in), p.admin.List(p.Context(), &pods, in),
			p.admin.List(p.Context(), &claims, in, ours)); err != nil {
			return err
		}
		if len(jobs.Items)+len(pods.Items)+len(claims.Items) > 0 {
			return fmt.Errorf("%d Jobs, %d Pods and %d claims are left", len(jobs.Items), len(pods.Items), len(claims.Items))
		}
		return nil
	})
}

// restored restores into a new claim and requires that it equals the folder.
func (p *place) restored(obj *v1.PVCRestore, want string) {
	p.Helper()
	obj.ObjectMeta = p.object(obj.Name)
	obj.Spec.Target = v1.RestoreTarget{PVCName: obj.Name + "-target", Create: &v1.NewClaim{Size: resource.MustParse("1Gi")}}
	p.create(obj)
	p.await(obj, func() error {
		if obj.Status.Completed == nil {
			return errors.New("the restore has not ended")
		}
		return nil
	})
	require.NoError(p, conditionIs(obj.Status.Conditions, v1.ConditionSucceeded, metav1.ConditionTrue, "Restored"))
	differences, err := treecmp.Compare(want, p.folder(obj.Spec.Target.PVCName), treecmp.Options{Owners: true})
	require.NoError(p, err)
	require.Empty(p, differences)
}

func restoreOf(name, backup string) *v1.PVCRestore {
	return &v1.PVCRestore{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1.PVCRestoreSpec{Source: v1.RestoreSource{PVCBackup: backup}}}
}

// keySecret is the generated Secret of a claim that has one repository; nil when there is none.
func (p *place) keySecret(claim string) (found *corev1.Secret) {
	p.Helper()
	var secrets corev1.SecretList
	generated := client.MatchingLabels{backup.LabelManagedBy: backup.ManagedBy}
	require.NoError(p, p.admin.List(p.Context(), &secrets, client.InNamespace(p.namespace), generated))
	for i := range secrets.Items {
		if strings.HasPrefix(secrets.Items[i].Name, claim+"-key-") {
			require.Nil(p, found, "a claim with one repository has one key")
			found = &secrets.Items[i]
		}
	}
	return found
}

// objects returns the objects of the test's bucket with that in their key, sorted.
func (p *place) objects(part string) []string {
	p.Helper()
	return files(p, filepath.Join(p.s3.Dir, p.bucket), part)
}

// files returns the files below a folder with that in their path, sorted.
func files(t require.TestingT, root, part string) []string {
	var found []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it went while we looked
		}
		rel, _ := filepath.Rel(root, path)
		if err == nil && entry.Type().IsRegular() && strings.Contains("/"+rel, part) && !strings.HasPrefix(rel, ".") {
			found = append(found, rel)
		}
		return err
	})
	require.NoError(t, err)
	slices.Sort(found)
	return found
}

// mover waits for the Pod of the mover that runs in the test's namespace.
func (p *place) mover() *corev1.Pod {
	p.Helper()
	var pods corev1.PodList
	kittest.Eventually(p, patience, func() error {
		if err := p.admin.List(p.Context(), &pods, client.InNamespace(p.namespace), client.MatchingLabels{backup.LabelRole: string(backup.RoleBackup)}); err != nil {
			return err
		}
		pods.Items = slices.DeleteFunc(pods.Items, func(pod corev1.Pod) bool { return pod.Status.Phase != corev1.PodRunning })
		if len(pods.Items) != 1 {
			return fmt.Errorf("%d movers run", len(pods.Items))
		}
		return nil
	})
	return &pods.Items[0]
}

// events returns how often each reason was told of an object.
func (p *place) events(name string) map[string]int {
	p.Helper()
	var list eventsv1.EventList
	require.NoError(p, p.admin.List(p.Context(), &list, client.InNamespace(p.namespace)))
	told := map[string]int{}
	for _, event := range list.Items {
		if event.Regarding.Name != name {
			continue
		}
		told[event.Reason]++
		if event.Series != nil {
			told[event.Reason] += int(event.Series.Count) - 1
		}
	}
	return told
}
