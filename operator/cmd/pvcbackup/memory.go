package main

import (
	"runtime/debug"
	"strconv"
	"strings"
)

// memoryLimitFiles say how much memory the process may have, in cgroup version 2 and 1.
var memoryLimitFiles = []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}

// containerMemory returns how much memory the container may have, in bytes; 0 if there is no limit.
func containerMemory(read func(string) ([]byte, error)) int64 {
	for _, file := range memoryLimitFiles {
		text, err := read(file)
		if err != nil {
			continue
		}
		// "max", and numbers that no machine has, mean that there is no limit.
		if limit, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && limit > 0 && limit < 1<<50 {
			return limit
		}
		return 0
	}
	return 0
}

const (
	// offHeap is what the process takes beside what the runtime manages: its own code, and stacks of the kernel.
	offHeap = 32 << 20
	// garbage is how much of it may lie about, in percent of what is in use. Nearly all of that is buffers, which cost
	// nothing to look through.
	garbage = 50
)

// limitMemory returns a function that makes the runtime collect garbage in time to stay within a total, and within the
// container's limit. What GOMEMLIMIT and GOGC say goes first.
func limitMemory(getenv func(string) string, container int64, setLimit func(int64) int64, setPercent func(int) int) func(int64) {
	return func(total int64) {
		if container > 0 {
			total = min(total, container)
		}
		if getenv("GOMEMLIMIT") == "" {
			setLimit(max(total-offHeap, total/2))
		}
		if getenv("GOGC") == "" {
			setPercent(garbage)
		}
	}
}

// runtimeLimit is limitMemory for this process.
func runtimeLimit(getenv func(string) string, container int64) func(int64) {
	return limitMemory(getenv, container, debug.SetMemoryLimit, debug.SetGCPercent)
}
