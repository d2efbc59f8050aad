package contract

import (
	"encoding/json"
	"strings"
)

// progressPrefix starts a log line that tells progress, so that it can be told from any other line.
const progressPrefix = `{"progress":`

// Progress is how far a mover is. It is written as one line of the mover's log.
type Progress struct {
	// Stage is a word: "opening", "scanning", "reading", "verifying", "restoring", "pruning".
	Stage string `json:"stage,omitempty"`
	// Bytes and Files are done; TotalBytes and TotalFiles are what there is, zero while unknown.
	Bytes      int64 `json:"bytes"`
	TotalBytes int64 `json:"totalBytes,omitempty"`
	Files      int64 `json:"files"`
	TotalFiles int64 `json:"totalFiles,omitempty"`
	// Rate is in bytes per second; ETA is in seconds, zero while unknown.
	Rate int64 `json:"rate,omitempty"`
	ETA  int64 `json:"eta,omitempty"`
}

// Line returns the log line, without a newline.
func (p Progress) Line() string {
	text, _ := json.Marshal(struct {
		Progress Progress `json:"progress"`
	}{p})
	return string(text)
}

// ParseProgress reads a log line. Lines that tell no progress give false.
func ParseProgress(line string) (Progress, bool) {
	line = strings.TrimSpace(line)
	if !strings.HasPrefix(line, progressPrefix) {
		return Progress{}, false
	}
	var wrapped struct {
		Progress Progress `json:"progress"`
	}
	if err := json.Unmarshal([]byte(line), &wrapped); err != nil {
		return Progress{}, false
	}
	return wrapped.Progress, true
}
