package edgetree

import (
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

const nobody = 65534

// AsNobody reports whether the test goes on in this process, which is then not root's. As root it runs the test again,
// alone, in a process of a user without privileges, and reports false: the test returns.
func AsNobody(t *testing.T) bool {
	t.Helper()
	if os.Getuid() != 0 {
		return true
	}
	tmp, err := os.MkdirTemp("", "nobody") //nolint:usetesting // the folders above must be open to others
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(tmp)) })
	require.NoError(t, os.Chown(tmp, nobody, nobody))
	// The program is run through /proc because its directory is root's alone.
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), "TMPDIR="+tmp)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "as user %d: %s", nobody, out)
	require.Contains(t, string(out), "--- PASS: "+t.Name())
	return false
}
