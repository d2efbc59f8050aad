package devkubelet

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"

	"example.com/pvcbackup/reconcilekit/kittest"
)

var server = kittest.NewAPIServer(kittest.APIServerOptions{WithoutVolumeSnapshots: true})

func TestMain(m *testing.M) { os.Exit(server.Main(m)) }

func cluster(t *testing.T) (kubernetes.Interface, string) {
	t.Helper()
	running := server.Start(t)
	client, err := kubernetes.NewForConfig(running.Config)
	require.NoError(t, err)
	return client, running.Namespace(t)
}

func startKubelet(t *testing.T, client kubernetes.Interface, node string) *Kubelet {
	t.Helper()
	k, err := Start(t.Context(), client, Options{
		Node: node, Dir: t.TempDir(), Images: map[string][]string{"shell": {"/bin/sh", "-c"}, "none": {}}, Retry: 20 * time.Millisecond,
		Log: t.Logf,
	})
	require.NoError(t, err)
	t.Cleanup(k.Stop)
	return k
}

func nodeName(t *testing.T) string {
	return "node-" + strings.ToLower(strings.NewReplacer("/", "-", "_", "-").Replace(t.Name()))[4:min(len(t.Name()), 50)]
}

func makePod(t *testing.T, client kubernetes.Interface, namespace, script string, change ...func(*corev1.Pod)) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "pod"},
		Spec: corev1.PodSpec{
			NodeName: nodeName(t), RestartPolicy: corev1.RestartPolicyNever,
			Containers: []corev1.Container{{Name: "main", Image: "shell", Args: []string{script}, TerminationMessagePath: "/dev/termination-log"}},
		},
	}
	for _, f := range change {
		f(pod)
	}
	pod, err := client.CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{})
	require.NoError(t, err)
	return pod
}

// until waits until the Pod is as wanted.
func until(t *testing.T, client kubernetes.Interface, pod *corev1.Pod, wanted func(*corev1.Pod) bool) *corev1.Pod {
	t.Helper()
	var got *corev1.Pod
	require.Eventually(t, func() bool {
		var err error
		got, err = client.CoreV1().Pods(pod.Namespace).Get(t.Context(), pod.Name, metav1.GetOptions{})
		require.NoError(t, err)
		return wanted(got)
	}, 20*time.Second, 20*time.Millisecond, "the pod's status is %s", lazy(func() string { return fmt.Sprintf("%+v", got.Status) }))
	return got
}

type lazy func() string

func (l lazy) String() string { return l() }

func phase(p corev1.PodPhase) func(*corev1.Pod) bool {
	return func(pod *corev1.Pod) bool { return pod.Status.Phase == p }
}

func waitingReason(reason string) func(*corev1.Pod) bool {
	return func(pod *corev1.Pod) bool {
		return len(pod.Status.ContainerStatuses) > 0 && pod.Status.ContainerStatuses[0].State.Waiting != nil &&
			pod.Status.ContainerStatuses[0].State.Waiting.Reason == reason
	}
}

func end(pod *corev1.Pod) corev1.ContainerStateTerminated {
	if len(pod.Status.ContainerStatuses) == 0 || pod.Status.ContainerStatuses[0].State.Terminated == nil {
		return corev1.ContainerStateTerminated{}
	}
	return *pod.Status.ContainerStatuses[0].State.Terminated
}

func TestPodRunsToItsEndWithItsMessage(t *testing.T) {
	client, namespace := cluster(t)
	startKubelet(t, client, nodeName(t))
	pod := makePod(t, client, namespace, `echo hello; printf '{"x":1}' > $PVCBACKUP_RESULT_FILE; exit 3`)
	got := until(t, client, pod, phase(corev1.PodFailed))
	require.Equal(t, int32(3), end(got).ExitCode)
	require.Equal(t, "Error", end(got).Reason)
	require.Equal(t, `{"x":1}`, end(got).Message)
	finished := end(got).FinishedAt
	require.False(t, finished.IsZero())
	require.NotNil(t, got.Status.StartTime)
}

