package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/pvcbackup/backup/contract"
	"example.com/pvcbackup/blobstore/blobtest"
)

// envBeMain makes the test's program behave like the real one.
const envBeMain = "PVCBACKUP_TEST_BE_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(envBeMain) != "" {
		os.Exit(run())
	}
	os.Exit(m.Run())
}

// program prepares a call of this program with nothing of the environment but what is given.
func program(t *testing.T, env []string, args ...string) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	var out bytes.Buffer
	cmd := exec.CommandContext(t.Context(), self, args...)
	cmd.Env = append(env, envBeMain+"=1")
	cmd.Stdout, cmd.Stderr = &out, &out
	return cmd, &out
}

func TestTheProgramMovesThereAndBack(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "source"), 0o755))
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "destination"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "source", "file"), []byte("content"), 0o644))
	for _, request := range []contract.Request{
		{Operation: contract.OperationBackup, Backup: &contract.Backup{Run: "run", Initialize: true}},
		{Operation: contract.OperationRestore, Restore: &contract.Restore{}},
	} {
		request.Identity = contract.Identity{Host: "cluster", Path: "/ns/claim"}
		text, err := request.Encode()
		require.NoError(t, err)
		cmd, out := program(t, []string{
			contract.EnvRequest + "=" + text, contract.EnvPassword + "=correct-horse-battery",
			contract.EnvRepository + "=file://" + dir + "/destination/cluster/ns/claim", contract.EnvDestination + "=" + dir + "/destination",
			contract.EnvSource + "=" + dir + "/source", contract.EnvTarget + "=" + dir + "/target", contract.EnvResultFile + "=" + dir + "/result",
		}, "mover")
		require.NoError(t, cmd.Run(), out.String())
		require.NotContains(t, out.String(), "correct-horse-battery")
		message, err := os.ReadFile(filepath.Join(dir, "result"))
		require.NoError(t, err)
		result, err := contract.DecodeResult(string(message))
		require.NoError(t, err)
		require.Equal(t, contract.Succeeded, result.Outcome, result.Message)
	}
	got, err := os.ReadFile(filepath.Join(dir, "target", "file"))
	require.NoError(t, err)
	require.Equal(t, "content", string(got))
}

func TestASignalEndsAMoverWhoseStoreNeverAnswersWithAResult(t *testing.T) {
	result := filepath.Join(t.TempDir(), "result")
	text, err := contract.Request{Operation: contract.OperationLookup}.Encode()
	require.NoError(t, err)
	cmd, out := program(t, []string{
		contract.EnvRequest + "=" + text, contract.EnvResultFile + "=" + result,
		contract.EnvRepository + "=s3://bucket?region=eu-central-1&use_path_style=true&endpoint=http://" + blobtest.Silent(t),
		"AWS_ACCESS_KEY_ID=key", "AWS_SECRET_ACCESS_KEY=a-secret-of-the-store",
	}, "mover")
	require.NoError(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	// A signal that comes before the program listens would kill it without a result, so it is sent once it is surely
	// waiting for the store.
	waitForConnection(t, cmd.Process.Pid, ended, out)
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	select {
	case err := <-ended:
		t.Log("the program ended:", err)
	case <-time.After(time.Minute):
		t.Fatal("the program does not end")
	}
	require.Equal(t, contract.ExitInterrupted, cmd.ProcessState.ExitCode(), out.String())
	message, err := os.ReadFile(result)
	require.NoError(t, err)
	got, err := contract.DecodeResult(string(message))
	require.NoError(t, err)
	require.Equal(t, contract.ReasonInterrupted, got.Reason)
	require.NotContains(t, string(message)+out.String(), "a-secret-of-the-store")
}

// waitForConnection waits until the process has a socket.
func waitForConnection(t *testing.T, pid int, ended <-chan error, out *bytes.Buffer) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(time.Minute); ; {
		select {
		case err := <-ended:
			t.Fatalf("the program ended by itself: %v: %s", err, out)
		case <-deadline:
			t.Fatal("the program does not connect")
		case <-tick.C:
		}
		links, _ := filepath.Glob(filepath.Join("/proc", strconv.Itoa(pid), "fd", "*"))
		for _, link := range links {
			if target, err := os.Readlink(link); err == nil && strings.HasPrefix(target, "socket:") {
				return
			}
		}
	}
}
