package cli

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheDataToolImportsNoKubernetes(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "example.com/pvcbackup/operator/cmd/pvcbackup").CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "example.com/pvcbackup/backup/cli\n")
	for name := range strings.Lines(string(out)) {
		if strings.HasPrefix(name, "k8s.io/") || strings.HasPrefix(name, "sigs.k8s.io/") {
			t.Error(name)
		}
	}
}
