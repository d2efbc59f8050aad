package devkubelet

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

func TestPathsBecomeLocal(t *testing.T) {
	places := paths{"/data": "/local/d", "/data/deep": "/local/deep", "/tmp": "/local/tmp"}
	for text, want := range map[string]string{
		"/data":               "/local/d",
		"/data/x":             "/local/d/x",
		"/data/deep/x":        "/local/deep/x",
		"/database":           "/database",
		"file:///data/repo":   "file:///local/d/repo",
		"file:///data?a=b":    "file:///local/d?a=b",
		"s3://bucket/data":    "s3://bucket/data",
		"see /data":           "see /data",
		"":                    "",
		`{"path":"/data/x"}`:  `{"path":"/data/x"}`,
		"file://elsewhere/tm": "file://elsewhere/tm",
	} {
		if got := places.rewrite(text); got != want {
			t.Errorf("rewrite(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestVariablesExpandAsInKubernetes(t *testing.T) {
	vars := &variables{values: map[string]string{"A": "1", "B": "$(A)"}}
	for text, want := range map[string]string{
		"$(A)":       "1",
		"x$(A)y$(B)": "x1y$(A)",
		"$$(A)":      "$(A)",
		"$$$(A)":     "$1",
		"$$$$":       "$$",
		"$(C)":       "$(C)",
		"$(A":        "$(A",
		"$A $":       "$A $",
		"":           "",
	} {
		if got := vars.expand(text); got != want {
			t.Errorf("expand(%q) = %q, want %q", text, got, want)
		}
	}
}

func FuzzDoubledDollarsComeBack(f *testing.F) {
	f.Add("$(A) $$ $")
	vars := &variables{values: map[string]string{"A": "1"}}
	f.Fuzz(func(t *testing.T, text string) {
		if got := vars.expand(strings.ReplaceAll(text, "$", "$$")); got != text {
			t.Errorf("%q came back as %q", text, got)
		}
	})
}

func TestTerminationMessageIsCutAndFallsBackToTheLog(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	long, empty := write("long", strings.Repeat("x", 9000)), write("empty", "")
	log := write("log", strings.Repeat("line\n", 200)+"last\n")
	for name, tc := range map[string]struct {
		policy corev1.TerminationMessagePolicy
		exit   int32
		file   string
		want   string
	}{
		"cut":                  {corev1.TerminationMessageReadFile, 1, long, strings.Repeat("x", maxMessage)},
		"no fallback":          {corev1.TerminationMessageReadFile, 1, empty, ""},
		"fallback":             {corev1.TerminationMessageFallbackToLogsOnError, 1, empty, strings.Repeat("line\n", maxLogLines-1) + "last\n"},
		"no fallback on exit0": {corev1.TerminationMessageFallbackToLogsOnError, 0, empty, ""},
		"file before log":      {corev1.TerminationMessageFallbackToLogsOnError, 1, write("m", "said"), "said"},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, terminationMessage(tc.policy, tc.exit, tc.file, log)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestLastLines(t *testing.T) {
	for text, want := range map[string]string{"": "", "a": "a", "a\n": "a\n", "a\nb": "b", "a\nb\n": "b\n", "a\n\n": "\n"} {
		if got := text[lastLines([]byte(text), 1):]; got != want {
			t.Errorf("the last line of %q is %q, want %q", text, got, want)
		}
	}
}

func TestLogIsReadFromItsEnd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	require.NoError(t, os.WriteFile(path, []byte(strings.Repeat("before\n", 5000)+strings.Repeat("x", 9000)+"\nend\n"), 0o600))
	for lines, want := range map[int]int{0: 0, 1: 4, 2: 9005, 3: 9012, 1 << 20: 44005} {
		file, err := os.Open(path)
		require.NoError(t, err)
		require.NoError(t, seekLines(file, lines))
		info, err := file.Stat()
		require.NoError(t, err)
		at, err := file.Seek(0, 1)
		require.NoError(t, err)
		require.Equal(t, want, int(info.Size()-at), "%d lines", lines)
		require.NoError(t, file.Close())
	}
}