func TestEnvironmentAndVolumesReachTheProcess(t *testing.T) {
	client, namespace := cluster(t)
	directory := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(directory, "file"), []byte("content"), 0o600))
	makeClaim(t, client, namespace, directory)
	_, err := client.CoreV1().Secrets(namespace).Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "all", Namespace: namespace}, Data: map[string][]byte{"FROM_ALL": []byte("from all"), "OWN": []byte("no")},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	startKubelet(t, client, nodeName(t))
	yes := true
	pod := makePod(t, client, namespace, `
		test "$FROM_ALL" = "from all" && test "$OWN" = yes && test "$NAME" = pod && test "$BOTH" = 'yes/$(X)' || exit 10
		test "$(cat $SOURCE/file)" = content || exit 11
		test "$(cat "${URL#file://}")" = content || exit 12
		echo x > "$SCRATCH/x" && echo x > "$TMPDIR/y" || exit 13
	`, func(pod *corev1.Pod) {
		c := &pod.Spec.Containers[0]
		c.EnvFrom = []corev1.EnvFromSource{
			{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "all"}}},
			{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "none"}, Optional: &yes}},
		}
		c.Env = []corev1.EnvVar{
			{Name: "OWN", Value: "yes"}, {Name: "BOTH", Value: "$(OWN)/$$(X)"}, {Name: "SOURCE", Value: "/mnt/source"},
			{Name: "URL", Value: "file:///mnt/source/file"}, {Name: "SCRATCH", Value: "/scratch"},
			{Name: "NAME", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.name"}}},
		}
		c.VolumeMounts = []corev1.VolumeMount{
			{Name: "claim", MountPath: "/mnt/source"}, {Name: "scratch", MountPath: "/scratch"}, {Name: "scratch", MountPath: "/tmp", SubPath: "tmp"},
		}
		pod.Spec.Volumes = []corev1.Volume{
			{Name: "claim", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "claim"}}},
			{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		}
	})
	got := until(t, client, pod, func(pod *corev1.Pod) bool { return hasEnded(pod) })
	require.Equal(t, int32(0), end(got).ExitCode, "%+v", got.Status)
	require.Equal(t, corev1.PodSucceeded, got.Status.Phase)
}

// makeClaim makes a bound claim of a folder.
func makeClaim(t *testing.T, client kubernetes.Interface, namespace, directory string) {
	t.Helper()
	volume, err := client.CoreV1().PersistentVolumes().Create(t.Context(), persistentVolume(nodeName(t), directory), metav1.CreateOptions{})
	require.NoError(t, err)
	claim := persistentVolumeClaim(namespace, volume.Name)
	claim, err = client.CoreV1().PersistentVolumeClaims(namespace).Create(t.Context(), claim, metav1.CreateOptions{})
	require.NoError(t, err)
	claim.Status.Phase = corev1.ClaimBound
	_, err = client.CoreV1().PersistentVolumeClaims(namespace).UpdateStatus(t.Context(), claim, metav1.UpdateOptions{})
	require.NoError(t, err)
}

func TestMissingSecretIsWaitedFor(t *testing.T) {
	client, namespace := cluster(t)
	startKubelet(t, client, nodeName(t))
	pod := makePod(t, client, namespace, `test "$PASSWORD" = hush`, func(pod *corev1.Pod) {
		pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "PASSWORD", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: "key"}, Key: "password",
		}}}}
	})
	got := until(t, client, pod, waitingReason("CreateContainerConfigError"))
	require.Equal(t, `secret "key" not found`, got.Status.ContainerStatuses[0].State.Waiting.Message)

	secret, err := client.CoreV1().Secrets(namespace).Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "key", Namespace: namespace}, Data: map[string][]byte{"other": []byte("x")},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	until(t, client, pod, func(pod *corev1.Pod) bool {
		return strings.Contains(fmt.Sprint(pod.Status.ContainerStatuses), "couldn't find key password in Secret "+namespace+"/key")
	})
	secret.Data["password"] = []byte("hush")
	_, err = client.CoreV1().Secrets(namespace).Update(t.Context(), secret, metav1.UpdateOptions{})
	require.NoError(t, err)
	until(t, client, pod, phase(corev1.PodSucceeded))
}

