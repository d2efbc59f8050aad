package main

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/kubernetes-csi/csi-test/v5/pkg/sanity"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

// started is a driver that is being served, and clients of it.
type started struct {
	csi.ControllerClient
	csi.NodeClient
	csi.IdentityClient
	socket string
	stop   func() error
}

// start serves a driver on a root directory. It is stopped at the end of the test, unless it was before.
func start(t *testing.T, root string, args ...string) *started {
	t.Helper()
	dir, err := os.MkdirTemp("", "csi") // short: a socket's path is at most 107 bytes
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := &started{socket: filepath.Join(dir, "s")}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, append([]string{"--root", root, "--socket", s.socket}, args...)) }()
	stopped := false
	s.stop = func() error {
		if stopped {
			return nil
		}
		stopped = true
		cancel()
		return <-ended
	}
	t.Cleanup(func() { require.NoError(t, s.stop()) })
	require.Eventually(t, func() bool {
		c, err := net.Dial("unix", s.socket)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	}, 10*time.Second, 5*time.Millisecond, "the driver does not listen")
	conn, err := grpc.NewClient("unix:"+s.socket, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithAuthority("localhost"))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	s.ControllerClient, s.NodeClient, s.IdentityClient = csi.NewControllerClient(conn), csi.NewNodeClient(conn), csi.NewIdentityClient(conn)
	return s
}

var mount = []*csi.VolumeCapability{{
	AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
	AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
}}

func (s *started) volume(t *testing.T, name string, from *csi.VolumeContentSource) *csi.Volume {
	t.Helper()
	r, err := s.CreateVolume(t.Context(), &csi.CreateVolumeRequest{Name: name, VolumeCapabilities: mount, VolumeContentSource: from})
	require.NoError(t, err)
	return r.Volume
}

func fromSnapshot(id string) *csi.VolumeContentSource {
	return &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Snapshot{Snapshot: &csi.VolumeContentSource_SnapshotSource{SnapshotId: id}}}
}

func TestPassesTheSanityTestsOfCSI(t *testing.T) {
	s := start(t, t.TempDir(), "--topology")
	config := sanity.NewTestConfig()
	config.Address = "unix:" + s.socket
	config.TargetPath = filepath.Join(t.TempDir(), "target")
	config.StagingPath = filepath.Join(t.TempDir(), "staging")
	config.TestVolumeSize = 1 << 30
	config.RemoveTargetPath = func(path string) error { return os.RemoveAll(path) } // also after a failed test
	sanity.Test(t, config)
}

func TestVolumesAndSnapshotsSurviveTheDriverAndItsUnfinishedWorkIsRemoved(t *testing.T) {
	root := t.TempDir()
	first := start(t, root)
	v := first.volume(t, "claim", nil)
	dir := v.VolumeContext["directory"]
	require.NoError(t, os.WriteFile(filepath.Join(dir, "f"), []byte("before"), 0o640))
	snap, err := first.CreateSnapshot(t.Context(), &csi.CreateSnapshotRequest{Name: "snap", SourceVolumeId: v.VolumeId})
	require.NoError(t, err)
	require.True(t, snap.Snapshot.ReadyToUse)
	require.Equal(t, v.CapacityBytes, snap.Snapshot.SizeBytes)
	require.NoError(t, first.stop())
	unfinished := filepath.Join(root, "making", "vol-x", "data", "closed")
	require.NoError(t, os.MkdirAll(unfinished, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(unfinished, "f"), nil, 0o600))
	require.NoError(t, os.Chmod(unfinished, 0))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "f"), []byte("after"), 0o640))

	second := start(t, root)
	require.NoDirExists(t, filepath.Join(root, "making", "vol-x"))
	again, err := second.CreateSnapshot(t.Context(), &csi.CreateSnapshotRequest{Name: "snap", SourceVolumeId: v.VolumeId})
	require.NoError(t, err)
	require.Equal(t, snap.Snapshot.CreationTime.AsTime(), again.Snapshot.CreationTime.AsTime(), "the same snapshot, not a new one")
	restored := second.volume(t, "restored", fromSnapshot(snap.Snapshot.SnapshotId))
	data, err := os.ReadFile(filepath.Join(restored.VolumeContext["directory"], "f"))
	require.NoError(t, err)
	require.Equal(t, "before", string(data))
}

func TestASecondDriverOnTheSameRootRefusesToStart(t *testing.T) {
	root := t.TempDir()
	start(t, root)
	err := run(t.Context(), []string{"--root", root, "--socket", filepath.Join(t.TempDir(), "s")})
	require.ErrorContains(t, err, "served by another driver")
}

