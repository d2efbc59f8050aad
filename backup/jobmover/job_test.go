package jobmover

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/pvcbackup/backup"
	"example.com/pvcbackup/backup/contract"
)

func ptr[T any](v T) *T { return &v }

func TestJobRunsOnePodOnceAndKeepsItsMessage(t *testing.T) {
	task := testTask()
	task.Deadlines.Run = 90*time.Second + 1
	job, err := BuildJob(task, 2, Options{Image: "image"})
	require.NoError(t, err)
	want := batchv1.JobSpec{
		Parallelism: ptr(int32(1)), Completions: ptr(int32(1)), BackoffLimit: ptr(int32(0)),
		PodReplacementPolicy: ptr(batchv1.Failed), Template: job.Spec.Template,
	}
	if diff := cmp.Diff(want, job.Spec); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	pod := job.Spec.Template
	if diff := cmp.Diff([]string{Finalizer}, pod.Finalizers); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	require.Equal(t, corev1.RestartPolicyNever, pod.Spec.RestartPolicy)
	require.Equal(t, int64(91), *pod.Spec.ActiveDeadlineSeconds)
	require.Equal(t, corev1.TerminationMessageReadFile, pod.Spec.Containers[0].TerminationMessagePolicy)
	require.Equal(t, contract.DefaultResultFile, pod.Spec.Containers[0].TerminationMessagePath)
}

func TestJobAndPodCarryOwnerAndLabels(t *testing.T) {
	job := testJob(testTask(), 2)
	want := map[string]string{
		backup.LabelManagedBy: backup.ManagedBy, backup.LabelOwnerUID: "uid-1", backup.LabelRole: "backup",
		backup.LabelSlot: "20260102t030000z-scheduled", backup.LabelAttempt: "2",
	}
	for name, got := range map[string]map[string]string{"job": job.Labels, "pod": job.Spec.Template.Labels} {
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
	if diff := cmp.Diff([]metav1.OwnerReference{testTask().Owner.Reference()}, job.OwnerReferences); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	require.NotEqual(t, job.Name, testJob(testTask(), 1).Name)
}

func TestSecretsAreOnlyReferredTo(t *testing.T) {
	container := testJob(testTask(), 1).Spec.Template.Spec.Containers[0]
	wantFrom := []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: "creds"}, Optional: ptr(true),
	}}}
	if diff := cmp.Diff(wantFrom, container.EnvFrom); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	want := &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: "key"}, Key: contract.PasswordKey,
	}}
	if diff := cmp.Diff(want, variable(t, container, contract.EnvPassword).ValueFrom); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func variable(t *testing.T, c corev1.Container, name string) corev1.EnvVar {
	t.Helper()
	for _, v := range c.Env {
		if v.Name == name {
			return v
		}
	}
	t.Fatalf("the container has no variable %s", name)
	return corev1.EnvVar{}
}

func TestDollarsReachTheMoverUnexpanded(t *testing.T) {
	task := testTask()
	task.Repository = "s3://bucket/$(PVCBACKUP_PASSWORD)"
	task.Request.Backup.Tags = []string{"$(PVCBACKUP_PASSWORD)", "$$"}
	job, err := BuildJob(task, 1, Options{Image: "image", Args: []string{"mover", "$(X)"}})
	require.NoError(t, err)
	container := job.Spec.Template.Spec.Containers[0]
	require.Equal(t, "s3://bucket/$$(PVCBACKUP_PASSWORD)", variable(t, container, contract.EnvRepository).Value)
	require.Contains(t, variable(t, container, contract.EnvRequest).Value, `["$$(PVCBACKUP_PASSWORD)","$$$$"]`)
	require.Equal(t, []string{"mover", "$$(X)"}, container.Args)
}