func TestUnknownImageIsNeverStarted(t *testing.T) {
	client, namespace := cluster(t)
	startKubelet(t, client, nodeName(t))
	pod := makePod(t, client, namespace, "true", func(pod *corev1.Pod) { pod.Spec.Containers[0].Image = "nowhere" })
	got := until(t, client, pod, waitingReason("ImagePullBackOff"))
	require.Equal(t, corev1.PodPending, got.Status.Phase)
}

func TestUnboundClaimIsWaitedFor(t *testing.T) {
	client, namespace := cluster(t)
	startKubelet(t, client, nodeName(t))
	pod := makePod(t, client, namespace, "true", func(pod *corev1.Pod) {
		pod.Spec.Volumes = []corev1.Volume{
			{Name: "claim", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "claim"}}},
		}
	})
	until(t, client, pod, waitingReason("ContainerCreating"))
	makeClaim(t, client, namespace, t.TempDir())
	until(t, client, pod, phase(corev1.PodSucceeded))
}

func TestProgramThatIsMissingIsAStartError(t *testing.T) {
	client, namespace := cluster(t)
	startKubelet(t, client, nodeName(t))
	pod := makePod(t, client, namespace, "", func(pod *corev1.Pod) { pod.Spec.Containers[0].Command = []string{"/no/such/program"} })
	got := until(t, client, pod, phase(corev1.PodFailed))
	require.Equal(t, "StartError", end(got).Reason)
	require.Equal(t, int32(128), end(got).ExitCode)
}

func TestDeadlineEndsThePodButKeepsItsMessage(t *testing.T) {
	client, namespace := cluster(t)
	startKubelet(t, client, nodeName(t))
	pod := makePod(t, client, namespace, `trap 'echo stopped > $PVCBACKUP_RESULT_FILE; exit 130' TERM; while :; do sleep 0.05; done`,
		func(pod *corev1.Pod) { one := int64(1); pod.Spec.ActiveDeadlineSeconds = &one })
	got := until(t, client, pod, phase(corev1.PodFailed))
	require.Equal(t, "DeadlineExceeded", got.Status.Reason)
	require.Equal(t, int32(130), end(got).ExitCode)
	require.Equal(t, "stopped\n", end(got).Message)
}

func TestGracePeriodEndsWithAKill(t *testing.T) {
	client, namespace := cluster(t)
	startKubelet(t, client, nodeName(t))
	one := int64(1)
	pod := makePod(t, client, namespace, `trap '' TERM; while :; do sleep 0.05; done`, func(pod *corev1.Pod) {
		pod.Spec.ActiveDeadlineSeconds, pod.Spec.TerminationGracePeriodSeconds = &one, &one
	})
	got := until(t, client, pod, phase(corev1.PodFailed))
	require.Equal(t, int32(137), end(got).ExitCode)
	require.Equal(t, int32(syscall.SIGKILL), end(got).Signal)
}

func TestKilledPodSaysSo(t *testing.T) {
	client, namespace := cluster(t)
	k := startKubelet(t, client, nodeName(t))
	require.Error(t, k.KillPod(namespace, "pod", syscall.SIGKILL))
	pod := makePod(t, client, namespace, `sleep 60`)
	until(t, client, pod, phase(corev1.PodRunning))
	require.NoError(t, k.KillPod(namespace, "pod", syscall.SIGKILL))
	got := until(t, client, pod, phase(corev1.PodFailed))
	require.Equal(t, int32(137), end(got).ExitCode)
}

