package snapshot_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/validation"

	"example.com/pvcbackup/snapshot"
)

func TestNameIsTheSameInEveryProcess(t *testing.T) {
	want := "backup-3f2a-20260101t0300z-kzff6j3x4ykj2kk4"
	if d := cmp.Diff(want, snapshot.Name("backup", "3f2a", "20260101T0300Z")); d != "" {
		t.Fatal(d)
	}
}

func TestNameTellsItsPartsApart(t *testing.T) {
	long := strings.Repeat("a", 80)
	inputs := [][]string{
		{"a", "b-c"}, {"a-b", "c"}, {"a", "b", "c"}, {"a", "b", "c", ""}, {"A", "b", "c"},
		{"", "abc"}, {"abc"}, {"abc", ""}, {"é"}, {"è"}, {""}, {long}, {long, "a"}, {long + "a"},
	}
	seen := map[string][]string{}
	for _, in := range inputs {
		name := snapshot.Name(in[0], in[1:]...)
		require.NotContains(t, seen, name, "the name of %q", in)
		require.Empty(t, validation.IsDNS1123Label(name), "the server's own rule")
		seen[name] = in
	}
}
