package app_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

func TestTheWholeInstallationIsAcceptedByTheAPIServer(t *testing.T) {
	t.Parallel()
	out, err := shared.kubectl(t.Context(), "apply", "--dry-run=server", "--validate=strict", "-k", "../config/default")
	require.NoError(t, err)
	var got []string
	for line := range strings.Lines(out) {
		name, _, _ := strings.Cut(line, " ")
		if name != "Warning:" { // of what was made in another way and is only looked at here
			got = append(got, name)
		}
	}
	slices.Sort(got)
	want := []string{
		"clusterrole.rbac.authorization.k8s.io/pvcbackup-manager",
		"clusterrolebinding.rbac.authorization.k8s.io/pvcbackup-manager",
		"customresourcedefinition.apiextensions.k8s.io/pvcbackups.storage.example.com",
		"customresourcedefinition.apiextensions.k8s.io/pvcrestores.storage.example.com",
		"deployment.apps/controller-manager",
		"namespace/pvcbackup-system",
		"role.rbac.authorization.k8s.io/pvcbackup-leader-election",
		"rolebinding.rbac.authorization.k8s.io/pvcbackup-leader-election",
		"serviceaccount/controller-manager",
	}
	require.Empty(t, cmp.Diff(want, got))
}

func TestTheSamplesAreAcceptedTogether(t *testing.T) {
	t.Parallel()
	_, err := shared.kubectl(t.Context(), "apply", "--dry-run=server", "--validate=strict", "-k", "../config/samples")
	require.NoError(t, err)
}