func TestPodThatMayRestartIsStartedAgain(t *testing.T) {
	client, namespace := cluster(t)
	startKubelet(t, client, nodeName(t))
	mark := filepath.Join(t.TempDir(), "mark")
	pod := makePod(t, client, namespace, `test -e `+mark+` && exit 0; touch `+mark+`; exit 1`, func(pod *corev1.Pod) {
		pod.Spec.RestartPolicy = corev1.RestartPolicyOnFailure
	})
	got := until(t, client, pod, phase(corev1.PodSucceeded))
	require.Equal(t, int32(1), got.Status.ContainerStatuses[0].RestartCount)
}

func TestStopEndsEveryProcessAndTheNextKubeletAdoptsNone(t *testing.T) {
	client, namespace := cluster(t)
	first := startKubelet(t, client, nodeName(t))
	file := filepath.Join(t.TempDir(), "pids")
	pod := makePod(t, client, namespace, `sleep 600 & echo $$$$ $! > `+file+`.new; mv `+file+`.new `+file+`; wait`)
	until(t, client, pod, phase(corev1.PodRunning))
	var leader, child int
	require.Eventually(t, func() bool {
		text, _ := os.ReadFile(file)
		n, _ := fmt.Sscan(string(text), &leader, &child)
		return n == 2
	}, 10*time.Second, 10*time.Millisecond)
	first.Stop()
	first.Stop()
	for _, pid := range []int{leader, child} {
		require.Eventually(t, func() bool { return dead(pid) }, 10*time.Second, 10*time.Millisecond, "process %d lives", pid)
	}
	got, err := client.CoreV1().Pods(namespace).Get(t.Context(), "pod", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, corev1.PodRunning, got.Status.Phase, "a node that lost its power says nothing")

	startKubelet(t, client, nodeName(t))
	got = until(t, client, pod, phase(corev1.PodFailed))
	require.Equal(t, "ContainerStatusUnknown", end(got).Reason)
}

// dead also holds for a process that nobody has reaped yet.
func dead(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(text), ") Z ")
}

func TestDeletedPodTellsItsEndBeforeItIsGone(t *testing.T) {
	client, namespace := cluster(t)
	startKubelet(t, client, nodeName(t))
	pod := makePod(t, client, namespace, `trap 'echo stopped > $PVCBACKUP_RESULT_FILE; exit 130' TERM; while :; do sleep 0.05; done`,
		func(pod *corev1.Pod) { pod.Finalizers = []string{"test.example.com/keep"} })
	until(t, client, pod, phase(corev1.PodRunning))
	require.NoError(t, client.CoreV1().Pods(namespace).Delete(t.Context(), "pod", metav1.DeleteOptions{}))
	got := until(t, client, pod, func(pod *corev1.Pod) bool {
		return hasEnded(pod) && pod.DeletionGracePeriodSeconds != nil && *pod.DeletionGracePeriodSeconds == 0
	})
	require.Equal(t, "stopped\n", end(got).Message)

	got.Finalizers = nil
	_, err := client.CoreV1().Pods(namespace).Update(t.Context(), got, metav1.UpdateOptions{})
	require.NoError(t, err)
	untilGone(t, client, pod)
}

func TestPodDeletedBeforeItsStartIsGone(t *testing.T) {
	client, namespace := cluster(t)
	startKubelet(t, client, nodeName(t))
	pod := makePod(t, client, namespace, "true", func(pod *corev1.Pod) { pod.Spec.Containers[0].Image = "nowhere" })
	until(t, client, pod, waitingReason("ImagePullBackOff"))
	require.NoError(t, client.CoreV1().Pods(namespace).Delete(t.Context(), "pod", metav1.DeleteOptions{}))
	untilGone(t, client, pod)
}

