package jobmover

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/pvcbackup/backup"
	"example.com/pvcbackup/backup/contract"
)

func TestStartingSaysWhatItWaitsFor(t *testing.T) {
	for name, tc := range map[string]struct {
		change         []func(*corev1.Pod)
		reason, phrase string
	}{
		"not seen by a node": {nil, ReasonPreparing, "not taken up by a node"},
		"unschedulable": {[]func(*corev1.Pod){setCondition(corev1.PodScheduled, corev1.ConditionFalse, "Unschedulable", "0/1 nodes: no CPU")},
			ReasonUnschedulable, "0/1 nodes: no CPU"},
		"image": {[]func(*corev1.Pod){waiting("ImagePullBackOff", `Back-off pulling image "x"`)},
			ReasonImagePull, `Back-off pulling image "x"; check the image's name`},
		"image, first": {[]func(*corev1.Pod){waiting("ErrImagePull", "denied")}, ReasonImagePull, "denied"},
		"password Secret": {[]func(*corev1.Pod){waiting("CreateContainerConfigError", `secret "key" not found`)},
			ReasonSecretMissing, `Secret "key", which holds the repository's password, is missing`},
		"password key": {[]func(*corev1.Pod){waiting("CreateContainerConfigError", `couldn't find key password in Secret ns/key`)},
			ReasonSecretMissing, `Secret "key" has no key "password"`},
		"credentials Secret": {[]func(*corev1.Pod){waiting("CreateContainerConfigError", `secret "creds" not found`)},
			ReasonSecretMissing, `Secret "creds", which holds the store's credentials, is missing`},
		"root image": {[]func(*corev1.Pod){waiting("CreateContainerConfigError", "image will run as root")},
			ReasonCannotStart, "image will run as root"},
		"runtime": {[]func(*corev1.Pod){waiting("CreateContainerError", "no space")}, ReasonCannotStart, "no space"},
		"volumes": {[]func(*corev1.Pod){waiting("ContainerCreating", ""),
			setCondition(corev1.PodReadyToStartContainers, corev1.ConditionFalse, "", "")}, ReasonPreparing, "prepares the volumes"},
		"container": {[]func(*corev1.Pod){waiting("ContainerCreating", ""),
			setCondition(corev1.PodReadyToStartContainers, corev1.ConditionTrue, "", "")}, ReasonPreparing, "prepares the container"},
	} {
		t.Run(name, func(t *testing.T) {
			job := testJob(testTask(), 1)
			got := Observe(testTask(), job, []corev1.Pod{*testPod(job, tc.change...)})
			require.Equal(t, backup.MoverStarting, got.Phase)
			require.Equal(t, tc.reason, got.Reason)
			require.Contains(t, got.Message, tc.phrase)
			require.Equal(t, start, got.Since)
		})
	}
}

