package main

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTheContainersLimitIsRead(t *testing.T) {
	const v2, v1 = "/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"
	for name, tc := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"version 2":           {map[string]string{v2: "1000\n"}, 1000},
		"version 1":           {map[string]string{v1: "2000\n"}, 2000},
		"unlimited version 2": {map[string]string{v2: "max\n"}, 0},
		"unlimited version 1": {map[string]string{v1: "9223372036854771712\n"}, 0},
		"no cgroup":           {nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			got := containerMemory(func(file string) ([]byte, error) {
				if text, ok := tc.files[file]; ok {
					return []byte(text), nil
				}
				return nil, os.ErrNotExist
			})
			if got != tc.want {
				t.Errorf("%d, want %d", got, tc.want)
			}
		})
	}
}

func TestTheRuntimeStaysWithinTheTotalAndTheContainerUnlessTheEnvironmentSaysOtherwise(t *testing.T) {
	const total = 256 << 20
	type set struct {
		Limit   int64
		Percent int
	}
	for name, tc := range map[string]struct {
		env       map[string]string
		container int64
		want      set
	}{
		"no container":        {nil, 0, set{total - offHeap, garbage}},
		"a larger container":  {nil, 2 * total, set{total - offHeap, garbage}},
		"a smaller container": {nil, total / 2, set{total/2 - offHeap, garbage}},
		"a tiny container":    {nil, offHeap, set{offHeap / 2, garbage}},
		"GOMEMLIMIT":          {map[string]string{"GOMEMLIMIT": "1GiB"}, 0, set{0, garbage}},
		"GOGC":                {map[string]string{"GOGC": "off"}, 0, set{total - offHeap, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			var got set
			limitMemory(func(name string) string { return tc.env[name] }, tc.container,
				func(n int64) int64 { got.Limit = n; return 0 }, func(n int) int { got.Percent = n; return 0 })(total)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
