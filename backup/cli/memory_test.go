package cli

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

func TestMemoryIsTheFlagsElseTheContainersElse256MiB(t *testing.T) {
	for name, tc := range map[string]struct {
		flag  int
		given int64
		want  int64
	}{
		"nothing":         {0, 0, 256 << 20},
		"large container": {0, 1 << 30, 256 << 20},
		"small container": {0, 200 << 20, 200 << 20},
		"flag":            {128, 0, 128 << 20},
		"flag, container": {512, 200 << 20, 512 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			var told []int64
			m := memory{flag: tc.flag, limit: func(n int64) { told = append(told, n) }}
			require.NoError(t, m.divide(tc.given))
			if diff := cmp.Diff([]int64{tc.want}, told); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			require.Equal(t, tc.want/16*11, m.budget())
		})
	}
	m := memory{flag: 127}
	require.ErrorContains(t, m.divide(0), "128")
}

func TestALargeIndexGetsItsOwnRoom(t *testing.T) {
	var told int64
	m := memory{limit: func(n int64) { told = n }}
	require.NoError(t, m.divide(0))
	m.grown(60 << 20)
	require.EqualValues(t, 256<<20, told, "a million blobs fit in")
	m.grown(600 << 20)
	require.EqualValues(t, (256+600-64)<<20, told)
}