func TestEndedMoverOutcomes(t *testing.T) {
	partial := contract.Result{Operation: contract.OperationBackup, Outcome: contract.Partial}
	other := success()
	other.Operation = contract.OperationLookup
	readFailed := contract.Result{Operation: contract.OperationBackup, Outcome: contract.Failed, Reason: contract.ReasonCannotRead, Message: "m"}
	for name, tc := range map[string]struct {
		change  []func(*corev1.Pod)
		outcome contract.Outcome
		reason  string
		retry   bool
		phrase  string
	}{
		"success":                  {[]func(*corev1.Pod){terminated(0, "Completed", message(success()))}, contract.Succeeded, "", false, ""},
		"partial":                  {[]func(*corev1.Pod){terminated(contract.ExitPartial, "Error", message(partial))}, contract.Partial, "", false, ""},
		"its own failure":          {[]func(*corev1.Pod){terminated(1, "Error", message(readFailed))}, contract.Failed, contract.ReasonCannotRead, false, "m"},
		"failed result, exit 0":    {[]func(*corev1.Pod){terminated(0, "Completed", message(readFailed))}, contract.Failed, contract.ReasonCannotRead, false, ""},
		"good result, bad exit":    {[]func(*corev1.Pod){terminated(137, "Error", message(success()))}, contract.Failed, ReasonResultWrong, true, "exit code 137 instead of 0"},
		"partial, exit 0":          {[]func(*corev1.Pod){terminated(0, "Completed", message(partial))}, contract.Failed, ReasonResultWrong, true, "instead of 3"},
		"another operation":        {[]func(*corev1.Pod){terminated(0, "Completed", message(other))}, contract.Failed, ReasonResultWrong, false, `"lookup"`},
		"exit 0 without a result":  {[]func(*corev1.Pod){terminated(0, "Completed", "")}, contract.Failed, ReasonResultLost, true, "exit code 0"},
		"killed":                   {[]func(*corev1.Pod){terminated(137, "Error", "")}, contract.Failed, ReasonResultLost, true, "exit code 137"},
		"out of memory":            {[]func(*corev1.Pod){terminated(137, "OOMKilled", "")}, contract.Failed, ReasonOutOfMemory, false, "raise the memory limit"},
		"evicted":                  {[]func(*corev1.Pod){terminated(137, "Error", ""), podReason("Evicted", "low on memory")}, contract.Failed, ReasonEvicted, true, "low on memory"},
		"evicted before it ran":    {[]func(*corev1.Pod){podFailed, podReason("Evicted", "low on disk")}, contract.Failed, ReasonEvicted, true, "low on disk"},
		"deadline":                 {[]func(*corev1.Pod){terminated(143, "Error", ""), podReason("DeadlineExceeded", "")}, contract.Failed, ReasonDeadline, false, "deadline of 1h0m0s"},
		"deadline, told to stop":   {[]func(*corev1.Pod){terminated(130, "Error", message(interrupted())), podReason("DeadlineExceeded", "")}, contract.Failed, ReasonDeadline, false, "deadline of 1h0m0s"},
		"finished at the deadline": {[]func(*corev1.Pod){terminated(0, "Completed", message(success())), podReason("DeadlineExceeded", "")}, contract.Succeeded, "", false, ""},
		"drained": {[]func(*corev1.Pod){terminated(130, "Error", message(interrupted())),
			setCondition(corev1.DisruptionTarget, corev1.ConditionTrue, "EvictionByEvictionAPI", "Eviction API: evicting")}, contract.Failed, ReasonEvicted, true, "Eviction API: evicting"},
		"deleted":              {[]func(*corev1.Pod){terminated(130, "Error", message(interrupted())), deleted}, contract.Failed, ReasonPodDeleted, true, "somebody deleted"},
		"interrupted, unknown": {[]func(*corev1.Pod){terminated(130, "Error", message(interrupted()))}, contract.Failed, contract.ReasonInterrupted, false, "told to stop"},
		"cannot start":         {[]func(*corev1.Pod){terminated(128, "StartError", "exec: no such file")}, contract.Failed, ReasonCannotStart, false, "exec: no such file"},
		"node lost":            {[]func(*corev1.Pod){podFailed, podReason("NodeLost", "")}, contract.Failed, ReasonResultLost, true, "NodeLost"},
	} {
		t.Run(name, func(t *testing.T) {
			task := testTask()
			task.Deadlines.Run = time.Hour
			job := testJob(task, 1)
			got := Observe(task, job, []corev1.Pod{*testPod(job, tc.change...)})
			require.Equal(t, backup.MoverEnded, got.Phase)
			require.NotNil(t, got.Result)
			require.Equal(t, tc.outcome, got.Result.Outcome)
			require.Equal(t, tc.reason, got.Result.Reason)
			require.Equal(t, tc.retry, got.Result.Retry)
			require.Contains(t, got.Result.Message, tc.phrase)
			require.Equal(t, contract.OperationBackup, got.Result.Operation)
		})
	}
}

func podFailed(pod *corev1.Pod) { pod.Status.Phase = corev1.PodFailed }

func deleted(pod *corev1.Pod) { pod.DeletionTimestamp = &metav1.Time{Time: start} }

func TestMoverEndsThoughAnotherContainerRunsOn(t *testing.T) {
	job := testJob(testTask(), 1)
	pod := testPod(job, terminated(0, "Completed", message(success())))
	pod.Status.Phase = corev1.PodRunning
	pod.Status.ContainerStatuses = append([]corev1.ContainerStatus{{Name: "proxy", State: corev1.ContainerState{
		Running: &corev1.ContainerStateRunning{},
	}}}, pod.Status.ContainerStatuses...)
	got := Observe(testTask(), job, []corev1.Pod{*pod})
	require.Equal(t, backup.MoverEnded, got.Phase)
	require.True(t, got.Result.Good())
}

func TestWhyAMoverWasStoppedIsWaitedFor(t *testing.T) {
	job := testJob(testTask(), 1)
	for name, change := range map[string]func(*corev1.Pod){
		"killed": terminated(137, "Error", ""), "told to stop": terminated(130, "Error", message(interrupted())),
	} {
		pod := testPod(job, change)
		pod.Status.Phase = corev1.PodRunning
		require.Equal(t, backup.MoverRunning, Observe(testTask(), job, []corev1.Pod{*pod}).Phase, name)
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{Name: "proxy", State: corev1.ContainerState{
			Running: &corev1.ContainerStateRunning{},
		}})
		require.Equal(t, backup.MoverEnded, Observe(testTask(), job, []corev1.Pod{*pod}).Phase, name+" beside a proxy")
	}
}

