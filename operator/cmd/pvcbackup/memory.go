package main

import (
	"strconv"
	"strings"
)

// memoryLimitFiles say how much memory the process may have, in cgroup version 2 and 1.
var memoryLimitFiles = []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}

// limitMemory makes the runtime collect garbage in time to stay within the container's limit. What GOMEMLIMIT says goes
// first. A tenth is left for what is not on the heap.
func limitMemory(getenv func(string) string, read func(string) ([]byte, error), set func(int64) int64) {
	if getenv("GOMEMLIMIT") != "" {
		return
	}
	for _, file := range memoryLimitFiles {
		text, err := read(file)
		if err != nil {
			continue
		}
		// "max", and numbers that no machine has, mean that there is no limit.
		if limit, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && limit > 0 && limit < 1<<50 {
			set(limit / 10 * 9)
		}
		return
	}
}