func TestControlFileIsReadAtEachCall(t *testing.T) {
	root := t.TempDir()
	s := start(t, root)
	v := s.volume(t, "claim", nil)
	ask := func(name string) (*csi.Snapshot, error) {
		r, err := s.CreateSnapshot(t.Context(), &csi.CreateSnapshotRequest{Name: name, SourceVolumeId: v.VolumeId})
		return r.GetSnapshot(), err
	}
	count := func() int {
		r, err := s.ListSnapshots(t.Context(), &csi.ListSnapshotsRequest{})
		require.NoError(t, err)
		return len(r.Entries)
	}
	control := func(text string) {
		require.NoError(t, os.WriteFile(filepath.Join(root, "control.json"), []byte(text), 0o600))
	}

	control(`{"methods":{"CreateSnapshot":{"code":"RESOURCE_EXHAUSTED","message":"pool full"}}}`)
	_, err := ask("a")
	require.Equal(t, codes.ResourceExhausted, status.Code(err))
	require.ErrorContains(t, err, "pool full")
	require.Zero(t, count())

	control(`{"methods":{"CreateSnapshot":{"code":"UNAVAILABLE","lose":true}}}`)
	_, err = ask("a")
	require.Equal(t, codes.Unavailable, status.Code(err))
	require.Equal(t, 1, count(), "the work was done, only the answer was lost")

	control(`{"neverReady":true}`)
	snap, err := ask("a")
	require.NoError(t, err)
	require.False(t, snap.ReadyToUse)

	control(`{"methods":{"CreateSnapshot":{"delay":"1m"}}}`)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err = s.CreateSnapshot(ctx, &csi.CreateSnapshotRequest{Name: "b", SourceVolumeId: v.VolumeId})
	require.Equal(t, codes.DeadlineExceeded, status.Code(err))

	control(`{`)
	_, err = ask("a")
	require.ErrorContains(t, err, "control.json is not as documented")

	require.NoError(t, os.Remove(filepath.Join(root, "control.json")))
	snap, err = ask("a")
	require.NoError(t, err)
	require.True(t, snap.ReadyToUse)
}

func TestRefusals(t *testing.T) {
	s := start(t, t.TempDir())
	block := []*csi.VolumeCapability{{
		AccessType: &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}}, AccessMode: mount[0].AccessMode}}
	s.volume(t, "small", nil)
	for name, c := range map[string]struct {
		req  *csi.CreateVolumeRequest
		want codes.Code
	}{
		"block volume":                {&csi.CreateVolumeRequest{Name: "b", VolumeCapabilities: block}, codes.InvalidArgument},
		"a path for a snapshot":       {&csi.CreateVolumeRequest{Name: "p", VolumeCapabilities: mount, VolumeContentSource: fromSnapshot("../volumes")}, codes.NotFound},
		"same name, larger":           {&csi.CreateVolumeRequest{Name: "small", VolumeCapabilities: mount, CapacityRange: &csi.CapacityRange{RequiredBytes: 2 << 30}}, codes.AlreadyExists},
		"same name, from a snapshot":  {&csi.CreateVolumeRequest{Name: "small", VolumeCapabilities: mount, VolumeContentSource: fromSnapshot("snap-1")}, codes.AlreadyExists},
		"at least more than at most":  {&csi.CreateVolumeRequest{Name: "r", VolumeCapabilities: mount, CapacityRange: &csi.CapacityRange{RequiredBytes: 2, LimitBytes: 1}}, codes.InvalidArgument},
		"clone smaller than original": {&csi.CreateVolumeRequest{Name: "c", VolumeCapabilities: mount, CapacityRange: &csi.CapacityRange{RequiredBytes: 1}, VolumeContentSource: &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Volume{Volume: &csi.VolumeContentSource_VolumeSource{VolumeId: idFor(volumes, "small")}}}}, codes.OutOfRange},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := s.CreateVolume(t.Context(), c.req)
			require.Equal(t, c.want, status.Code(err), "%v", err)
		})
	}
}

func TestPublishLinksTheVolumeAndUnpublishNeverRemovesData(t *testing.T) {
	s := start(t, t.TempDir())
	v := s.volume(t, "claim", nil)
	require.NoError(t, os.WriteFile(filepath.Join(v.VolumeContext["directory"], "f"), []byte("x"), 0o600))
	target := filepath.Join(t.TempDir(), "target")
	publish := &csi.NodePublishVolumeRequest{VolumeId: v.VolumeId, TargetPath: target, VolumeCapability: mount[0]}
	for range 2 {
		_, err := s.NodePublishVolume(t.Context(), publish)
		require.NoError(t, err)
	}
	require.FileExists(t, filepath.Join(target, "f"))
	for range 2 {
		_, err := s.NodeUnpublishVolume(t.Context(), &csi.NodeUnpublishVolumeRequest{VolumeId: v.VolumeId, TargetPath: target})
		require.NoError(t, err)
	}
	require.NoFileExists(t, target)
	require.FileExists(t, filepath.Join(v.VolumeContext["directory"], "f"))
}

func TestTopologyIsReportedOnlyWhenAsked(t *testing.T) {
	plain, bound := start(t, t.TempDir()), start(t, t.TempDir(), "--topology", "--node-id", "n1", "--driver-name", "d")
	require.Empty(t, plain.volume(t, "v", nil).AccessibleTopology)
	want := map[string]string{"topology.d/node": "n1"}
	require.Equal(t, want, bound.volume(t, "v", nil).AccessibleTopology[0].Segments)
	info, err := bound.NodeGetInfo(t.Context(), &csi.NodeGetInfoRequest{})
	require.NoError(t, err)
	require.Equal(t, want, info.AccessibleTopology.Segments)
}
