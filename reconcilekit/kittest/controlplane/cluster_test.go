//go:build linux

package controlplane

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
)

// crashDir tells the test binary to be the process that crashes, and where its cluster's data shall be.
const crashDir = "CONTROLPLANE_TEST_CRASH"

func TestMain(m *testing.M) {
	if dir := os.Getenv(crashDir); dir != "" {
		startAndHang(dir)
	}
	os.Exit(m.Run())
}

// startAndHang starts a cluster, says so, and waits for its end.
func startAndHang(dir string) {
	if _, err := Start(context.Background(), Options{Dir: dir, CSI: &CSI{}}); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("ready")
	select {}
}

// started starts a cluster and stops it at the end of the test.
func started(t *testing.T, o Options) *Cluster {
	t.Helper()
	o.Log = t.Output()
	c, err := Start(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Stop()) })
	return c
}

// running returns the processes whose command line has a text in it.
func running(t *testing.T, text string) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(t, err)
	var found []string
	for _, file := range files {
		line, _ := os.ReadFile(file) // it may have ended
		if pid := filepath.Base(filepath.Dir(file)); strings.Contains(string(line), text) && pid != strconv.Itoa(os.Getpid()) {
			found = append(found, pid+" "+strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return found
}

func eventually(t *testing.T, what string, try func() error) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		err := try()
		if err == nil {
			return
		}
		require.True(t, time.Now().Before(deadline), "waiting for %s: %v", what, err)
		select {
		case <-time.After(50 * time.Millisecond):
		case <-t.Context().Done():
			t.Fatal("the test was ended")
		}
	}
}

func claim(name, class, fromSnapshot string) *corev1.PersistentVolumeClaim {
	group := "snapshot.storage.k8s.io"
	c := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
	if class != "" {
		c.Spec.StorageClassName = &class
	}
	if fromSnapshot != "" {
		c.Spec.DataSource = &corev1.TypedLocalObjectReference{APIGroup: &group, Kind: "VolumeSnapshot", Name: fromSnapshot}
	}
	return c
}

// volumeOf waits for a claim to be bound and returns its directory.
func volumeOf(t *testing.T, c *Cluster, name string) string {
	t.Helper()
	var dir string
	eventually(t, "the claim "+name+" to be bound", func() (err error) {
		dir, err = c.VolumeDirectory(t.Context(), "default", name)
		return err
	})
	return dir
}

var snapshotResource = schema.GroupVersionResource{Group: "snapshot.storage.k8s.io", Version: "v1", Resource: "volumesnapshots"}

func takeSnapshot(t *testing.T, c *Cluster, name, claim string) dynamic.ResourceInterface {
	t.Helper()
	client, err := dynamic.NewForConfig(c.RESTConfig())
	require.NoError(t, err)
	snapshots := client.Resource(snapshotResource).Namespace("default")
	_, err = snapshots.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshot", "metadata": map[string]any{"name": name},
		"spec": map[string]any{"source": map[string]any{"persistentVolumeClaimName": claim}}, // of the default class
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
	return snapshots
}

func snapshotReady(t *testing.T, snapshots dynamic.ResourceInterface, name string) error {
	s, err := snapshots.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if ready, _, _ := unstructured.NestedBool(s.Object, "status", "readyToUse"); !ready {
		return fmt.Errorf("status is %v", s.Object["status"])
	}
	return nil
}

func TestAClaimIsFilledSnapshottedAndRestoredAndNothingIsLeft(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	c := started(t, Options{CSI: &CSI{}})
	clientset, err := kubernetes.NewForConfig(c.RESTConfig())
	require.NoError(t, err)
	claims := clientset.CoreV1().PersistentVolumeClaims("default")

	_, err = claims.Create(t.Context(), claim("data", "", ""), metav1.CreateOptions{})
	require.NoError(t, err)
	data := volumeOf(t, c, "data")
	require.NoError(t, os.WriteFile(filepath.Join(data, "file"), []byte("before"), 0o640))
	require.NoError(t, os.Mkdir(filepath.Join(data, "closed"), 0)) // Stop removes that, too

	require.NoError(t, c.SetFaults(Faults{NeverReady: true}))
	snapshots := takeSnapshot(t, c, "snap", "data")
	eventually(t, "a snapshot that is not ready", func() error {
		s, err := snapshots.Get(t.Context(), "snap", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if ready, found, _ := unstructured.NestedBool(s.Object, "status", "readyToUse"); !found || ready {
			return fmt.Errorf("status is %v", s.Object["status"])
		}
		return nil
	})
	require.NoError(t, c.SetFaults(Faults{}))
	eventually(t, "the snapshot to be ready", func() error { return snapshotReady(t, snapshots, "snap") })
	require.NoError(t, os.WriteFile(filepath.Join(data, "file"), []byte("after"), 0o640))

	_, err = claims.Create(t.Context(), claim("restored", WaitingClass, "snap"), metav1.CreateOptions{})
	require.NoError(t, err)
	addNode(t, clientset)
	runPod(t, clientset, "restored")
	got, err := os.ReadFile(filepath.Join(volumeOf(t, c, "restored"), "file"))
	require.NoError(t, err)
	require.Equal(t, "before", string(got))

	require.NoError(t, claims.Delete(t.Context(), "data", metav1.DeleteOptions{}))
	eventually(t, "the deleted claim's volume to go", func() error {
		if _, err := os.Stat(data); !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("it is there: %w", err)
		}
		return nil
	})

	require.NoError(t, c.InstallCRDs(t.Context(), filepath.Join(c.options.Binaries, "crd")), "again")
	require.NoError(t, c.Err())
	require.Len(t, running(t, c.Dir()), 8)
	require.NoError(t, c.Stop())
	require.Empty(t, running(t, c.Dir()))
	require.NoDirExists(t, c.Dir())
}

