package devkubelet

import (
	"bytes"
	"io"
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// What a kubelet takes of a termination message, and of a log in place of one.
const (
	maxMessage  = 4096
	maxLogBytes = 2048
	maxLogLines = 80
)

// terminationMessage reads the message that a process left, cut as a kubelet cuts it.
func terminationMessage(policy corev1.TerminationMessagePolicy, exitCode int32, file, log string) string {
	text := head(file, maxMessage)
	if text == "" && policy == corev1.TerminationMessageFallbackToLogsOnError && exitCode != 0 {
		text = tail(log, maxLogLines, maxLogBytes)
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

func head(name string, n int64) string {
	file, err := os.Open(name)
	if err != nil {
		return ""
	}
	defer file.Close()
	text, _ := io.ReadAll(io.LimitReader(file, n))
	return string(text)
}

// tail returns the last lines of a file, at most n bytes of them.
func tail(name string, lines int, n int64) string {
	file, err := os.Open(name)
	if err != nil {
		return ""
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && info.Size() > n {
		_, _ = file.Seek(-n, io.SeekEnd)
	}
	text, _ := io.ReadAll(io.LimitReader(file, n))
	return string(text[lastLines(text, lines):])
}

// lastLines returns where the last lines of text begin.
func lastLines(text []byte, lines int) int {
	end := len(bytes.TrimSuffix(text, []byte("\n")))
	for range lines {
		at := bytes.LastIndexByte(text[:end], '\n')
		if at < 0 {
			return 0
		}
		end = at
	}
	return end + 1
}
