package blockdev

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"testing"
	"time"

	"example.com/pvcbackup/backup/repo"
	"example.com/pvcbackup/backup/repo/repotest"
	"github.com/stretchr/testify/require"
)

const (
	childEnv    = "PVCBACKUP_TEST_IMAGE"
	mostMemory  = 256 * mib
	sampleEvery = 2 * time.Millisecond
)

// TestAnImageOfATiBStaysWithin256MiB backs up and restores, in a process of its own, an image of 1 TiB with a little
// data, of which the list of 262,144 chunks is most of the work. Restic reads that list.
func TestAnImageOfATiBStaysWithin256MiB(t *testing.T) {
	size, pieces := int64(1<<40), int64(24)
	if raced() { // it takes ten times as long
		size, pieces = size/16, pieces/3
	}
	var offsets []int64
	for k := range pieces {
		offsets = append(offsets, k*(size/pieces)/4096*4096)
	}
	image := sparse(t, size, noise(1, 5*mib), offsets...)
	_, folder := initInFolder(t)
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
	cmd.Env = append(os.Environ(), childEnv+"="+image, "PVCBACKUP_TEST_REPOSITORY="+folder, "GOMEMLIMIT=")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, repotest.NewRestic(t, folder, password).Run("check"), "no errors were found")
	fields := strings.Fields(string(out))
	require.Len(t, fields, 3, "%s", out)
	heap, err := strconv.ParseInt(fields[0], 10, 64)
	require.NoError(t, err)
	resident, err := strconv.ParseInt(fields[1], 10, 64)
	require.NoError(t, err)
	t.Logf("peak: %d MiB in use by the runtime, %d MiB resident; %s", heap/mib, resident/mib, fields[2])
	require.LessOrEqual(t, heap, int64(mostMemory))
	if !raced() {
		require.LessOrEqual(t, resident, int64(mostMemory))
	}
}

// raced reports whether this is built with the race detector, which takes memory of its own.
func raced() bool {
	info, ok := debug.ReadBuildInfo()
	for _, s := range info.Settings {
		if s.Key == "-race" {
			return s.Value == "true"
		}
	}
	return !ok
}

// child prints the peaks of memory while it stores and restores the image.
func child() int {
	began := time.Now()
	ctx := context.Background()
	peak, stop := watch()
	err := storeAndRestore(ctx, os.Getenv(childEnv), os.Getenv("PVCBACKUP_TEST_REPOSITORY"))
	stop()
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println(*peak, highWater(), time.Since(began).Round(time.Millisecond))
	return 0
}

func storeAndRestore(ctx context.Context, image, folder string) error {
	store, err := repotest.NewDir(folder)
	if err != nil {
		return err
	}
	r, err := repo.Open(ctx, store, password, nil)
	if err != nil {
		return err
	}
	d, err := Open(image)
	if err != nil {
		return err
	}
	defer d.Close()
	o := Options{Host: "h", Path: "/ns/claim", Handle: "a", ChunkSize: largeChunk}
	if _, err := Backup(ctx, r, d, o); err != nil {
		return err
	}
	// Once more with a parent, of which the list is in memory, too.
	o = o.since("a", d.Size(), Range{100, 1})
	o.Time, o.SampleShare = time.Now().Add(time.Second), -1
	again, err := Backup(ctx, r, d, o)
	if err != nil {
		return err
	}
	if again.Read != ReadChanged {
		return fmt.Errorf("%s: %s", again.Reason, again.Detail)
	}
	_, err = RestoreToFile(ctx, r, again.SnapshotID, image+".restored", RestoreOptions{})
	return err
}

// watch looks at what the runtime has from the system until stop is called.
func watch() (peak *uint64, stop func()) {
	peak = new(uint64)
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
		ticker := time.NewTicker(sampleEvery)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				metrics.Read(samples)
				*peak = max(*peak, samples[0].Value.Uint64()-samples[1].Value.Uint64())
			case <-done:
				return
			}
		}
	}()
	return peak, func() {
		close(done)
		<-ended
	}
}

// highWater is the most that was resident, in bytes.
func highWater() int64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return -1
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			n, err := strconv.ParseInt(strings.Fields(value)[0], 10, 64)
			if err != nil {
				return -1
			}
			return n * kib
		}
	}
	return -1
}
