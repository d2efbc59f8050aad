package main

import (
	"os"
	"testing"
)

func TestTheMemoryLimitIsTheContainersUnlessTheEnvironmentSaysOtherwise(t *testing.T) {
	const v2, v1 = "/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"
	for name, tc := range map[string]struct {
		env   string
		files map[string]string
		want  int64
	}{
		"version 2":           {"", map[string]string{v2: "1000\n"}, 900},
		"version 1":           {"", map[string]string{v1: "2000\n"}, 1800},
		"unlimited version 2": {"", map[string]string{v2: "max\n"}, 0},
		"unlimited version 1": {"", map[string]string{v1: "9223372036854771712\n"}, 0},
		"the environment":     {"1GiB", map[string]string{v2: "1000\n"}, 0},
		"no cgroup":           {"", nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var got int64
			limitMemory(func(string) string { return tc.env },
				func(file string) ([]byte, error) {
					if text, ok := tc.files[file]; ok {
						return []byte(text), nil
					}
					return nil, os.ErrNotExist
				},
				func(limit int64) int64 { got = limit; return 0 })
			if got != tc.want {
				t.Errorf("limit %d, want %d", got, tc.want)
			}
		})
	}
}