func untilGone(t *testing.T, client kubernetes.Interface, pod *corev1.Pod) {
	t.Helper()
	kittest.Eventually(t, 20*time.Second, func() error {
		_, err := client.CoreV1().Pods(pod.Namespace).Get(t.Context(), pod.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("the pod is still there: %w", err)
	})
}

func TestLogsAreServedThroughTheAPIServer(t *testing.T) {
	client, namespace := cluster(t)
	startKubelet(t, client, nodeName(t))
	mark := filepath.Join(t.TempDir(), "mark")
	pod := makePod(t, client, namespace, `echo one; echo two; while ! test -e `+mark+`; do sleep 0.05; done; echo three`)
	until(t, client, pod, phase(corev1.PodRunning))
	read := func(o corev1.PodLogOptions) string {
		text, err := client.CoreV1().Pods(namespace).GetLogs("pod", &o).DoRaw(t.Context())
		require.NoError(t, err)
		return string(text)
	}
	one, limit := int64(1), int64(3)
	kittest.Eventually(t, 20*time.Second, func() error {
		if got := read(corev1.PodLogOptions{TailLines: &one}); got != "two\n" {
			return fmt.Errorf("the last line is %q", got)
		}
		return nil
	})
	require.Equal(t, "one", read(corev1.PodLogOptions{LimitBytes: &limit}))

	stream, err := client.CoreV1().Pods(namespace).GetLogs("pod", &corev1.PodLogOptions{Follow: true}).Stream(t.Context())
	require.NoError(t, err)
	defer stream.Close()
	require.NoError(t, os.WriteFile(mark, nil, 0o600))
	text, err := io.ReadAll(stream)
	require.NoError(t, err)
	require.Equal(t, "one\ntwo\nthree\n", string(text))
}

func TestNodeAndItsDriversAreRegistered(t *testing.T) {
	client, _ := cluster(t)
	name := nodeName(t)
	start := func(drivers ...CSIDriver) {
		k, err := Start(t.Context(), client, Options{
			Node: name, Dir: t.TempDir(), Labels: map[string]string{"topology.example.com/node": name}, CSIDrivers: drivers,
		})
		require.NoError(t, err)
		k.Stop()
	}
	start()
	start(CSIDriver{Name: "csi.example.com", TopologyKeys: []string{"topology.example.com/node"}})

	node, err := client.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	require.True(t, isReady(node))
	require.Equal(t, name, node.Labels["topology.example.com/node"])
	csi, err := client.StorageV1().CSINodes().Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	want := []storagev1.CSINodeDriver{{Name: "csi.example.com", NodeID: name, TopologyKeys: []string{"topology.example.com/node"}}}
	if diff := cmp.Diff(want, csi.Spec.Drivers); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	lease, err := client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, name, *lease.Spec.HolderIdentity)
}

// meddler changes a new Node before its status is written, as the controller that taints new Nodes does.
type meddler struct {
	kubernetes.Interface
	meddled *bool
}

func (m meddler) CoreV1() corev1client.CoreV1Interface {
	return meddlerCore{m.Interface.CoreV1(), m.meddled}
}

type meddlerCore struct {
	corev1client.CoreV1Interface
	meddled *bool
}

func (m meddlerCore) Nodes() corev1client.NodeInterface {
	return meddlerNodes{m.CoreV1Interface.Nodes(), m.meddled}
}

type meddlerNodes struct {
	corev1client.NodeInterface
	meddled *bool
}

func (m meddlerNodes) UpdateStatus(ctx context.Context, node *corev1.Node, o metav1.UpdateOptions) (*corev1.Node, error) {
	if !*m.meddled {
		*m.meddled = true
		patch := []byte(`{"metadata":{"annotations":{"meddled":"yes"}}}`)
		if _, err := m.Patch(ctx, node.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			return nil, err
		}
	}
	return m.NodeInterface.UpdateStatus(ctx, node, o)
}

func TestANodeThatIsTaintedWhileItRegistersIsRegistered(t *testing.T) {
	client, _ := cluster(t)
	meddled := false
	startKubelet(t, meddler{client, &meddled}, nodeName(t))
	node, err := client.CoreV1().Nodes().Get(t.Context(), nodeName(t), metav1.GetOptions{})
	require.NoError(t, err)
	require.True(t, isReady(node))
	require.Equal(t, "yes", node.Annotations["meddled"])
	require.True(t, meddled)
}