// addNode does what a kubelet does when it starts.
func addNode(t *testing.T, clientset kubernetes.Interface) {
	t.Helper()
	node, err := clientset.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	node.Status = corev1.NodeStatus{
		Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("8Gi"), corev1.ResourcePods: resource.MustParse("10")},
		Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now()}},
	}
	node.Status.Capacity = node.Status.Allocatable
	_, err = clientset.CoreV1().Nodes().UpdateStatus(t.Context(), node, metav1.UpdateOptions{})
	require.NoError(t, err)
	_, err = clientset.StorageV1().CSINodes().Create(t.Context(), &storagev1.CSINode{
		ObjectMeta: metav1.ObjectMeta{Name: "node"},
		Spec:       storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{Name: DriverName, NodeID: "node"}}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
}

// runPod makes a pod that uses a claim. It is scheduled, and runs nowhere.
func runPod(t *testing.T, clientset kubernetes.Interface, claim string) {
	t.Helper()
	_, err := clientset.CoreV1().Pods("default").Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "reader"},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "c", Image: "none", VolumeMounts: []corev1.VolumeMount{{Name: "v", MountPath: "/v"}}}},
			Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}}}},
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
}

func TestSeveralRunBesideEachOtherAndAServiceAccountMayDoNothingByItself(t *testing.T) {
	clusters := make(chan *Cluster, 2)
	for range cap(clusters) {
		go func() {
			c, err := Start(context.Background(), Options{})
			if err != nil {
				t.Error(err)
			}
			clusters <- c
		}()
	}
	for range cap(clusters) {
		c := <-clusters
		if c == nil {
			continue
		}
		t.Cleanup(func() { require.NoError(t, c.Stop()) })
		config, err := c.RESTConfigFor(t.Context(), "default", "default")
		require.NoError(t, err)
		clientset, err := kubernetes.NewForConfig(config)
		require.NoError(t, err)
		_, err = clientset.CoreV1().Secrets("default").List(t.Context(), metav1.ListOptions{})
		require.True(t, apierrors.IsForbidden(err), "%v", err)
		require.ErrorContains(t, err, "system:serviceaccount:default:default")
	}
}

func TestAProcessThatEndsEarlyIsReportedWithTheEndOfItsLog(t *testing.T) {
	c := started(t, Options{})
	for _, p := range c.processes {
		if p.name == "kube-scheduler" {
			require.NoError(t, syscall.Kill(p.cmd.Process.Pid, syscall.SIGABRT))
		}
	}
	select {
	case <-c.Done():
	case <-time.After(time.Minute):
		t.Fatal("Done is not closed")
	}
	var died *ProcessError
	require.ErrorAs(t, c.Err(), &died)
	require.Equal(t, "kube-scheduler", died.Name)
	require.NotEmpty(t, died.Tail)
	require.ErrorContains(t, c.Err(), filepath.Join(c.Dir(), "logs", "kube-scheduler.log"))
}

func TestWhatCannotStartSaysWhyAndLeavesNothing(t *testing.T) {
	full := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(full, "f"), nil, 0o600))
	long := filepath.Join(t.TempDir(), strings.Repeat("x", 100))
	for name, c := range map[string]struct {
		options Options
		want    string
	}{
		"a bad argument":      {Options{Dir: filepath.Join(t.TempDir(), "d"), APIServerArgs: []string{"--no-such-flag"}}, "unknown flag: --no-such-flag"},
		"a directory in use":  {Options{Dir: full}, "must be empty"},
		"missing programs":    {Options{Dir: filepath.Join(t.TempDir(), "d"), Binaries: "/nowhere"}, "make control-plane"},
		"a path too long":     {Options{Dir: long, CSI: &CSI{}}, "too long for a socket"},
		"missing definitions": {Options{Dir: filepath.Join(t.TempDir(), "d"), CRDs: []string{"/nowhere.yaml"}}, "/nowhere.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Start(t.Context(), c.options)
			require.ErrorContains(t, err, c.want)
			require.Empty(t, running(t, c.options.Dir+"/"))
			if c.options.Dir == full {
				require.FileExists(t, filepath.Join(full, "f"))
			} else {
				require.NoDirExists(t, c.options.Dir)
			}
		})
	}
}

func TestFaultsNeedCSI(t *testing.T) {
	require.ErrorIs(t, (&Cluster{}).SetFaults(Faults{}), errNoCSI)
}

func TestNoProcessSurvivesACrashOfTheCaller(t *testing.T) {
	dir, err := os.MkdirTemp("", "crash") //nolint:usetesting // short enough for a socket
	require.NoError(t, err)
	t.Cleanup(func() { _ = removeAll(dir) })
	caller := exec.Command(os.Args[0])
	caller.Env = append(os.Environ(), crashDir+"="+dir)
	out, err := caller.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, caller.Start())
	line, _ := bufio.NewReader(out).ReadString('\n')
	ran := running(t, dir)
	require.NoError(t, caller.Process.Kill())
	require.Error(t, caller.Wait())
	require.Equal(t, "ready\n", line)
	require.Len(t, ran, 8)
	eventually(t, "the processes to end", func() error {
		if left := running(t, dir); len(left) > 0 {
			return errors.New(strings.Join(left, "\n"))
		}
		return nil
	})
}