func TestJobWithoutAPod(t *testing.T) {
	task := testTask()
	job := testJob(task, 1)
	require.Equal(t, backup.MoverAbsent, Observe(task, nil, nil).Phase)
	got := Observe(task, job, nil)
	require.Equal(t, backup.MoverStarting, got.Phase)
	require.Equal(t, ReasonNoPod, got.Reason)

	job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Reason: "BackoffLimitExceeded",
		LastTransitionTime: metav1.NewTime(start.Add(time.Minute))}}
	got = Observe(task, job, nil)
	require.Equal(t, backup.MoverEnded, got.Phase)
	require.Equal(t, ReasonResultLost, got.Result.Reason)
	require.True(t, got.Result.Retry)
	require.Equal(t, start.Add(time.Minute), got.Since)
	require.Contains(t, got.Result.Message, "BackoffLimitExceeded")
}

func TestResultIsReadFromAPodWhoseJobIsGone(t *testing.T) {
	job := testJob(testTask(), 1)
	got := Observe(testTask(), nil, []corev1.Pod{*testPod(job, terminated(0, "Completed", message(success())))})
	require.True(t, got.Result.Good())
}

func TestJudge(t *testing.T) {
	deadlines := backup.MoverDeadlines{Start: time.Minute, NoProgress: 10 * time.Minute, Run: time.Hour}
	starting := Observed{Created: start, MoverState: backup.MoverState{Phase: backup.MoverStarting, Reason: ReasonUnschedulable, Message: "no node"}}
	runs := func(changed, read time.Duration) Observed {
		return Observed{
			Created: start, ProgressChanged: start.Add(changed), ProgressRead: start.Add(read),
			MoverState: backup.MoverState{Phase: backup.MoverRunning, Progress: &contract.Progress{Stage: "reading", Bytes: 7}},
		}
	}
	good := success()
	for name, tc := range map[string]struct {
		seen   Observed
		after  time.Duration
		phase  backup.MoverPhase
		reason string
		phrase string
	}{
		"starting in time":        {starting, time.Minute - 1, backup.MoverStarting, "", ""},
		"starting too long":       {starting, time.Minute, backup.MoverEnded, ReasonUnschedulable, "did not start within 1m0s: no node"},
		"running":                 {runs(0, 9*time.Minute), 9 * time.Minute, backup.MoverRunning, "", ""},
		"no progress":             {runs(0, 10*time.Minute), 10 * time.Minute, backup.MoverEnded, ReasonNoProgress, "since reading at 7 bytes"},
		"log not read since":      {runs(0, time.Minute), 30 * time.Minute, backup.MoverRunning, "", ""},
		"log never read":          {Observed{Created: start, MoverState: backup.MoverState{Phase: backup.MoverRunning}}, 30 * time.Minute, backup.MoverRunning, "", ""},
		"the node's time to act":  {runs(time.Hour, time.Hour), time.Hour + nodeGrace - 1, backup.MoverRunning, "", ""},
		"the node does not act":   {runs(time.Hour, time.Hour), time.Hour + nodeGrace, backup.MoverEnded, ReasonDeadline, "its node did not end it"},
		"ended is never judged":   {Observed{Created: start, MoverState: backup.MoverState{Phase: backup.MoverEnded, Result: &good}}, 99 * time.Hour, backup.MoverEnded, "", ""},
		"absent is never judged":  {Observed{MoverState: backup.MoverState{Phase: backup.MoverAbsent}}, 99 * time.Hour, backup.MoverAbsent, "", ""},
		"starting past every one": {starting, 99 * time.Hour, backup.MoverEnded, ReasonUnschedulable, "no node"},
	} {
		t.Run(name, func(t *testing.T) {
			got := Judge(tc.seen, deadlines, start.Add(tc.after))
			require.Equal(t, tc.phase, got.Phase)
			if got.Phase == backup.MoverEnded {
				require.Equal(t, tc.reason, got.Result.Reason)
				require.Contains(t, got.Result.Message, tc.phrase)
			}
			if tc.reason != "" {
				later := Judge(tc.seen, deadlines, start.Add(tc.after+time.Hour))
				require.Equal(t, got.Since, later.Since, "it ended when the deadline passed, whenever that is seen")
				require.False(t, got.Since.After(start.Add(tc.after)))
			}
			if got.Phase != backup.MoverEnded || tc.reason == "" {
				if diff := cmp.Diff(tc.seen.MoverState, got); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
			}
		})
	}
	if got := Judge(starting, backup.MoverDeadlines{}, start.Add(99*time.Hour)); got.Phase != backup.MoverStarting {
		t.Errorf("without deadlines an attempt was given up: %v", got)
	}
}