func TestSourceIsReadOnlyTwice(t *testing.T) {
	task := testTask()
	task.Volumes = backup.Volumes{Source: "s", Target: "t", Destination: "d"}
	spec := testJob(task, 1).Spec.Template.Spec
	got := map[string][2]bool{}
	for i, volume := range spec.Volumes {
		if claim := volume.PersistentVolumeClaim; claim != nil {
			got[claim.ClaimName+" "+spec.Containers[0].VolumeMounts[i].MountPath] = [2]bool{claim.ReadOnly, spec.Containers[0].VolumeMounts[i].ReadOnly}
		}
	}
	want := map[string][2]bool{
		"s " + backup.SourcePath: {true, true}, "t " + backup.TargetPath: {false, false}, "d " + backup.DestinationPath: {false, false},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for name, value := range map[string]string{
		contract.EnvSource: backup.SourcePath, contract.EnvTarget: backup.TargetPath, contract.EnvDestination: backup.DestinationPath,
	} {
		require.Equal(t, value, variable(t, spec.Containers[0], name).Value)
	}
}

func TestNoPodEverHasAnFSGroup(t *testing.T) {
	for _, privilege := range []backup.Privilege{"", backup.Restricted, backup.Baseline} {
		for _, role := range []backup.Role{backup.RoleBackup, backup.RoleRestore} {
			task := testTask()
			task.Pod.Privilege, task.Role = privilege, role
			require.Nil(t, testJob(task, 1).Spec.Template.Spec.SecurityContext.FSGroup)
		}
	}
}

func TestTokenIsMountedOnlyForANamedServiceAccount(t *testing.T) {
	task := testTask()
	require.False(t, *testJob(task, 1).Spec.Template.Spec.AutomountServiceAccountToken)
	task.Pod.ServiceAccountName = "writer"
	require.True(t, *testJob(task, 1).Spec.Template.Spec.AutomountServiceAccountToken)
}

func TestMemoryLimitReachesTheCollector(t *testing.T) {
	task := testTask()
	task.Pod.Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1000")}
	container := testJob(task, 1).Spec.Template.Spec.Containers[0]
	require.Equal(t, "900", variable(t, container, "GOMEMLIMIT").Value)
	require.Empty(t, container.Resources.Requests)
}

func TestBuildJobRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*backup.Task, *Options)
		want   string
	}{
		"no image":            {func(_ *backup.Task, o *Options) { o.Image = "" }, "set Options.Image"},
		"no owner":            {func(t *backup.Task, _ *Options) { t.Owner.UID = "" }, "lacks its name, namespace or UID"},
		"a slot for no label": {func(t *backup.Task, _ *Options) { t.Slot = "A B" }, "must be a DNS label"},
		"no repository":       {func(t *backup.Task, _ *Options) { t.Repository = "" }, "repository's URL is empty"},
		"credentials in URL":  {func(t *backup.Task, _ *Options) { t.Repository = "s3://id:hush@b" }, "holds credentials"},
		"restricted root":     {func(t *backup.Task, _ *Options) { t.Pod.RunAsUser = ptr(int64(0)) }, "cannot run as uid 0"},
		"unknown privilege":   {func(t *backup.Task, _ *Options) { t.Pod.Privilege = "Root" }, `privilege "Root" is not known`},
		"no source":           {func(t *backup.Task, _ *Options) { t.Volumes.Source = "" }, "names no source claim"},
		"no target": {func(t *backup.Task, _ *Options) {
			t.Request = contract.Request{Operation: contract.OperationRestore, Restore: &contract.Restore{}}
		}, "names no target claim"},
		"a broken request": {func(t *backup.Task, _ *Options) { t.Request.Backup = nil }, "the request cannot be encoded"},
	} {
		t.Run(name, func(t *testing.T) {
			task, o := testTask(), Options{Image: "image"}
			tc.change(&task, &o)
			_, err := BuildJob(task, 1, o)
			require.ErrorIs(t, err, ErrInvalidTask)
			require.ErrorContains(t, err, tc.want)
			require.False(t, strings.Contains(err.Error(), "hush"), "the error tells the credentials")
			var typed *Error
			require.ErrorAs(t, err, &typed)
			require.True(t, typed.Terminal())
			require.Equal(t, "InvalidTask", typed.Reason())
		})
	}
	_, err := BuildJob(testTask(), 0, Options{Image: "image"})
	require.ErrorIs(t, err, ErrInvalidTask)
}
