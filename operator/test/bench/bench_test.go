package main

import (
	"crypto/sha256"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
)

// digest reads everything below a directory, names included.
func digest(t *testing.T, dir string) (sum [sha256.Size]byte, files int) {
	t.Helper()
	h := sha256.New()
	require.NoError(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files++
		data, err := os.ReadFile(path)
		h.Write([]byte(strings.TrimPrefix(path, dir)))
		h.Write(data)
		return err
	}))
	return [sha256.Size]byte(h.Sum(nil)), files
}

func TestTheCorpusIsTheSameEveryTimeAndTouchChangesOneFileInAHundred(t *testing.T) {
	a, b := t.TempDir(), t.TempDir()
	for _, dir := range []string{a, b} {
		require.NoError(t, makeSmall(dir, 1000, 16))
		require.NoError(t, os.Mkdir(filepath.Join(dir, "big"), 0o755))
		require.NoError(t, makeBig(filepath.Join(dir, "big"), 4, textBlocks))
	}
	sumA, files := digest(t, a)
	sumB, _ := digest(t, b)
	require.Equal(t, sumA, sumB)
	require.Equal(t, 1004, files)

	require.NoError(t, touch(b, 0))
	changed := 0
	require.NoError(t, filepath.WalkDir(a, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		one, err := os.ReadFile(path)
		require.NoError(t, err)
		other, err := os.ReadFile(strings.Replace(path, a, b, 1))
		require.NoError(t, err)
		if string(one) != string(other) {
			changed++
		}
		return nil
	}))
	require.InDelta(t, 10, changed, 1) // an overwritten byte may be what it was
	require.ErrorContains(t, compare(a, b, false), "content")
	require.NoError(t, compare(a, a, true))
}

func TestStagesAreReadAndAMissingOneIsAnError(t *testing.T) {
	var text strings.Builder
	want := map[string]time.Duration{}
	for i, s := range stages {
		want[s] = time.Duration(i+1) * time.Millisecond
		text.WriteString("BenchmarkStage/" + s + " \t       2\t" + strconv.Itoa(i+1) + "000000 ns/op\t 800.00 MB/s\n")
	}
	got, err := parseStages([]byte("goos: linux\n" + text.String() + "PASS\n"))
	require.NoError(t, err)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	_, err = parseStages([]byte(strings.Replace(text.String(), "/verify", "/other", 1)))
	require.ErrorContains(t, err, "verify")
}

func TestRequestsAreCountedByWhatStoresChargeFor(t *testing.T) {
	for operation, want := range map[string]string{
		"s3:PutObject": "PUT", "s3_PutObject": "PUT", "CompleteMultipartUpload": "PUT", "UploadPart": "PUT",
		"s3:GetObject": "GET", "HeadObject": "HEAD", "ListObjectsV2": "LIST", "s3:DeleteObject": "DELETE", "Unknown": "other",
	} {
		require.Equal(t, want, verb(operation), operation)
	}
	line := "owner bench [03/February/2026:10:11:12 +0000] 127.0.0.1 AK 5F s3:PutObject data/00/ab /bench/data/00/ab 200 - 0 5\n"
	operation, ok := operationOf(line)
	require.True(t, ok)
	require.Equal(t, "s3:PutObject", operation)
	_, ok = operationOf("log starts 2026-02-03\n")
	require.False(t, ok)
}

func TestTheTablesSayWhatIsMissed(t *testing.T) {
	s := func(wall time.Duration, rss, size int64) []sample {
		return []sample{{wall: wall * 2, cpu: wall, rss: rss / 2, size: size}, {wall: wall, cpu: wall, rss: rss, size: size}, {wall: wall, cpu: wall, rss: 1, size: size}}
	}
	got := results{"random": {ourName: s(2*time.Second, 300*mib, 100*mib), "restic": s(8*time.Second, 100*mib, 99*mib), "kopia": s(3*time.Second, 400*mib, 90*mib)}}
	keys := []string{"random", "text"}
	want := `| work | pvcbackup, s (CPU s) | restic | kopia | faster than restic | faster than kopia |
| --- | ---: | ---: | ---: | ---: | ---: |
| first backup, 1 GiB random | 2.00 (2.00) | 8.00 (8.00) | 3.00 (3.00) | 4.00× of 3.50× ✓ | 1.50× of 1.80× **missed** |
`
	if diff := cmp.Diff(want, timeTable(keys, got, ourName)); diff != "" {
		t.Error(diff)
	}
	want = `| peak resident memory, MiB | pvcbackup | restic | kopia | at most 256 | at most kopia's |
| --- | ---: | ---: | ---: | ---: | ---: |
| first backup, 1 GiB random | 300 | 100 | 400 | **missed** | ✓ |
`
	if diff := cmp.Diff(want, memoryTable(keys, got, ourName)); diff != "" {
		t.Error(diff)
	}
	want = `| repository, MiB | pvcbackup | restic | kopia | of restic's | of kopia's |
| --- | ---: | ---: | ---: | ---: | ---: |
| first backup, 1 GiB random | 100 | 99 | 90 | 1.010 of 1.05 ✓ | 1.111 of 1.05 **missed** |
`
	if diff := cmp.Diff(want, sizeTable(keys, got, ourName)); diff != "" {
		t.Error(diff)
	}
}

func TestEveryRowBelongsToOnePhaseAndAllItNeedsComesBefore(t *testing.T) {
	seen := map[string]int{}
	for _, p := range phases {
		for _, key := range p.rows {
			seen[key]++
			require.Positive(t, p.last([]string{key}), key)
		}
	}
	for _, r := range rows {
		require.Equal(t, 1, seen[r.key], r.key)
	}
}

func TestTablesArePastedBetweenTheirMarkersOnly(t *testing.T) {
	file := filepath.Join(t.TempDir(), "doc.md")
	require.NoError(t, os.WriteFile(file, []byte("a\n<!-- bench:begin -->\nold\n<!-- bench:end -->\nb\n"), 0o600))
	require.NoError(t, paste(file, "bench", "new\n"))
	got, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "a\n<!-- bench:begin -->\nnew\n<!-- bench:end -->\nb\n", string(got))
	require.ErrorContains(t, paste(file, "growth", "new\n"), "growth:begin")
}
